"""Peak memory of a call beside its peers, on allocations of known size and on a small model.

Every tool reads every truth three times after one warm call, in a fresh process for each pair. Ours goes its usual way,
through `speechmeter.run`; the peers run as their manuals show, with the default allocator. The truth of the allocations
is in their names; that of the model is the highest sum of live tensors by torch's profiler.

    python benchmarks/memory.py        exit 1 when a reading of ours is over 2 MiB off a known allocation

A peer that is not installed has a row that says so: pip install 'speechmeter[bench]'.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from threading import Event, Thread
from typing import Any

import speechmeter
from speechmeter.core import metrics

HERE = Path(__file__).resolve().parent
SUBJECTS = HERE / "subjects" / "allocations.py"
MIB = 2**20
KNOWN_MIB = {"spike": 64.0, "gibibyte": 1024.0, "ten": 40.0}
MODEL = "encoder"
TITLES = {
    "spike": "64 MiB for 5 ms",
    "gibibyte": "1 GiB for 50 ms",
    "ten": "ten live tensors of 4 MiB",
    MODEL: "small wav2vec 2.0, 2 × 4 s",
}
READINGS = 3
LIMIT_MIB = 2.0
HINT = "not installed: pip install 'speechmeter[bench]'"

Call = Callable[[], Any]
Tool = Callable[[Call], float]


def read_memory_profiler(call: Call) -> float:
    """Bytes by `memory_usage` at its default interval of 0.1 s, less the size before."""
    from memory_profiler import memory_usage

    before_mib = memory_usage(-1, max_iterations=1)[0]
    return float((memory_usage((call, ()), max_usage=True) - before_mib) * MIB)


def read_psutil(interval_s: float) -> Tool:
    """Return a tool that looks at psutil's resident size every `interval_s`, in a thread."""

    def read(call: Call) -> float:
        import psutil

        process, done = psutil.Process(), Event()
        seen = [process.memory_info().rss]

        def watch() -> None:
            while not done.wait(interval_s):
                seen.append(process.memory_info().rss)

        watcher = Thread(target=watch)
        watcher.start()
        call()
        done.set()
        watcher.join()
        return float(max(seen) - seen[0])

    return read


def read_tracemalloc(call: Call) -> float:
    """Bytes by Python's own tracer, which sees Python's allocations."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return float(peak - before)


PEERS: dict[str, tuple[str, Tool]] = {
    "memory_profiler, 0.1 s": ("memory_profiler", read_memory_profiler),
    "psutil every 0.1 s": ("psutil", read_psutil(0.1)),
    "psutil every 0.01 s": ("psutil", read_psutil(0.01)),
    "tracemalloc": ("tracemalloc", read_tracemalloc),
}
PROFILER = "torch profiler"


def tensor_peak(call: Call) -> float:
    """The highest sum of live tensors during the call, in bytes, from the events of torch's profiler."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        call()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(trace))
        events = [e for e in json.loads(trace.read_text())["traceEvents"] if e.get("name") == "[memory]"]
    live = highest = 0
    for event in sorted(events, key=lambda e: e["ts"]):
        live += event["args"]["Bytes"]
        highest = max(highest, live)
    return float(highest)


def in_this_process(tool: str, subject: str) -> None:
    """Print the readings of one tool on one subject: what a fresh process of this benchmark does."""
    sys.path.insert(0, str(SUBJECTS.parent))
    import allocations

    stage = getattr(allocations, subject)().stages[0]
    read = tensor_peak if tool == PROFILER else PEERS[tool][1]
    stage.fn(None)
    print(json.dumps([read(lambda: stage.fn(None)) for _ in range(READINGS)]))


def by_peer(tool: str, subject: str) -> list[float]:
    """Bytes read by a peer in a fresh process."""
    command = [sys.executable, __file__, "--tool", tool, "--subject", subject]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{tool} on {subject}: {done.stderr.strip().splitlines()[-1]}")
    return [float(value) for value in json.loads(done.stdout.splitlines()[-1])]


def by_us(subjects: Sequence[str]) -> dict[str, list[float]]:
    """Bytes that a run of ours reads, by subject."""
    models = [{"name": name, "load": f"python:{SUBJECTS}:{name}"} for name in subjects]
    plan = {"models": models, "seconds": [1], "batch": [1], "meters": ["memory"], "rounds": 1}
    with tempfile.TemporaryDirectory() as folder:
        records = speechmeter.run(plan, output=Path(folder) / "run").records
    found = {record.case.subject.name: record.find(metrics.MEMORY_CPU_PEAK.id) for record in records}
    return {name: list(m.values) for name, m in found.items() if m is not None}


def row(name: str, readings: Sequence[float], truth_mib: float) -> float:
    """Print a tool's median and the error farthest from the truth, and return that error in MiB."""
    mib = [value / MIB for value in readings]
    worst = max((value - truth_mib for value in mib), key=abs)
    print(f"  {name:26}{truth_mib:10.1f}{median(mib):11.1f}{worst:+12.1f}")
    return abs(worst)


def compare(subject: str, ours: Sequence[float], truth_mib: float) -> bool:
    """Print all tools on one truth; whether ours is within the limit."""
    print(f"\n{TITLES[subject]:28}{'truth, MiB':>10}{'median':>11}{'worst error':>12}")
    error_mib = row("speechmeter", ours, truth_mib)
    for tool, (package, _) in PEERS.items():
        if find_spec(package) is None:
            print(f"  {tool:26}{HINT}")
        else:
            row(tool, by_peer(tool, subject), truth_mib)
    return error_mib <= LIMIT_MIB


def main() -> int:
    """Compare on every truth; 0 when ours is within the limit on every known allocation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", help=argparse.SUPPRESS)
    parser.add_argument("--subject", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.tool:
        in_this_process(asked.tool, asked.subject)
        return 0
    ours = by_us(list(TITLES))
    verdicts = [compare(subject, ours[subject], truth) for subject, truth in KNOWN_MIB.items()]
    compare(MODEL, ours[MODEL], max(by_peer(PROFILER, MODEL)) / MIB)
    print(f"\nwithin {LIMIT_MIB:g} MiB of every known allocation: {'yes' if all(verdicts) else 'no'}")
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
