"""How far a loss is from the oracle, as it was found before anything was timed."""

from __future__ import annotations

from speechmeter.core import metrics
from speechmeter.core.protocols import Meter, Session
from speechmeter.core.types import Measurement


class AgreementMeter(Meter):
    """Deviations of loss and gradient, in total and for each trial; nothing is computed here."""

    name = "agreement"
    metrics = (metrics.LOSS_DEVIATION, metrics.GRADIENT_DEVIATION)

    def measure(self, session: Session) -> list[Measurement]:
        """What preparing found, or the reason why there is no reference."""
        own = {metric.id for metric in self.metrics}
        found = [m for m in session.prepared.found if m.metric in own]
        return found or [
            Measurement.absent(
                metrics.LOSS_DEVIATION,
                "this model is not a transducer loss, so there is no reference to compare it with",
            )
        ]
