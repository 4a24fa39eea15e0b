"""A run on this machine: one turn after the other, each record on disk before the next begins."""

from __future__ import annotations

from functools import partial

from speechmeter.launch.agenda import Agenda, Sweep
from speechmeter.launch.booking import Book, Watcher, measured_at
from speechmeter.launch.git_state import git_state
from speechmeter.launch.places import Place
from speechmeter.store.run_dir import RunWriter


def run_sweep(sweep: Sweep, place: Place, store: RunWriter, watch: Watcher = lambda event: None) -> None:
    """Measure what the store does not hold yet. Raises StoppedRun where it ends early, finished records kept."""
    agenda = Agenda(sweep, store.records())
    book = Book(agenda, store, watch)
    with book.stopping():
        book.leave_out()
        _measure_all(agenda, place, book)


def _measure_all(agenda: Agenda, place: Place, book: Book) -> None:
    git = git_state()
    for turn in agenda.turns():
        book.begin(turn)
        book.close(turn, measured_at(place, turn.case, turn.extent, git, partial(book.phase, turn)))
