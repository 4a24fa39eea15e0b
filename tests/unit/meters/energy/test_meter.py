"""The energy meter in a simulated machine, where the energy of every call is known. Nothing here is timed."""

import time

import pytest
from conftest import make_case
from simulated_power import EPOCH_S, Simulated, Works, World, energy_meter, source

from speechmeter.core.protocols import Meter
from speechmeter.engine.measure import measure
from speechmeter.meters.energy.figures import METRICS, Load
from speechmeter.meters.energy.meter import EnergyMeter


def readings(world, subject, *sources, **case):
    meter = energy_meter(world, *sources)
    outcome = measure(make_case(**case), subject, subject, [meter])
    assert outcome.status == "ok", outcome.reason
    return {(m.metric, m.scope): m for m in outcome.measurements}


def test_it_is_a_meter_and_defines_every_figure():
    assert isinstance(EnergyMeter(), Meter)
    ids = {metric.id for metric in EnergyMeter.metrics}
    assert ids >= {"energy_gpu.v1", "energy_cpu_net.v1", "power_system.v1", "power_gpu_idle.v1"}
    assert len(ids) == 12


@pytest.mark.parametrize("phase_s", [0.0, 0.013, 0.05, 0.087])
@pytest.mark.parametrize("call_s", [0.007, 0.033, 0.25, 1.3])
def test_a_counter_that_ticks_gives_the_true_joules_of_a_call(phase_s, call_s):
    world = World(idle_w=100, extra_w=500)
    found = readings(world, Works(world, call_s), source(Simulated(world, phase_s=phase_s)))
    energy = found["energy_cpu.v1", "total"]
    assert len(energy.values) == 3
    assert list(energy.values) == pytest.approx([600 * call_s] * 3, rel=0.01)
    assert list(found["power_cpu.v1", "total"].values) == pytest.approx([600] * 3, rel=0.01)


@pytest.mark.parametrize("call_s", [0.02, 0.5])
def test_idle_is_subtracted(call_s):
    world = World(idle_w=100, extra_w=500)
    found = readings(world, Works(world, call_s), source(Simulated(world)))
    assert found["power_cpu_idle.v1", "total"].values == pytest.approx((100,), rel=0.01)
    assert list(found["energy_cpu_net.v1", "total"].values) == pytest.approx([500 * call_s] * 3, rel=0.01)
    assert found["energy_cpu.v1", "total"].notes["idle_w"] == pytest.approx(100, rel=0.01)


@pytest.mark.parametrize("period_s", [0.05, 0.1])
def test_a_power_sensor_is_integrated(period_s):
    world = World(idle_w=5, extra_w=10)
    found = readings(world, Works(world, 0.03), source(Simulated(world, counter=False, period_s=period_s)))
    assert list(found["energy_cpu.v1", "total"].values) == pytest.approx([15 * 0.03] * 3, rel=0.02)
    assert list(found["energy_cpu_net.v1", "total"].values) == pytest.approx([10 * 0.03] * 3, rel=0.02)


def test_calls_of_unlike_batches_are_averaged_over_whole_passes():
    world = World(idle_w=100, extra_w=500)
    subject = Works(world, 0.01, 0.4, 0.1)
    found = readings(world, subject, source(Simulated(world)))
    truth_j = 600 * (0.01 + 0.4 + 0.1) / 3
    assert list(found["energy_cpu.v1", "total"].values) == pytest.approx([truth_j] * 3, rel=0.01)
    assert found["energy_cpu.v1", "total"].notes["window_calls"] % 3 == 0


def errors_of(call_s, phase_s):
    """Worst relative errors of gross, of net, and of one reading before and one after about 2.1 s of calls."""
    world = World(idle_w=100, extra_w=500)
    sensor = Simulated(world, phase_s=phase_s)
    found = readings(world, Works(world, call_s), source(sensor))
    gross = max(abs(value / (600 * call_s) - 1) for value in found["energy_cpu.v1", "total"].values)
    net = max(abs(value / (500 * call_s) - 1) for value in found["energy_cpu_net.v1", "total"].values)
    world.pass_time(0.35)
    before_j, calls = sensor.read().energy_j, round(2.1 / call_s)
    world.work(call_s * calls)
    return gross, net, abs((sensor.read().energy_j - before_j) / calls / (600 * call_s) - 1)


def test_ticks_beat_start_and_stop_readings():
    """The figures of docs/reference/metrics/energy.md: four lengths of a call, ten positions of the tick."""
    errors = [errors_of(call_s, 0.0101 * step) for call_s in (0.007, 0.033, 0.25, 1.3) for step in range(10)]
    gross, net, naive = map(max, zip(*errors, strict=True))
    assert round(100 * gross, 1) == 0.3
    assert round(100 * net, 1) == 0.4
    assert round(100 * naive, 1) == 4.1


