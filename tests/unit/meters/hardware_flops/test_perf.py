"""perf events: their encodings, a simulated kernel whose threads do known arithmetic, page faults on the real one."""

import ctypes
import errno
import mmap
import os
import platform
import struct
from pathlib import Path
from threading import Event as Signal
from threading import Thread

import pytest
from simulated_counters import SimulatedKernel

from speechmeter.core.errors import SensorError
from speechmeter.meters.hardware_flops.perf import INTEL, Event, PerfBackend, Sample, events_of, scaled, why_refused

SCALAR, DOUBLE_128, _, _, SINGLE_512 = (event.config for event in INTEL)


def backend(kernel, events=INTEL):
    return PerfBackend(kernel=kernel, events=lambda: events, machine="Linux x86_64")


def test_counts_are_multiplied_by_lanes_and_summed_over_threads():
    kernel = SimulatedKernel(tids=[1, 7])
    counter = backend(kernel).open()

    def work():
        kernel.run(1, SCALAR, 10)
        kernel.run(1, SINGLE_512, 1000)
        kernel.run(7, DOUBLE_128, 300)

    counted = counter.count(work)
    assert counted.flops == 10 + 16 * 1000 + 2 * 300
    assert counted.share == 1.0


def test_each_count_starts_anew():
    kernel = SimulatedKernel()
    kernel.run(1, SCALAR, 999)
    counter = backend(kernel).open()
    for times in (1, 3):
        assert counter.count(lambda times=times: kernel.run(1, SCALAR, 50 * times)).flops == 50 * times


def test_a_thread_that_starts_later_is_counted_by_its_parent():
    kernel = SimulatedKernel(tids=[1, 7])
    counter = backend(kernel).open()

    def work():
        kernel.start_thread(7, 8)
        kernel.run(8, SCALAR, 40)

    assert counter.count(work).flops == 40


def test_events_ask_for_inheritance_user_code_and_times():
    kernel = SimulatedKernel()
    backend(kernel, INTEL[:1]).open()
    (attributes,) = kernel.attributes
    kind, size, config, _, _, read_format, flags = struct.unpack_from("=IIQQQQQ", attributes)
    assert (kind, size, config) == (4, len(attributes) == 64 and 64, 0x03C7)
    assert read_format == 0b11
    assert flags == 0b110_0010  # inherit, no kernel, no hypervisor; enabled at once


@pytest.mark.parametrize("share", [0.8, 0.25])
def test_events_that_took_turns_are_scaled_by_their_own_thread(share):
    kernel = SimulatedKernel(tids=[1, 7], shares={7: share})
    counter = backend(kernel).open()

    def work():
        kernel.run(1, SCALAR, 1000)
        kernel.run(7, SCALAR, 4000)

    counted = counter.count(work)
    assert counted.flops == pytest.approx(5000)
    assert counted.share == pytest.approx((1 + share) / 2)


def test_scaling_by_hand():
    samples = [Sample(100, 1000, 1000), Sample(30, 800, 200), Sample(0, 0, 0)]
    assert scaled(samples).flops == 100 + 30 * 4
    assert scaled([]).flops == 0


def test_a_thread_that_was_never_on_a_counter_matters_only_if_it_ran():
    assert scaled([Sample(100, 10_000, 10_000), Sample(0, 50, 0)]).flops == 100
    with pytest.raises(SensorError, match="other programs use the counters"):
        scaled([Sample(100, 10_000, 10_000), Sample(0, 5000, 0)])


def test_a_counter_that_was_taken_away_is_no_zero():
    with pytest.raises(SensorError, match="the kernel stopped the counter"):
        Sample.unpacked(b"")


def test_a_thread_that_ended_meanwhile_is_left_out():
    kernel = SimulatedKernel(tids=[1, 7], gone={7})
    counter = backend(kernel).open()
    assert {event.thread for event in kernel.opened.values()} == {1}
    counter.close()
    assert not kernel.opened


def test_when_a_thread_starts_while_counters_are_opened_all_are_opened_anew():
    kernel = SimulatedKernel(born_while_opening=[9])
    backend(kernel).open()
    assert len(kernel.closed) == len(INTEL)
    assert sorted({event.thread for event in kernel.opened.values()}) == [1, 9]


def test_threads_that_keep_starting_are_a_reason():
    kernel = SimulatedKernel(born_while_opening=list(range(10, 10_000)))
    with pytest.raises(SensorError, match="kept starting threads"):
        backend(kernel).open()
    assert not kernel.opened


def test_a_refusal_closes_what_was_open():
    kernel = SimulatedKernel(tids=[1, 7])
    opens = kernel.open

    def second_fails(attributes, thread):
        if thread == 7:
            raise OSError(errno.EMFILE, "Too many open files")
        return opens(attributes, thread)

    kernel.open = second_fails
    with pytest.raises(SensorError, match="ulimit -n"):
        backend(kernel).open()
    assert not kernel.opened


