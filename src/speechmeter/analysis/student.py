"""Student's t for intervals and tests over rounds."""

from __future__ import annotations

import math


def t_quantile(degrees: float, level: float = 0.975) -> float:
    """A quantile of Student's t. Usual numbers of rounds need no scipy, whose import costs 0.4 s."""
    if level == 0.975 and degrees == int(degrees) and 1 <= degrees <= len(_T_975):
        return _T_975[int(degrees) - 1]
    from scipy.special import ndtri, stdtrit

    return float(ndtri(level)) if math.isinf(degrees) else float(stdtrit(degrees, level))


def t_tail(t: float, degrees: float) -> float:
    """The probability that Student's t exceeds a value."""
    from scipy.special import ndtr, stdtr

    return float(ndtr(-t)) if math.isinf(degrees) else float(stdtr(degrees, -t))


_T_975 = (
    12.706204736174694, 4.302652729749462, 3.1824463052837078, 2.7764451051977934, 2.5705818356363146,
    2.4469118511449786, 2.364624251592784, 2.306004135204166, 2.262157162798205, 2.228138851986274,
    2.200985160091639, 2.1788128296672284, 2.1603686564627913, 2.144786687917804, 2.131449545559776,
    2.1199052992212546, 2.1098155778333156, 2.1009220402410382, 2.0930240544083087, 2.085963447265864,
    2.0796138447276795, 2.0738730679040254, 2.0686576104190486, 2.0638985616280245,
)  # fmt: skip
