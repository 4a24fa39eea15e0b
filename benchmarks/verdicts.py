"""How often are the verdicts, intervals and stops of Speechmeter wrong? By simulation, where the truth is known.

    python benchmarks/verdicts.py [--sets 1000] [--jobs 2]     about 20 minutes; exit 1 when a limit is broken

Four tables in Markdown, as docs/explanation/statistics.md has them; each says what its noise is:

1. grids of 60 cells compared at once, cells independent and correlated within rounds;
2. adaptive rounds: coverage of their intervals, and false verdicts on two unchanged runs;
3. two runs that carry an offset which no round shows;
4. word error rates with rare bad utterances.

A Monte-Carlo share of n sets is given with its 95 % interval (Clopper and Pearson). A limit holds when the interval
reaches it.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product

import numpy as np

from speechmeter.analysis.compare import Between, judged
from speechmeter.analysis.difference import Variance, independent, moderated, paired
from speechmeter.analysis.family import Family, alone, together
from speechmeter.analysis.intervals import over_rounds, t_quantile
from speechmeter.analysis.rate_intervals import rate_interval
from speechmeter.analysis.stopping import Rounds
from speechmeter.core import metrics
from speechmeter.core.axes import Axes
from speechmeter.core.protocol import OtherProtocol
from speechmeter.core.types import Case, Pilot, Spec

SD, EFFECT, CELLS = 0.07, 0.05, 60
ADAPTIVE = Rounds(least=5, most=20, precision=0.05)
SPEC = Spec(plugin="simulated", name="simulated")
NONE = OtherProtocol()
CASES = [Case(subject=SPEC, workload=SPEC, axes=Axes({"batch": n}), meters=(), protocol=NONE) for n in range(CELLS)]

Noise = Callable[[np.random.Generator, int], np.ndarray]
BROKEN = " **broken**"


def share(count: int, total: int, *, most: float | None = None, least: float | None = None) -> str:
    """`4.2 % (3.0–5.6)`, and a mark where a limit is broken."""
    from scipy.stats import binomtest

    ends = binomtest(count, total).proportion_ci(0.95, method="exact")
    bad = (most is not None and ends.low > most) or (least is not None and ends.high < least)
    return f"{count / total:.1%} ({ends.low:.1%}–{ends.high:.1%})" + (BROKEN if bad else "")


def table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> int:
    """Print a Markdown table as its rows come; the number of broken limits."""
    print(f"\n### {title}\n\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)
    broken = 0
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)
        broken += sum(cell.endswith(BROKEN) for cell in row)
    return broken


# 1. Grids


def grid(draw: np.random.Generator, rounds: int, shared: float, changes: Sequence[float]) -> list:
    """Verdicts on paired cells; `shared` is the correlation of cells within a round."""
    common = draw.normal(size=rounds)
    logs = SD * (math.sqrt(shared) * common + math.sqrt(1 - shared) * draw.normal(size=(CELLS, rounds)))
    zero = dict.fromkeys(range(rounds), 0.0)
    found = []
    for cell in range(CELLS):
        change = math.log1p(changes[cell]) if cell < len(changes) else 0.0
        difference = paired(zero, dict(enumerate(logs[cell] + change)))
        assert difference is not None
        found.append(judged(CASES[cell], metrics.LATENCY, difference, EFFECT))
    return found


def exits(rule: Callable[[Sequence], Family], sets: int, rounds: int, shared: float, changes: Sequence[float]) -> list:
    draw = np.random.default_rng([rounds, int(100 * shared), len(changes), int(1000 * sum(changes))])
    return [rule(grid(draw, rounds, shared, changes)).exit_code() for _ in range(sets)]


def grid_row(sets: int, setting: tuple[float, int]) -> Sequence[str]:
    """One line: `setting` is the correlation of cells within a round, and the rounds."""
    shared, rounds = setting
    same = exits(together, sets, rounds, shared, [])
    before = exits(alone, sets // 5, rounds, shared, [])
    one20, one10 = (exits(together, sets // 2, rounds, shared, [change]) for change in (0.2, 0.1))
    all5, all10 = (exits(together, sets // 5, rounds, shared, [change] * CELLS) for change in (0.05, 0.1))
    return (
        f"{shared:g}",
        str(rounds),
        share(same.count(1), len(same), most=0.05),
        share(same.count(0), len(same), least=0.8 if rounds == 8 and shared <= 0.2 else None),
        f"{before.count(1) / len(before):.0%}",
        share(one20.count(1), len(one20), least=0.9 if rounds == 8 else None),
        share(one10.count(1), len(one10)),
        f"{all5.count(1) / len(all5):.0%}",
        f"{all10.count(1) / len(all10):.0%}",
    )


# 2. Adaptive rounds


def _alike(draw: np.random.Generator, n: int) -> np.ndarray:
    found = np.empty(n)
    found[0] = draw.normal(0, 0.1)
    for place in range(1, n):
        found[place] = 0.3 * found[place - 1] + draw.normal(0, 0.1 * math.sqrt(1 - 0.09))
    return found


STOPS = ((6, 6), (7, 12), (13, 19), (20, 20))
NOISES: dict[str, Noise] = {
    "lognormal, sd 0.03": lambda draw, n: draw.normal(0, 0.03, n),
    "lognormal, sd 0.1": lambda draw, n: draw.normal(0, 0.1, n),
    "lognormal, sd 0.2": lambda draw, n: draw.normal(0, 0.2, n),
    "heavy tails (t, 3 degrees, scale 0.05)": lambda draw, n: 0.05 * draw.standard_t(3, n),
    "slow now and then (10 % of rounds +30 %, sd 0.05)": lambda draw, n: (
        draw.normal(0, 0.05, n) + 0.26 * (draw.random(n) < 0.1)
    ),
    "neighbours alike (autocorrelation 0.3, sd 0.1)": _alike,
}


def needed(pilot: Pilot) -> int:
    wanted = math.ceil((t_quantile(pilot.degrees) * pilot.sd / math.log1p(ADAPTIVE.precision)) ** 2)
    return min(ADAPTIVE.most, max(pilot.rounds + 1, wanted))


def two_stages(draw: np.random.Generator, noise: Noise, cases: int) -> list[tuple[dict[int, float], Pilot]]:
    """Adaptive rounds of cases that are measured together: values by round, and what their number was chosen from."""
    values = [noise(draw, ADAPTIVE.most) for _ in range(cases)]
    first = [Variance(value=float(row[:5].var(ddof=1)), degrees=4) for row in values]
    pilots = [Pilot(rounds=5, sd=math.sqrt(one.value), degrees=one.degrees) for one in moderated(first)]
    return [(dict(enumerate(row[: needed(pilot)])), pilot) for row, pilot in zip(values, pilots, strict=True)]


def look_each_round(values: np.ndarray) -> int:
    """The rule before: after every round, stop when the interval is narrow enough."""
    for rounds in range(ADAPTIVE.least, ADAPTIVE.most):
        _, low, high = over_rounds(list(np.exp(values[:rounds])), exact=False)
        if low is not None and high is not None and math.log(high / low) / 2 <= math.log1p(ADAPTIVE.precision):
            return rounds
    return ADAPTIVE.most


def covered(values: dict[int, float], pilot: Pilot, truth: float) -> bool:
    half = t_quantile(pilot.degrees) * pilot.sd / math.sqrt(len(values))
    return abs(float(np.mean(list(values.values()))) - truth) <= half


def adaptive_row(sets: int, setting: tuple[str, int]) -> Sequence[str]:
    """One line: `setting` is the noise, and how many cases are measured together."""
    name, cases = setting
    noise, number = NOISES[name], list(NOISES).index(name)
    centre = np.random.default_rng(99)
    truth = float(np.mean([noise(centre, 20).mean() for _ in range(50_000)]))
    draw = np.random.default_rng([number, cases])
    runs = [one for _ in range(max(1, sets // cases)) for one in two_stages(draw, noise, cases)]
    held = [covered(*one, truth) for one in runs]
    lengths = [len(values) for values, _ in runs]
    is_lognormal = name.startswith("lognormal")
    pairs = [independent(runs[n][0], runs[n + 1][0], (5, 5)) for n in range(0, len(runs) - 1, 2)]
    words = [judged(CASES[0], metrics.LATENCY, pair, 0.02, is_paired=False).word for pair in pairs if pair]
    false = sum(word in ("SLOWER", "FASTER") for word in words)
    return (
        name,
        str(cases),
        share(sum(held), len(held), least=0.93 if is_lognormal else None),
        *(_covered_with(least, most, held, lengths) for least, most in STOPS),
        share(false, len(words), most=0.05 if is_lognormal else None),
        f"{np.mean(lengths):.1f}",
        _before(noise, truth, number, sets // 2) if cases == 1 else "",
    )


def _covered_with(least: int, most: int, held: Sequence[bool], lengths: Sequence[int]) -> str:
    """Coverage of the cases that got so many rounds, and how many of all cases they are."""
    some = [ok for ok, length in zip(held, lengths, strict=True) if least <= length <= most]
    return f"{np.mean(some):.0%} of {len(some) / len(held):.0%}" if some else "–"


def _before(noise: Noise, truth: float, seed: int, sets: int) -> str:
    draw = np.random.default_rng([seed, 7])
    held, early = 0, []
    for _ in range(sets):
        values = noise(draw, ADAPTIVE.most)
        rounds = look_each_round(values)
        _, low, high = over_rounds(list(np.exp(values[:rounds])), exact=False)
        ok = low is not None and high is not None and low <= math.exp(truth) <= high
        held += ok
        early += [ok] if rounds == ADAPTIVE.least else []
    return f"{held / sets:.0%}; {np.mean(early):.0%} of those that ended at 5" if early else f"{held / sets:.0%}"


# 3. Two runs at different times

NOTHING_KNOWN = "nothing known"


def offset_row(sets: int, setting: tuple[float, float]) -> Sequence[str]:
    """One line: `setting` is the sd of the offset between runs, and the true change."""
    offset, truth = setting
    draw = np.random.default_rng([int(100 * offset), int(100 * truth)])
    counts = {NOTHING_KNOWN: 0, "allowance of 5 %": 0, "spread of 12 earlier runs": 0}
    for _ in range(sets):
        earlier = draw.normal(0, offset, 12) + draw.normal(0, SD / math.sqrt(8), 12)
        base, new = (
            dict(enumerate(shift + draw.normal(0, SD, 8)))
            for shift in (draw.normal(0, offset), math.log1p(truth) + draw.normal(0, offset))
        )
        difference = independent(base, new)
        assert difference is not None
        for name, between in _between(earlier).items():
            known = _with(difference, between)
            counts[name] += judged(CASES[0], metrics.LATENCY, known, EFFECT, is_paired=False).word == "SLOWER"
    limits = {name: 0.05 if not truth and name != NOTHING_KNOWN else None for name in counts}
    return f"{offset:.0%}", f"+{truth:.0%}", *(share(count, sets, most=limits[name]) for name, count in counts.items())


def _between(earlier: np.ndarray) -> dict[str, Between | None]:
    steps = np.abs(np.diff(earlier))
    one = 1.4826 * float(np.median(steps)) / math.sqrt(2)
    beyond = max(0.0, one**2 - SD**2 / 8)
    spread = Variance(value=2 * beyond, degrees=len(steps) / 2)
    return {NOTHING_KNOWN: None, "allowance of 5 %": Between(), "spread of 12 earlier runs": Between(spread=spread)}


def _with(difference, between: Between | None):
    from dataclasses import replace

    if between is None:
        return difference
    if between.spread is None:
        return replace(difference, allowance=math.log1p(0.05))
    return replace(difference, offset=between.spread)


# 4. Word error rates


def utterances(draw: np.random.Generator, count: int, bad: float, word: float, cap: float = 1.0) -> np.ndarray:
    """(errors, words) of each utterance.

    Lengths are lognormal (median 10 words, log sd 0.5, 1 to 60). A share `bad` of utterances goes wrong as a whole: 60
    to 100 % of its words, or up to `cap` times its words; in the others each word is wrong with probability `word`.
    """
    words = np.clip(np.round(np.exp(draw.normal(2.3, 0.5, count))), 1, 60)
    errors = draw.binomial(words.astype(int), word).astype(float)
    wrong = draw.random(count) < bad
    errors[wrong] = np.round(words[wrong] * draw.uniform(0.6, cap, wrong.sum()))
    return np.stack([errors, words], axis=1)


def percentile_bootstrap(rows: np.ndarray, draw: np.random.Generator) -> tuple[float, float]:
    """What was used before."""
    picked = draw.integers(0, len(rows), (500, len(rows)))
    rates = rows[picked, 0].sum(1) / rows[picked, 1].sum(1)
    low, high = np.percentile(rates, [2.5, 97.5])
    return float(low), float(high)


SPEECH = {
    "4 % bad, others without error": partial(utterances, bad=0.04, word=0.0),
    "4 % bad, others 2 %": partial(utterances, bad=0.04, word=0.02),
    "2 % bad, others 5 %": partial(utterances, bad=0.02, word=0.05),
    "none bad, 10 %": partial(utterances, bad=0.0, word=0.1),
    "4 % bad with up to 3 errors a word (not capped), others 2 %": partial(utterances, bad=0.04, word=0.02, cap=3.0),
}


def wer_row(sets: int, setting: tuple[str, int]) -> Sequence[str]:
    """One line: `setting` is the kind of utterances, and how many."""
    name, count = setting
    made = SPEECH[name]
    errors, words = made(np.random.default_rng(1), 2_000_000).T
    truth = errors.sum() / words.sum()
    draw = np.random.default_rng([list(SPEECH).index(name), count])
    held = before = 0
    width = old = 0.0
    for _ in range(sets):
        rows = made(draw, count)
        low, high = rate_interval(tuple(map(tuple, rows.tolist()))) or (0.0, 1.0)
        held += low <= truth <= high
        width += high - low
        low, high = percentile_bootstrap(rows, draw)
        before += low <= truth <= high
        old += high - low
    return (
        name,
        f"{truth:.1%}",
        str(count),
        share(held, sets, least=0.92 if "not capped" not in name else None),
        f"{before / sets:.0%}",
        f"{100 * width / sets:.1f}",
        f"{100 * old / sets:.1f}",
    )


def main() -> int:
    """Print the tables; 0 when every limit holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=1000, help="simulated comparisons for each line")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="lines computed at once")
    asked = parser.parse_args()
    sets: int = asked.sets
    with ProcessPoolExecutor(asked.jobs) as pool:
        broken = table(
            f"{CELLS} cells at once, smallest effect {EFFECT:.0%}, pairs sd {SD:g}",
            ("correlation of cells in a round", "rounds", "nothing changed: exit 1", "exit 0",
             "exit 1 without correction", "one cell +20 %: exit 1", "one cell +10 %", "all +5 %", "all +10 %"),
            pool.map(partial(grid_row, sets), product((0.0, 0.2, 0.5), (5, 8, 20))),
        )  # fmt: skip
        broken += table(
            f"Adaptive rounds, {ADAPTIVE.least} to {ADAPTIVE.most}, precision {ADAPTIVE.precision:.0%}",
            ("noise of rounds", "cases in the run", "coverage",
             *(f"with {least}–{most} rounds" if least < most else f"with {most}" for least, most in STOPS),
             "two unchanged runs: false verdicts at 2 %", "rounds", "coverage when looking after each round"),
            pool.map(partial(adaptive_row, 2 * sets), product(NOISES, (1, 20))),
        )  # fmt: skip
        broken += table(
            f"Two runs of 8 rounds at different times, sd {SD:g} in a run: called SLOWER",
            ("sd of the offset", "true change", NOTHING_KNOWN, "allowance of 5 %", "spread of 12 earlier runs"),
            pool.map(partial(offset_row, 2 * sets), product((0.0, 0.03), (0.0, 0.1, 0.2))),
        )
        broken += table(
            "Word error rate: how often the interval holds the truth",
            ("utterances", "true WER", "count", "coverage", "before", "width, points", "width before"),
            pool.map(partial(wer_row, sets // 2), product(SPEECH, (20, 40, 80, 120))),
        )
    if broken:
        print(f"{broken} limits are broken", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
