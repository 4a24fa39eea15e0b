"""Objects that stay, hidden from the garbage collector: going through those of libraries takes 0.2 s each time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def hidden_from_collector() -> Iterator[None]:
    """Collect garbage once, and hide what is left from later collections until the end.

    Where somebody has hidden objects before, such as the template of a forked process, all stay hidden: the collector
    cannot give back a part.
    """
    gc.collect()
    is_ours = not gc.get_freeze_count()
    gc.freeze()
    try:
        yield
    finally:
        if is_ours:
            gc.unfreeze()