def test_windows_are_at_least_two_seconds_between_ticks():
    world = World()
    notes = readings(world, Works(world, 0.013), source(Simulated(world)))["energy_cpu.v1", "total"].notes
    assert min(notes["window_s"]) >= 2.0
    assert notes["calls"] == pytest.approx([seconds / 0.013 for seconds in notes["window_s"]], rel=0.01)
    assert notes["sensor"] == "simulated"


def test_the_window_is_noted_in_unix_time():
    world = World()
    began_s = world.now_s
    notes = readings(world, Works(world, 0.5), source(Simulated(world)))["energy_cpu.v1", "total"].notes
    start_s, end_s = notes["window_epoch"]
    assert began_s + EPOCH_S < start_s < end_s <= world.now_s + EPOCH_S
    assert end_s - start_s == pytest.approx(0.5 * notes["window_calls"])


@pytest.mark.parametrize(("call_s", "windows", "calls"), [(4.0, 3, 2), (11.0, 1, 2)])
def test_slow_calls_make_longer_windows_and_very_slow_ones_a_single_one(call_s, windows, calls):
    world = World(idle_w=100, extra_w=500)
    subject = Works(world, call_s)
    found = readings(world, subject, source(Simulated(world)))
    energy = found["energy_cpu.v1", "total"]
    assert list(energy.values) == pytest.approx([600 * call_s] * windows, rel=0.01)
    assert subject.calls == 1 + windows * calls


def test_sensors_of_one_domain_are_summed_and_side_rails_are_not():
    world = World(idle_w=100, extra_w=500)
    sensors = [
        Simulated(world, name="package-0"),
        Simulated(world, name="package-1", phase_s=0.03),
        Simulated(world, name="dram", whole=False),
    ]
    found = readings(world, Works(world, 0.03), source(*sensors))
    assert list(found["energy_cpu.v1", "total"].values) == pytest.approx([2 * 18] * 3, rel=0.01)
    assert found["energy_cpu.v1", "total"].source == "package-0 + package-1"
    assert list(found["energy_cpu.v1", "sensor:dram"].values) == pytest.approx([18] * 3, rel=0.01)
    assert [sensor.closed for sensor in sensors] == [1 + 1] * 3  # once for the question, once for the measurement


def test_the_first_source_of_a_domain_wins():
    world = World()
    first, second = Simulated(world, name="first"), Simulated(world, name="second")
    found = readings(world, Works(world, 0.03), source(first), source(second))
    assert found["energy_cpu.v1", "total"].source == "first"


def test_a_gpu_is_read_only_on_a_gpu_case():
    world = World()
    sensors = [Simulated(world, domain="gpu", name="card"), Simulated(world, domain="cpu", name="package")]
    on_cpu = readings(world, Works(world, 0.03), source(*sensors))
    assert ("energy_gpu.v1", "total") not in on_cpu
    on_cuda = readings(world, Works(world, 0.03), source(*sensors), device="cuda")
    assert on_cuda["energy_gpu.v1", "total"].source == "card"
    assert on_cuda["energy_cpu.v1", "total"].source == "package"


def test_a_domain_without_a_sensor_says_why_beside_one_that_has():
    world = World()
    none = source(name="powercap", reason="only root may read it")
    found = readings(world, Works(world, 0.03), source(Simulated(world, domain="system")), none)
    assert found["energy_system.v1", "total"].values
    assert found["energy_cpu.v1", "total"].unavailable == "powercap: only root may read it"
    assert found["energy_cpu.v1", "total"].values == ()
    assert ("energy_cpu_net.v1", "total") not in found


def test_without_any_sensor_the_reasons_of_all_sources_stand_in_one_line():
    world = World()
    subject = Works(world, 0.03)
    found = readings(world, subject, source(name="powercap", reason="missing"), source(name="hwmon", reason="no chip"))
    (only,) = [m for (metric, _), m in found.items() if metric.startswith(("energy", "power"))]
    assert only.unavailable == "no energy sensor: powercap: missing; hwmon: no chip"
    assert subject.calls == 1


def test_a_sensor_that_fails_midway_is_absent_and_the_others_are_not_touched():
    world = World()
    broken = Simulated(world, domain="system", name="rail", fails_at_s=world.now_s + 6)
    found = readings(world, Works(world, 0.03), source(Simulated(world)), source(broken))
    assert found["energy_system.v1", "total"].unavailable == "rail failed: the bus is gone"
    assert ("energy_system_net.v1", "total") not in found
    assert len(found["energy_cpu.v1", "total"].values) == 3


def test_one_of_two_packages_failing_leaves_no_total():
    world = World()
    broken = Simulated(world, name="package-1", fails_at_s=world.now_s + 6)
    found = readings(world, Works(world, 0.03), source(Simulated(world), broken))
    assert found["energy_cpu.v1", "total"].values == ()


def test_a_counter_that_stands_still_is_no_zero():
    world = World()
    found = readings(world, Works(world, 0.03), source(Simulated(world, tick_s=1e6)))
    assert "did not change" in found["energy_cpu.v1", "total"].unavailable


