"""What is written down about the machine, without importing anything that the subject did not import."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from speechmeter.core.device import Device
from speechmeter.core.machine import (
    allocator,
    available_cores,
    cpu_model,
    host_name,
    kib_field,
    proc_fields,
    read_text,
)
from speechmeter.core.types import VARIANT, Case, Environment
from speechmeter.engine.loaded_code import loaded_code

_PACKAGES = (
    "speechmeter",
    "torch",
    "transformers",
    "numpy",
    "scipy",
    "soundfile",
    "soxr",
    "triton",
    "onnxruntime",
)
_CUDA_ALLOCATOR = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
"""Settings of torch's allocator, by their newer and older name: they decide what fits."""
_GOVERNOR = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"


def capture(case: Case) -> Environment:
    """The environment of this process while it measures `case`."""
    return Environment(facts=_facts(case), state=_state())


def _facts(case: Case) -> dict[str, Any]:
    return {
        "host": host_name(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "cpu": cpu_model(),
        "cores": list(available_cores()),
        "cores_total": os.cpu_count(),
        "governor": read_text(_GOVERNOR) or "unknown",
        "memory_bytes": kib_field("/proc/meminfo", "MemTotal"),
        "threads": _threads(case),
        "allocator": allocator(),
        "packages": _packages(),
        **({"code": loaded_code()} if VARIANT in case.axes else {}),
        **_cuda_facts(case.device),
    }


def _state() -> dict[str, Any]:
    clock = proc_fields("/proc/cpuinfo").get("cpu MHz")
    return {
        "load_1min": os.getloadavg()[0],
        "memory_available_bytes": kib_field("/proc/meminfo", "MemAvailable"),
        "cpu_mhz": float(clock) if clock else None,
    }


def _threads(case: Case) -> dict[str, Any]:
    torch = sys.modules.get("torch")
    return {
        "asked": case.axes.threads,
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS"),
        "torch": torch.get_num_threads() if torch is not None else None,
    }


def _packages() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        if name in sys.modules:
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                found[name] = str(getattr(sys.modules[name], "__version__", "unknown"))
    return found


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
