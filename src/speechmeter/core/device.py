"""What a case runs on: `cpu`, `cuda` or `cuda:1`, parsed once."""

from __future__ import annotations

import re
from dataclasses import dataclass

from speechmeter.core.errors import DeviceError

# Torch takes no index with leading zeros; nine digits keep `int` from raising on a hostile record.
_FORM = re.compile(r"([a-z]+)(?::(0|[1-9][0-9]{0,8}))?")


@dataclass(frozen=True, kw_only=True)
class Device:
    """The kind of a device and its number, None where the text has none.

    `kind` is `cpu` or `cuda`. Only `read` gives another: that of a tensor (`mps`), or the odd text of a record.
    """

    kind: str
    index: int | None = None

    @classmethod
    def parse(cls, text: str) -> Device:
        """The device of that name. Raises DeviceError for anything but cpu, cuda and cuda:N."""
        device = cls.read(text)
        if text == "cpu" or device.kind == "cuda":
            return device
        raise DeviceError(f"there is no device {text!r}", fix="use cpu, cuda or cuda:N")

    @classmethod
    def read(cls, value: object) -> Device:
        """The device that a record or a tensor names; never raises, since others write records too."""
        match = _FORM.fullmatch(str(value))
        if match is None:
            return cls(kind=str(value))
        return cls(kind=match[1], index=None if match[2] is None else int(match[2]))

    def __str__(self) -> str:
        return self.kind if self.index is None else f"{self.kind}:{self.index}"

    @property
    def is_cpu(self) -> bool:
        """Whether it is the processor."""
        return self.kind == "cpu"

    @property
    def is_cuda(self) -> bool:
        """Whether it is a CUDA device; `cuda0` in a record of others counts as one too."""
        return self.kind.startswith("cuda")
