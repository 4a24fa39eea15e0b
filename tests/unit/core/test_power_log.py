"""Logs of external meters: what is integrated, and what is refused."""

import time
from pathlib import Path

import pytest

from speechmeter.core.errors import SensorError
from speechmeter.core.power_log import parse_log, powertop_watts, read_log, trapezoid

RECORDED = Path(__file__).parent.parent / "meters/energy/sensors/recorded"
START_S = 1_760_000_000


def log(*rows):
    return parse_log("time_s,watts\n" + "".join(f"{t},{w}\n" for t, w in rows), name="log")


def test_a_recorded_log_is_integrated_between_any_two_moments():
    found = read_log(RECORDED / "external.csv")
    assert found.interval_s == 1
    assert found.energy_j(START_S, START_S + 6) == pytest.approx(10 + 20 + 40 + 50 + 50 + 30)
    assert found.energy_j(START_S + 1.5, START_S + 2.5) == pytest.approx(0.5 * (20 + 30) / 2 + 0.5 * (30 + 40) / 2)
    assert found.energy_j(START_S + 3.25, START_S + 4.5) == pytest.approx(50 * 1.25)


@pytest.mark.parametrize("window", [(START_S - 1, START_S + 2), (START_S + 2, START_S + 7)])
def test_a_log_that_does_not_cover_the_window_is_refused(window):
    with pytest.raises(SensorError, match=r"covers 1760000000.0 to 1760000006.0, the window is"):
        read_log(RECORDED / "external.csv").energy_j(*window)


def test_a_hole_longer_than_the_window_is_refused():
    with pytest.raises(SensorError, match=r"hole of 60.0 s, the window is 2.0 s"):
        log((0, 10), (1, 10), (61, 10), (62, 10)).energy_j(30, 32)
    assert log((0, 10), (1, 10), (61, 10), (62, 10)).energy_j(0, 62) == pytest.approx(620)


def test_the_last_line_of_a_growing_log_waits_for_its_end():
    text = "time_s,watts\n1,10\n2,1"
    assert parse_log(text, name="log").times_s == (1,)
    assert parse_log(text + "25\n", name="log").watts == (10, 125)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "first line must be time_s,watts"),
        ("seconds,power\n1,2\n", "first line must be time_s,watts"),
        ("time_s,watts\n1,ten\n", "line 2: two numbers are needed, not '1,ten'"),
        ("time_s,watts\n1,2\n2,nan\n", "line 3: '2,nan' is not a finite number"),
        ("time_s,watts\n1\n", "two numbers are needed"),
        ("time_s,watts\n2,1\n1,1\n", "goes back in time"),
    ],
)
def test_what_is_no_log_is_named(text, says):
    with pytest.raises(SensorError, match=says):
        parse_log(text, name="log")


def test_a_log_without_samples_covers_nothing():
    empty = parse_log("time_s,watts\n", name="log")
    assert not empty.covers(0)
    with pytest.raises(SensorError, match="holds no sample"):
        empty.energy_j(0, 1)


@pytest.mark.parametrize(("name", "watts"), [("powertop-battery.csv", 12.5), ("powertop-battery-comma.csv", 0.85)])
def test_a_powertop_report_is_a_log_of_its_mean(name, watts):
    found = read_log(RECORDED / name)
    start_s = time.mktime((2026, 11, 15, 12, 0, 47, 0, 0, -1))
    assert found.times_s[0] == start_s
    assert found.times_s[-1] == pytest.approx(start_s + 20)
    assert found.energy_j(start_s + 5, start_s + 7) == pytest.approx(2 * watts)
    with pytest.raises(SensorError, match="the window is"):
        found.energy_j(start_s + 19, start_s + 21)


def test_a_powertop_report_from_the_mains_has_no_watts():
    with pytest.raises(SensorError, match="no watts"):
        powertop_watts((RECORDED / "powertop-mains.csv").read_text())


def test_a_trapezoid_of_one_point_has_no_area():
    assert trapezoid([1], [5]) == 0
