"""What a measuring process is started with: its environment, and the memory that it may use."""

from __future__ import annotations

import os

from speechmeter.core.machine import kib_field
from speechmeter.core.types import Case, Limits
from speechmeter.engine.phases import Process

_SHARE_OF_FREE_MEMORY = 0.95
_THRESHOLDS = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")
_TUNABLES, _OF_MALLOC = "GLIBC_TUNABLES", "glibc.malloc."
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def environ_of(case: Case, process: Process) -> dict[str, str]:
    """Variables that libraries read when they start. The latency process has the default allocator."""
    environ = {key: value for key, value in os.environ.items() if key not in _THRESHOLDS}
    tunables = [part for part in environ.pop(_TUNABLES, "").split(":") if part and not part.startswith(_OF_MALLOC)]
    environ.update({_TUNABLES: ":".join(tunables)} if tunables else {})
    environ.update(dict.fromkeys(_THREAD_VARIABLES, str(case.axes.threads)))
    environ.update(PYTHONHASHSEED=str(case.protocol.seed), TOKENIZERS_PARALLELISM="false")
    if case.axes.deterministic:
        environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    return {**environ, **process.environ}


def memory_bytes_of(limits: Limits, *, on_cuda: bool) -> int | None:
    """The limit given; on the CPU, without one, what is free now, so that a case dies before the machine does."""
    if on_cuda:  # the limit is on the memory of the device
        return None
    if limits.memory_gib is not None:
        return int(limits.memory_gib * 2**30)
    free = kib_field("/proc/meminfo", "MemAvailable")
    return None if free is None else int(free * _SHARE_OF_FREE_MEMORY)
