"""PAPI played by an object with the names of python-papi 6.0.0.2; the real package where it is installed."""

import sys
from importlib.util import find_spec

import pytest

from speechmeter.core.errors import SensorError
from speechmeter.meters.hardware_flops import papi as papi_backend
from speechmeter.meters.hardware_flops.papi import Papi, PapiBackend


class PapiError(Exception):
    pass


class Low:
    """Event sets of two presets, counting what `did` says of their thread."""

    def __init__(self, fails=None, message="Event does not exist. (PAPI_ENOEVNT)"):
        self.did = {}
        self.sets = {}
        self.freed = []
        self._fails, self._message = fails, message

    def _step(self, name):
        if name == self._fails:
            raise PapiError(self._message)

    def create_eventset(self):
        self._step("create_eventset")
        made = len(self.sets) + len(self.freed)
        self.sets[made] = {"events": [], "running": False}
        return made

    def assign_eventset_component(self, made, component):
        assert component == 0

    def set_multiplex(self, made):
        self._step("set_multiplex")

    def attach(self, made, thread):
        self._step("attach")
        self.sets[made]["thread"] = thread

    def add_event(self, made, event):
        self._step("add_event")
        self.sets[made]["events"].append(event)

    def start(self, made):
        self._step("start")
        self.sets[made]["running"] = True

    def read(self, made):
        self._step("read")
        return [self.did.get((self.sets[made]["thread"], event), 0) for event in self.sets[made]["events"]]

    def stop(self, made):
        self.sets[made]["running"] = False

    def cleanup_eventset(self, made):
        assert not self.sets[made]["running"]

    def destroy_eventset(self, made):
        self.freed.append(self.sets.pop(made))


SINGLE, DOUBLE = 0x67, 0x68


def backend(low, tids=(1, 7)):
    tids = tids if isinstance(tids, set) else set(tids)
    made = Papi(low=low, presets=(SINGLE, DOUBLE), error=PapiError)
    return PapiBackend(load=lambda: made, threads=lambda: frozenset(tids))


def test_both_precisions_are_summed_over_threads_from_the_start_of_the_work():
    low = Low()
    low.did = {(1, SINGLE): 5, (7, DOUBLE): 5}
    counter = backend(low).open()

    def work():
        low.did = {(1, SINGLE): 105, (1, DOUBLE): 20, (7, DOUBLE): 1005}

    assert counter.count(work).flops == 100 + 20 + 1000
    counter.close()
    assert not low.sets
    assert len(low.freed) == 2


@pytest.mark.parametrize("step", ["create_eventset", "set_multiplex", "attach", "add_event", "start"])
def test_a_step_that_fails_frees_everything_and_says_why(step):
    low = Low(fails=step)
    with pytest.raises(SensorError, match=r"no such event on this processor \(a virtual machine hides counters\)"):
        backend(low).open()
    assert not low.sets


def test_other_errors_keep_the_words_of_papi():
    low = Low(fails="attach", message="Permission level\n does not permit operation. (PAPI_EPERM)")
    with pytest.raises(SensorError, match=r"^Permission level does not permit operation. \(PAPI_EPERM\)$"):
        backend(low).open()


def test_a_failed_reading_is_no_zero():
    counter = backend(Low(fails="read")).open()
    with pytest.raises(SensorError):
        counter.count(lambda: None)


def test_a_call_that_starts_a_thread_is_refused_because_nobody_counts_it():
    tids = {1}
    counter = backend(Low(), tids).open()
    with pytest.raises(SensorError, match="does not follow new ones"):
        counter.count(lambda: tids.add(9))


def test_a_thread_that_ends_during_the_call_is_fine():
    low, tids = Low(), {1, 7}
    counter = backend(low, tids).open()

    def work():
        low.did = {(7, SINGLE): 50}
        tids.remove(7)

    assert counter.count(work).flops == 50


def test_without_the_package_the_way_out_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pypapi", None)
    with pytest.raises(SensorError, match=r"python-papi is not installed: pip install 'speechmeter\[papi\]'"):
        papi_backend.load()


def test_a_package_that_breaks_on_import_says_so(monkeypatch):
    def broken(name):
        raise ImportError("libpapi.so.6: cannot open shared object file")

    monkeypatch.setattr(papi_backend, "import_module", broken)
    with pytest.raises(SensorError, match=r"python-papi cannot be imported: libpapi\.so\.6"):
        papi_backend.load()


def test_the_real_package_loads_twice_or_is_named_as_missing():
    if find_spec("pypapi") is None:
        with pytest.raises(SensorError, match="not installed"):
            papi_backend.load()
        return
    assert len({papi_backend.load().presets, papi_backend.load().presets}) == 1
