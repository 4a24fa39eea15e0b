"""How far a loss is from the oracle: what was found out before anything was timed, told as figures."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from speechmeter.core import metrics
from speechmeter.core.protocols import ORDINARY, Phase, Session
from speechmeter.core.types import Case, Measurement


class AgreementMeter:
    """Deviations of loss and gradient, in total and for each trial; nothing is computed here."""

    name = "agreement"
    metrics = (metrics.LOSS_DEVIATION, metrics.GRADIENT_DEVIATION)
    environ: Mapping[str, str] = MappingProxyType({})
    ways = ORDINARY
    phase = Phase.TIMING

    def unavailable(self, case: Case) -> str | None:
        """Only the prepared subject can say."""
        return None

    def measure(self, session: Session) -> list[Measurement]:
        """What preparing found; the reason where the subject is none that is held against a truth."""
        own = {metric.id for metric in self.metrics}
        found = [m for m in session.prepared.found if m.metric in own]
        return found or [Measurement.absent(metrics.LOSS_DEVIATION, "the subject is not held against an oracle")]
