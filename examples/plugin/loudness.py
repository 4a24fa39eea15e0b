"""A subject, a workload and a meter for Speechmeter, each as small as it can be."""

import numpy as np

from speechmeter.core.axes import Axis, Option
from speechmeter.core.errors import SubjectError
from speechmeter.core.metrics import Metric
from speechmeter.core.protocols import Fed, Installed, Meter, Prepared
from speechmeter.core.types import Batch, Measurement, Stage


class RmsSubject:
    """`rms`: the loudness of each frame."""

    summary = "root mean square of each frame"
    axes = (Axis(name="frame", kind=int, default=160, help="samples in a frame", minimum=1),)
    options = ()
    takes = ("sound",)
    runs_code = False

    def installed(self):
        """The version, or what is missing; without a heavy import."""
        return Installed(version=f"numpy {np.__version__}")

    def check(self, case):
        """Refuse a model that cannot exist."""
        if case.subject.source:
            raise SubjectError(f"rms takes no source, not {case.subject.source!r}", fix="write `rms` alone")

    def unavailable(self, case):
        """Why this case cannot run here, or None."""
        return None if case.axes["device"] == "cpu" else "rms runs on the CPU only"

    def prepare(self, case, device):
        """Load everything; heavy imports belong here."""
        frame = case.axes["frame"]

        def rms(batch):
            whole = batch.data.shape[1] // frame * frame
            frames = batch.data[:, :whole].reshape(batch.items, -1, frame)
            return np.sqrt(np.square(frames).mean(axis=-1))

        return Prepared(stages=(Stage(name="model", fn=rms),))


class ToneWorkload:
    """`tones`: one batch of pure tones, a different pitch in each item."""

    axes = (
        Axis(name="seconds", kind=float, default=1.0, help="seconds of audio in each item", above=0),
        Axis(name="batch", kind=int, default=1, help="items in a call", minimum=1),
    )
    options = (Option(name="hertz", kind=float, default=220, help="pitch of the first item", above=0),)

    def check(self, case):
        """Refuse data that cannot be used."""
        return None

    def feeds(self, case):
        """Which kind of input the case feeds."""
        return Fed(kinds=("sound",))

    def batches(self, case):
        """The same batches every time."""
        items, samples = case.axes["batch"], round(case.axes["seconds"] * 16_000)
        time_s = np.arange(samples) / 16_000
        pitch = case.workload.options.get("hertz", 220) * (1 + np.arange(items)[:, None])
        yield Batch(
            data=np.sin(2 * np.pi * pitch * time_s).astype(np.float32),
            items=items,
            lengths=(samples,) * items,
            audio_s=items * samples / 16_000,
            padded_s=items * samples / 16_000,
        )


OUTPUT_VALUES = Metric(
    id="output_values.v1",
    unit="1",
    direction="neither",
    title="output values",
    formula="numbers in the output of one call",
    exact=True,
)


class OutputSizeMeter(Meter):
    """`output-size`: how many numbers a call returns."""

    name = "output-size"
    metrics = (OUTPUT_VALUES,)

    def measure(self, session):
        """The measurements of one process."""
        output = session.call(session.batches[0])[-1]
        if not hasattr(output, "shape"):
            return [Measurement.absent(OUTPUT_VALUES, "the output is not an array")]
        return [Measurement.of(OUTPUT_VALUES, [float(np.prod(output.shape))])]
