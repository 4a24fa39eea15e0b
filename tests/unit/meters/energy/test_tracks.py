"""Ticks, trapezoids, and the threads that take readings."""

from itertools import count
from threading import Event

import pytest

from speechmeter.core.errors import SensorError
from speechmeter.meters.energy.sensors import Reading
from speechmeter.meters.energy.tracks import SensorTrack, counter_knots, power_knots, watching


def counter(*pairs):
    return [Reading(at_s=at_s, energy_j=joules) for at_s, joules in pairs]


class Fixed:
    name, domain, whole, period_s = "fixed", "cpu", True, 0.001

    def __init__(self, readings, *, is_counter=True):
        self.counter = is_counter
        self._readings = iter(readings)
        self.exhausted = Event()

    def read(self):
        try:
            return next(self._readings)
        except StopIteration:
            self.exhausted.set()
            raise SensorError("no more") from None

    def close(self):
        return None


def test_a_tick_lies_between_the_readings_around_it():
    readings = counter((0.0, 5), (0.02, 5), (0.04, 7), (0.06, 7), (0.08, 7), (0.10, 9))
    assert counter_knots(readings) == [(pytest.approx(0.03), 7), (pytest.approx(0.09), 9)]


def test_a_counter_faster_than_its_readings_is_taken_at_them():
    readings = counter((0.0, 1), (0.1, 2), (0.2, 3), (0.3, 4))
    assert counter_knots(readings)[1:] == [(0.2, 3), (0.3, 4)]


def test_power_is_a_sum_of_trapezoids():
    readings = [Reading(at_s=at_s, power_w=watts) for at_s, watts in [(1, 10), (2, 20), (4, 20)]]
    assert power_knots(readings) == [(1, 0), (2, 15), (4, 55)]


def test_a_span_keeps_to_the_ticks_inside_its_window():
    readings = counter((0, 0), (1, 10), (2, 20), (3, 30), (4, 40))
    track = SensorTrack(sensor=Fixed([]), readings=readings)
    span = track.energy(1.5, 3.5)
    assert (span.start_s, span.end_s, span.energy_j) == (2, 3, 10)
    assert span.mean_w == 10


@pytest.mark.parametrize(
    ("readings", "window", "says"),
    [
        (counter((0, 5), (1, 5), (2, 5)), (0, 2), "did not change in 2.0 s"),
        (counter((0, 5), (1, 9), (2, 3)), (0, 2), "decreased"),
    ],
)
def test_a_counter_that_cannot_be_trusted_is_refused(readings, window, says):
    with pytest.raises(SensorError, match=says):
        SensorTrack(sensor=Fixed([]), readings=readings).energy(*window)


def test_sensors_are_read_in_the_background_until_they_fail_or_the_watch_ends():
    ending, endless = Fixed(counter((0, 0), (1, 1), (2, 2))), Fixed(Reading(at_s=i, energy_j=i) for i in count())
    tracks = [SensorTrack(sensor=ending), SensorTrack(sensor=endless)]
    with watching(tracks):
        assert ending.exhausted.wait(timeout=60)
    assert len(tracks[0].readings) == 3
    assert tracks[0].failure == "no more"
    assert tracks[1].readings
    assert not tracks[1].failure


def test_any_exception_of_a_sensor_is_its_failure():
    class Broken(Fixed):
        def read(self):
            raise ZeroDivisionError("oops")

    track = SensorTrack(sensor=Broken([]))
    assert track.poll() is False
    assert track.failure == "ZeroDivisionError: oops"