def write_log(world, path, *, until_s, every_s=0.5):
    """An external meter: appends the world's watts in Unix time until it is switched off."""
    path.write_text("time_s,watts\n")
    due_s = [world.now_s]

    def write():
        if world.now_s >= due_s[0] and world.now_s < until_s:
            due_s[0] += every_s
            with path.open("a") as file:
                file.write(f"{world.now_s + EPOCH_S:.3f},{world.power_w}\n")

    world.each_step.append(write)
    world.pass_time(2)


def test_an_external_log_is_the_systems_energy(tmp_path):
    world = World(idle_w=40, extra_w=60)
    write_log(world, tmp_path / "log.csv", until_s=1e9)
    log = {"power_log": str(tmp_path / "log.csv")}
    found = readings(world, Works(world, 0.05), source(Simulated(world)), protocol=log)
    system = found["energy_system.v1", "total"]
    assert system.source == "power log"
    assert list(system.values) == pytest.approx([100 * 0.05] * 3, rel=0.05)
    assert found["power_system_idle.v1", "total"].values == pytest.approx((40,), rel=0.01)
    assert found["energy_cpu.v1", "total"].values


def write_reports(world, folder, *, until_s=1e9, every_s=1.4):
    """powertop in iterations: a file is opened when a measurement begins, and written when it ends."""
    opened, due_s = [], [world.now_s]

    def write():
        if world.now_s < due_s[0] or world.now_s >= until_s:
            return
        due_s[0] += every_s
        if opened:
            opened[-1].write_text(f"PowerTOP\nThe battery reports a discharge rate of: ;{world.power_w:.4g}  W;\n")
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(world.now_s + EPOCH_S))
        opened.append(folder / f"powertop-{stamp}.csv")
        opened[-1].write_text("")

    world.each_step.append(write)
    world.pass_time(6)
    return {"power_log": str(folder / "powertop.csv")}


def test_the_files_of_powertop_are_the_systems_energy(tmp_path):
    world = World(idle_w=40, extra_w=60)
    log = write_reports(world, tmp_path)
    found = readings(world, Works(world, 0.05), source(Simulated(world)), protocol=log)
    system = found["energy_system.v1", "total"]
    assert system.source == "powertop reports"
    assert list(system.values) == pytest.approx([100 * 0.05] * 3, rel=0.01)
    assert found["power_system.v1", "total"].values == pytest.approx((100,) * 3)
    assert found["power_system_idle.v1", "total"].values == pytest.approx((40,))


def test_powertop_that_ended_before_the_calls_gives_no_figure(tmp_path):
    world = World()
    log = write_reports(world, tmp_path, until_s=world.now_s + 12)
    found = readings(world, Works(world, 0.05), source(Simulated(world)), protocol=log)
    system = found["energy_system.v1", "total"]
    assert system.values == () and "measurements lie inside the window" in system.unavailable


def test_a_log_that_stops_short_is_refused(tmp_path):
    world = World()
    write_log(world, tmp_path / "log.csv", until_s=world.now_s + 9)
    log = {"power_log": str(tmp_path / "log.csv")}
    found = readings(world, Works(world, 0.05), source(Simulated(world)), protocol=log)
    assert "the window is" in found["energy_system.v1", "total"].unavailable
    assert found["energy_cpu.v1", "total"].values


def test_a_log_alone_is_enough_and_a_missing_one_is_named(tmp_path):
    world = World()
    meter = energy_meter(world, source(name="powercap", reason="missing"))
    missing = make_case(protocol={"power_log": str(tmp_path / "log.csv")})
    assert "log.csv cannot be read: No such file" in meter.unavailable(missing)
    (tmp_path / "log.csv").write_text("time_s,watts\n")
    assert meter.unavailable(missing) is None


def test_a_call_that_fails_ends_the_watch():
    world = World()
    subject = Works(world, 0.03)
    hooks = list(world.each_step)
    subject.seconds = ("not a number",)
    outcome = measure(make_case(), subject, subject, [energy_meter(world, source(Simulated(world)))])
    assert outcome.status == "error"
    assert len(world.each_step) == len(hooks) + 1  # the sensor's own clockwork


def test_passes_under_way_count_by_their_share():
    load = Load(stamps_s=(0.0, 1.0, 3.0, 4.0), edges=(0, 3), calls_per_pass=2)
    assert load.calls_between(0.5, 2.0) == pytest.approx(2.0)
    assert load.calls_between(-1.0, 9.0) == load.calls == 6


def test_every_domain_has_four_figures():
    assert set(METRICS) == {"gpu", "cpu", "system"}


def test_power_is_read_while_others_converse():
    world = World(idle_w=100, extra_w=500)
    meter = energy_meter(world, source(Simulated(world)))
    with meter.watching(make_case(), None) as found:
        world.work(3.0)
    by_id = {one.metric: one for one in found}
    assert by_id["power_cpu.v1"].values == pytest.approx((600,), rel=0.01)
    assert by_id["power_system.v1"].unavailable
    with meter.watching(make_case(), None) as found:
        pass  # too short for a tick
    assert {one.metric: one for one in found}["power_cpu.v1"].unavailable
