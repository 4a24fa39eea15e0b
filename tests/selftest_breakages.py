"""Meters broken on purpose: code that a `sitecustomize.py` runs in every process of `speechmeter selftest`."""

import os
from pathlib import Path

BREAKAGES = {
    "latency": (
        "from speechmeter.meters import latency\n"
        "true_ns = latency.perf_counter_ns\n"
        "latency.perf_counter_ns = lambda: int(true_ns() * 1.25)\n"
    ),
    "memory": (
        "from speechmeter.meters import resident\n"
        "true_read = resident.HighWaterMark.read\n"
        "def half(self, work):\n"
        "    return resident.Reading(growth_bytes=true_read(self, work).growth_bytes // 2)\n"
        "resident.HighWaterMark.read = half\n"
    ),
    "flops": (
        "from speechmeter.meters.flops.meter import FlopsMeter\n"
        "true_count = FlopsMeter.measure\n"
        "def double(self, session):\n"
        "    import torch\n"
        "    from torch.utils.flop_counter import flop_registry\n"
        "    true_formula = flop_registry[torch.ops.aten.addmm]\n"
        "    flop_registry[torch.ops.aten.addmm] = lambda *args, **more: 2 * true_formula(*args, **more)\n"
        "    return true_count(self, session)\n"
        "FlopsMeter.measure = double\n"
    ),
    "parameters": (
        "from speechmeter.meters import parameters\n"
        "true_elements = parameters._elements\n"
        "parameters._elements = lambda weights: true_elements(weights) + 1\n"
    ),
    "operators": (
        "from speechmeter.meters.operators import meter\nmeter._credited = lambda node, kinds: 'aten::elsewhere'\n"
    ),
    "peaks": (
        "from speechmeter.meters import peaks\n"
        "true_peak = peaks._arithmetic\n"
        "def triple(*args):\n"
        "    side, tries = true_peak(*args)\n"
        "    return side, [3 * one for one in tries]\n"
        "peaks._arithmetic = triple\n"
    ),
}


FEWER_TURNS = (
    "import sys\n"
    "if 'selftest' in sys.orig_argv:\n"  # each turn takes three seconds of matrix products
    "    from speechmeter.api import selftest\n"
    "    selftest._BY_TURNS = 3\n"
)


def plant(folder: Path, broken: list[str]) -> str:
    """Write the breakages into a folder; the PYTHONPATH on which it stands first."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(FEWER_TURNS + "".join(BREAKAGES[name] for name in broken))
    before = os.environ.get("PYTHONPATH")
    return os.pathsep.join([str(folder), *([before] if before else [])])


def states(table: str) -> dict[str, list[list[str]]]:
    """The rows of a printed selftest by meter: on what, truth, reading, error, allowed, state."""
    found: dict[str, list[list[str]]] = {}
    row: list[str] = []
    for line in table.splitlines():
        if line.startswith("│"):
            meter, *cells = [cell.strip() for cell in line.strip("│").split("│")]
            if meter:
                row = cells
                found.setdefault(meter, []).append(row)
            else:  # a folded cell goes on
                row[:] = [f"{before} {after}".strip() for before, after in zip(row, cells, strict=True)]
    return found
