"""A key of a server: read from the environment when it is needed, never stored, and masked in what the server says."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace

from speechmeter.core.errors import SubjectError
from speechmeter.core.live import Event

MASK = "***"


@dataclass(frozen=True, kw_only=True)
class Secret:
    """A key, or none. Its text is in no message, no record and no `repr`."""

    value: str = field(default="", repr=False)

    @classmethod
    def of(cls, variable: str | None) -> Secret:
        """The key in an environment variable; none without a name. SubjectError where the variable is not set."""
        if not variable:
            return cls()
        value = os.environ.get(variable, "").strip()
        if not value:
            raise SubjectError(
                f"the environment variable {variable} is not set", fix=f"export {variable}=…, or remove `key`"
            )
        return cls(value=value)

    def headers(self, scheme: str = "Bearer") -> dict[str, str]:
        """The header that shows it to a server; none without a key."""
        return {"Authorization": f"{scheme} {self.value}"} if self.value else {}

    def hidden(self, text: str) -> str:
        """The text with the key masked."""
        return text.replace(self.value, MASK) if self.value else text

    def masked(self, event: Event) -> Event:
        """The event with the key masked in its text."""
        return replace(event, text=self.hidden(event.text)) if self.value in event.text and self.value else event