@pytest.mark.parametrize(
    ("number", "paranoid", "reason"),
    [
        (errno.EACCES, "3", "perf_event_paranoid is 3): run `sysctl kernel.perf_event_paranoid=2`"),
        (errno.EPERM, "4", "perf_event_paranoid is 4): run `sysctl kernel.perf_event_paranoid=2`"),
        (errno.EPERM, "-1", "container"),
        (errno.EPERM, None, "container"),
        (errno.ENOENT, "2", "no such event on this processor (a virtual machine hides counters)"),
        (errno.EOPNOTSUPP, "2", "no such event on this processor (a virtual machine hides counters)"),
        (errno.ENOSYS, None, "no perf_event_open"),
        (errno.EBUSY, "2", "another program"),
        (errno.EINVAL, "2", "perf_event_open: Invalid argument"),
    ],
)
def test_every_refusal_has_its_reason(number, paranoid, reason):
    assert reason in why_refused(number, paranoid)


@pytest.mark.parametrize("machine", ["Darwin arm64", "Linux aarch64"])
def test_other_systems_are_refused_before_any_call(machine):
    with pytest.raises(SensorError, match=f"not on {machine}"):
        PerfBackend(kernel=SimulatedKernel(refuses=errno.EFAULT), machine=machine).open()


PAGES = 700
PAGE_FAULTS = Event(name="page-faults", type=1, code=2, umask=0, lanes=1)
"""The kernel counts these without the processor's help, so they are to be had on virtual machines too."""


def touch_pages():
    with mmap.mmap(-1, PAGES * mmap.PAGESIZE) as block:
        block.madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(PAGES):
            block[page * mmap.PAGESIZE] = 1


def why_this_kernel_refuses():
    """The reason for what the system call itself answers to the same event; fails where it does not refuse."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return f"works on Linux on x86-64 only, not on {platform.system()} {platform.machine()}"
    libc = ctypes.CDLL(None, use_errno=True)
    event = struct.pack("=IIQ48x", 1, 64, 2)  # type software, size of the first version, config page faults
    assert libc.syscall(298, event, 0, -1, -1, 0) < 0
    paranoid = Path("/proc/sys/kernel/perf_event_paranoid")
    return why_refused(ctypes.get_errno(), paranoid.read_text().strip() if paranoid.exists() else None)


def test_the_real_kernel_counts_old_and_new_threads_or_says_why_not():
    """Two threads, one started before the counters are opened and one after, touch 700 fresh pages each."""
    go = Signal()
    before = Thread(target=lambda: (go.wait(), touch_pages()))
    before.start()
    try:
        counter = PerfBackend(events=lambda: (PAGE_FAULTS,)).open()
    except SensorError as error:
        go.set()
        assert str(error) == why_this_kernel_refuses()
        return

    def work():
        go.set()
        after = Thread(target=touch_pages)
        after.start()
        after.join()
        before.join()

    descriptors = [fd for _, found in counter.descriptors for fd in found]
    try:
        assert 2 * PAGES <= counter.count(work).flops < 3 * PAGES
    finally:
        counter.close()
    for descriptor in descriptors:
        with pytest.raises(OSError):
            os.fstat(descriptor)


# Lanes of the bits in the kernel's tables (tools/perf/pmu-events/arch/x86), written down once more here.
INTEL_LANES = {
    0x01: 1,  # SCALAR_DOUBLE
    0x02: 1,  # SCALAR_SINGLE
    0x04: 128 // 64,
    0x08: 128 // 32,
    0x10: 256 // 64,
    0x20: 256 // 32,
    0x40: 512 // 64,
    0x80: 512 // 32,
}


@pytest.mark.parametrize(("umask", "lanes"), INTEL_LANES.items())
def test_every_width_and_precision_of_intel_is_in_one_event_with_its_lanes(umask, lanes):
    found = [event for event in events_of({"vendor_id": "GenuineIntel"}) if event.umask & umask]
    assert [event.lanes for event in found] == [lanes]
    assert found[0].config & 0xFF == 0xC7
    assert found[0].config >> 8 == found[0].umask


@pytest.mark.parametrize(("family", "config"), [("23", 0xFF03), ("25", 0x0F03), ("26", 0x0F03)])
def test_zen_counts_lanes_itself(family, config):
    (event,) = events_of({"vendor_id": "AuthenticAMD", "cpu family": family})
    assert (event.config, event.lanes) == (config, 1)


@pytest.mark.parametrize(
    "cpuinfo",
    [{}, {"vendor_id": "AuthenticAMD", "cpu family": "21"}, {"vendor_id": "HygonGenuine", "cpu family": "24"}],
)
def test_other_processors_are_refused_with_what_is_known(cpuinfo):
    with pytest.raises(SensorError, match=r"no floating-point event is known.*Intel since Broadwell, AMD Zen"):
        events_of(cpuinfo)
