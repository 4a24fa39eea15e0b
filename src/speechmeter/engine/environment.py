"""What is written down about the machine and the loaded code.

Nothing is imported here that the subject did not import.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from speechmeter.core.commit_files import commit_facts
from speechmeter.core.device import Device
from speechmeter.core.machine import (
    allocator,
    available_cores,
    cpu_model,
    host_name,
    kib_field,
    other_interpreter,
    proc_fields,
    read_text,
)
from speechmeter.core.types import VARIANT, Case, Environment
from speechmeter.engine.packages import imported_distributions

_CUDA_ALLOCATOR = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
"""Settings of torch's allocator, by their newer and older name: they decide what fits."""
_GOVERNOR = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"


def capture(case: Case) -> Environment:
    """The environment of this process while it measures `case`."""
    imported = imported_distributions()
    torch, clock = sys.modules.get("torch"), proc_fields("/proc/cpuinfo").get("cpu MHz")
    facts = {
        "host": host_name(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "cpu": cpu_model(),
        "cores": list(available_cores()),
        "cores_total": os.cpu_count(),
        "governor": read_text(_GOVERNOR) or "unknown",
        "memory_bytes": kib_field("/proc/meminfo", "MemTotal"),
        "threads": {
            "asked": case.axes.threads,
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS"),
            "torch": torch.get_num_threads() if torch is not None else None,
        },
        "allocator": allocator(),
        "packages": imported.versions,
        "leading_packages": list(imported.leading),
        **({"interpreter": other} if (other := other_interpreter()) is not None else {}),
        **({"code": loaded_code()} if VARIANT in case.axes else {}),
        **commit_facts(),
        **_cuda_facts(case.device),
    }
    state = {
        "load_1min": os.getloadavg()[0],
        "memory_available_bytes": kib_field("/proc/meminfo", "MemAvailable"),
        "cpu_mhz": float(clock) if clock else None,
    }
    return Environment(facts=facts, state=state)


def _cuda_facts(device: Device) -> dict[str, Any]:
    torch = sys.modules.get("torch")
    if torch is None or not device.is_cuda or not torch.cuda.is_available():
        return {}
    properties = torch.cuda.get_device_properties(str(device))
    driver = proc_fields("/proc/driver/nvidia/version").get("NVRM version", "")
    return {
        "gpu": properties.name,
        "gpu_memory_bytes": properties.total_memory,
        "cuda": torch.version.cuda,
        "driver": driver or ("present" if Path("/dev/nvidia0").exists() else "unknown"),
        **{name: os.environ[name] for name in _CUDA_ALLOCATOR if os.environ.get(name)},
    }


_OURS = "speechmeter"
_COMPUTING = ("speechmeter.transducer", "speechmeter.subjects")
"""Parts of this package that are measured; the rest of it measures, and may be another version on the other side."""
_MAIN = "__main__"
_LARGE_BYTES = 16 * 2**20
"""A library above this is recorded by its size: one of half a gigabyte would take longer to read than to measure."""


def loaded_code() -> dict[str, Any]:
    """What was imported beyond the standard library: a digest of all files, where the modules came from, versions.

    `modules` are those outside installed packages, each with `working folder` or `elsewhere`. Paths are not recorded.
    """
    files = dict(_files())
    outside = {name.partition(".")[0]: path for name, path in files.items() if not _is_installed(path)}
    # of the content of all files under the names of their modules, wherever they are
    whole = hashlib.sha256()
    contents = {path: _content(path) for path in set(files.values())}  # a library may hold many modules
    for name, path in files.items():
        whole.update(f"{name}\0{contents[path]}\n".encode())
    packages = {name.partition(".")[0] for name in files}
    owners = importlib.metadata.packages_distributions()
    names = sorted({owner for package in packages for owner in owners.get(package, ())} - {_OURS})
    return {
        "digest": whole.hexdigest()[:16],
        "modules": {
            name: "working folder" if path.is_relative_to(Path.cwd()) else "elsewhere"
            for name, path in sorted(outside.items())
        },
        "versions": {name: importlib.metadata.version(name) for name in names},
    }


def _files() -> Iterator[tuple[str, Path]]:
    """(module, file) of what is neither the standard library nor the measuring part of this package."""
    standard = [Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")]
    for name, module in sorted(sys.modules.items()):
        own = name == _OURS or name.startswith(f"{_OURS}.")
        path = getattr(module, "__file__", None)
        if not isinstance(path, str) or name == _MAIN or (own and not name.startswith(_COMPUTING)):
            continue
        if not Path(path).is_absolute():  # of modules that are made up, such as `torch.ops`: there is no such file
            continue
        file = Path(path).resolve()
        if _is_installed(file) or not any(file.is_relative_to(folder) for folder in standard):
            yield name, file


def _is_installed(path: Path) -> bool:
    return any(part in ("site-packages", "dist-packages") for part in path.parts)


def _content(path: Path) -> str:
    try:
        size = path.stat().st_size
        return f"{size} bytes" if size > _LARGE_BYTES else hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return "unreadable"
