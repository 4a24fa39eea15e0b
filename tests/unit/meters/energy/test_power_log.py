"""Logs of external meters: what is integrated, and what is refused."""

import time
from pathlib import Path

import pytest

from speechmeter.core.errors import SensorError
from speechmeter.meters.energy.power_log import parse_log, powertop_watts, read_log, trapezoid

RECORDED = Path(__file__).parent / "recorded"
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
    with pytest.raises(SensorError, match=r"gap of 60.0 s, but a window lasts 2.0 s"):
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
        ("time_s,watts\n1,ten\n", "line 2: a line must hold two numbers, not '1,ten'"),
        ("time_s,watts\n1,2\n2,nan\n", "line 3: '2,nan' is not a finite number"),
        ("time_s,watts\n1\n", "a line must hold two numbers"),
        ("time_s,watts\n2,1\n1,1\n", "has times that decrease"),
    ],
)
def test_what_is_no_log_is_named(text, says):
    with pytest.raises(SensorError, match=says):
        parse_log(text, name="log")


def test_a_log_without_samples_covers_nothing():
    empty = parse_log("time_s,watts\n", name="log")
    assert not empty.covers(0)
    with pytest.raises(SensorError, match="contains no reading"):
        empty.energy_j(0, 1)


BATTERY = (RECORDED / "powertop-battery.csv").read_text()
NOON_S = time.mktime((2026, 11, 15, 12, 0, 0, 0, 0, -1))


def reports(folder, *watts, every_s=2, name="powertop{}.csv", begin_s=NOON_S):
    """What `powertop --csv=powertop.csv --iteration=N` leaves: the last file is opened and not yet written."""
    for place, each in enumerate([*watts, None]):
        stamp = time.strftime("-%Y%m%d-%H%M%S", time.localtime(begin_s + every_s * place))
        text = "" if each is None else BATTERY.replace("12.5  W", f"{each}  W")
        (folder / name.format(stamp)).write_text(text)
    return folder / name.format("")


@pytest.mark.parametrize(("name", "watts"), [("powertop-battery.csv", 12.5), ("powertop-battery-comma.csv", 0.85)])
def test_a_powertop_report_holds_the_battery_s_watts(name, watts):
    assert powertop_watts((RECORDED / name).read_text()) == watts


def test_a_single_powertop_report_cannot_be_tied_to_calls():
    with pytest.raises(SensorError, match=r"not when it ended.*with --iteration=N"):
        read_log(RECORDED / "powertop-battery.csv")


def test_powertop_s_files_are_averaged_over_those_that_lie_inside_the_window(tmp_path):
    found = read_log(reports(tmp_path, 10, 20, 40, 60, 99))  # they begin at 0, 2, 4, 6 and 8 s; the next file at 10 s
    assert found.interval_s == 2
    # from 1 to 9.5 s: the first began before, the fifth may have ended up to 11 s, the others lie inside
    assert found.energy_j(NOON_S + 1, NOON_S + 9.5) == pytest.approx(8.5 * (20 + 40 + 60) / 3)
    assert found.energy_j(NOON_S, NOON_S + 5.5) == pytest.approx(5.5 * (10 + 20) / 2)


def test_powertop_s_energy_line_is_not_used(tmp_path):
    """It multiplies by the watts of the measurement before: of 5 W and then 15 W over 2 s it prints 10 J."""
    path = reports(tmp_path, 15, 15, 15, 15)
    for file in tmp_path.iterdir():
        file.write_text(file.read_text().replace("250  J", "10.0  J"))
    assert read_log(path).energy_j(NOON_S, NOON_S + 10) == pytest.approx(150)


def test_powertop_covers_a_moment_once_a_later_file_is_opened(tmp_path):
    found = read_log(reports(tmp_path, 10, 10))
    assert found.covers(NOON_S + 5) and not found.covers(NOON_S + 5.5)


@pytest.mark.parametrize("window", [(-20, -10), (100, 110), (0, 3)])
def test_a_window_without_two_powertop_measurements_is_refused(tmp_path, window):
    found = read_log(reports(tmp_path, 10, 20, 40, 60))
    with pytest.raises(SensorError, match=r"of 5 measurements lie inside the window .* 2 are needed.*--time=1"):
        found.energy_j(NOON_S + window[0], NOON_S + window[1])


def test_a_pause_of_powertop_is_not_bridged(tmp_path):
    reports(tmp_path, 10, 10)
    path = reports(tmp_path, 50, 50, begin_s=NOON_S + 60)
    with pytest.raises(SensorError, match="1 of 6 measurements"):  # the one from 2 to 4 s
        read_log(path).energy_j(NOON_S + 1, NOON_S + 30)


@pytest.mark.parametrize("name", ["powertop{}.log", "powertop{}", "a-b{}.csv"])
def test_powertop_s_files_are_found_by_the_name_given_to_it_and_by_one_of_their_own(tmp_path, name):
    (tmp_path / "other-20261115-120000.csv").write_text("PowerTOP")
    base = reports(tmp_path, 10, 20, 30, name=name)
    one = tmp_path / name.format("-20261115-120002")
    for path in (base, one):
        assert read_log(path).energy_j(NOON_S, NOON_S + 7) == pytest.approx(7 * 20)


def test_powertop_on_the_mains_is_named_at_once(tmp_path):
    path = reports(tmp_path, 10, 10)
    for file in tmp_path.iterdir():
        file.write_text((RECORDED / "powertop-mains.csv").read_text())
    with pytest.raises(SensorError, match=r"powertop-20261115-120002.csv: the powertop report holds no watts"):
        read_log(path)


def test_a_powertop_report_from_the_mains_has_no_watts():
    with pytest.raises(SensorError, match="no watts"):
        powertop_watts((RECORDED / "powertop-mains.csv").read_text())


def test_a_trapezoid_of_one_point_has_no_area():
    assert trapezoid([1], [5]) == 0
