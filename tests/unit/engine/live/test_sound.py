"""Sound as a system gives it: what is read, and what is refused with the reason."""

import numpy as np
import pytest

from speechmeter.core.errors import ConversationError
from speechmeter.core.live import Event
from speechmeter.core.types import Speech
from speechmeter.engine.live.sound import SoundTaken, samples_of

TONE = (0.5 * np.sin(np.arange(400) / 10)).astype("float32")


def take(*pieces):
    taken = SoundTaken()
    for samples, rate in pieces:
        taken.take(Event(kind="audio", moment_s=0.0, sound=Speech(samples=samples, rate=rate)))
    return taken


@pytest.mark.parametrize("scale", [1 << 15, 1 << 31])
def test_integers_are_scaled_by_their_type(scale):
    given = np.array([0, scale // 2, -scale], dtype="int16" if scale == 1 << 15 else "int32")
    assert samples_of(given).tolist() == [0.0, 0.5, -1.0]


@pytest.mark.parametrize("given", [TONE.astype("float64"), TONE.tolist(), TONE.astype("float16"), TONE * 3])
def test_floats_of_any_width_are_read_even_a_little_above_full_scale(given):
    assert samples_of(given).dtype == np.float32
    assert np.allclose(samples_of(given), np.asarray(given), atol=1e-3)


def test_a_buffer_that_is_used_again_keeps_what_was_said():
    buffer = TONE.copy()
    taken = take((buffer, 16_000))
    buffer[:] = 0
    assert np.array_equal(taken.speech().samples, TONE)


@pytest.mark.parametrize(
    ("pieces", "reason"),
    [
        ([(np.array([40_000, -70_000]), 16_000)], "samples of type int64; give float32 from -1 to 1, or int16"),
        ([(TONE > 0, 16_000)], "samples of type bool"),
        ([(TONE.astype("complex64"), 16_000)], "samples of type complex64"),
        ([(np.frombuffer(b"RIFF", "S4"), 16_000)], "samples of type |S4"),
        ([(TONE * 32_768, 16_000)], "full scale is 1: divide 16-bit samples by 32768"),
        ([(np.array([0.1, np.nan], "float32"), 16_000)], "not finite (NaN or infinity)"),
        ([(np.array([0.1, np.inf], "float32"), 16_000)], "not finite (NaN or infinity)"),
        ([(np.stack([TONE, TONE]), 16_000)], "the shape (2, 400); give one row of samples (mono)"),
        ([(TONE, 16_000), (TONE, 22_050)], "changes from 16000 to 22050 Hz"),
        ([(TONE, 0)], "the sampling rate of the sound is 0 Hz; 1000 to 384000 are read"),
        ([(np.broadcast_to(np.float32(0), 3_700_000), 1_000)], "more than 3600 s of sound"),
    ],
)
def test_what_is_no_sound_is_refused_with_the_reason(pieces, reason):
    with pytest.raises(ConversationError) as caught:
        take(*pieces)
    assert reason in str(caught.value) and caught.value.kind == "garbage"
