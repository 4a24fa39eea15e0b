"""How it was measured: samples, rounds, machines, software, and what went wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from speechmeter.analysis.warnings import in_words, kind_of
from speechmeter.core import metrics
from speechmeter.core.protocol import Protocol, RepeatsProtocol, ScheduleProtocol, SearchProtocol, SteadyProtocol
from speechmeter.core.types import FAILED, Record
from speechmeter.report.grids import STATISTIC_WORDS
from speechmeter.report.methods.study import timed
from speechmeter.report.methods.words import Facts, Groups, cut, listed, packages
from speechmeter.report.numbers import counted, number

_INLINE = "inline"


def samples(groups: Groups) -> str:
    """The rule by which calls were timed, and how many really were."""
    searched = listed(p.find for group in groups if isinstance(p := group[0].case.protocol, SearchProtocol))
    if searched:
        return (
            f"The cases are trials of a search ({searched}) for the largest size that fits into memory. A failed trial "
            "(oom) is part of the search."
        )
    latencies = (record.find(metrics.LATENCY.id) for group in groups for record in group)
    taken = [len(found.values) for found in latencies if found is not None and found.values]
    if not taken or not timed(groups):
        return ""
    had = counted(max(taken), "call") if min(taken) == max(taken) else f"{min(taken)} to {max(taken)} calls"
    rules = listed(filter(None, (_rule(group[0].case.protocol) for group in groups)), "or")
    return f"In each round {rules}{', then ' if rules else ''}{had} {'was' if max(taken) == 1 else 'were'} timed."


def _rule(protocol: Protocol) -> str:
    if isinstance(protocol, RepeatsProtocol):
        drop = protocol.discard
        return "" if not drop else "the first call was dropped" if drop == 1 else f"the first {drop} calls were dropped"
    if isinstance(protocol, ScheduleProtocol):
        parts = ", ".join(f"{name} {getattr(protocol, name)}" for name in ("wait", "warmup", "active", "repeat"))
        return f"calls followed a schedule ({parts})"
    if isinstance(protocol, SteadyProtocol):
        return f"warm-up calls were made until their time was steady (at most {protocol.warmup})"
    return ""


def rounds(groups: Groups, facts: Facts, statistic: str) -> str:
    """How often a case was measured, in which processes, and what a shown time is."""
    counts = sorted({sum(record.status == "ok" for record in group) for group in groups} - {0})
    if not counts:
        return ""
    many = counted(counts[-1], "round") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} rounds"
    text = f"Each case was measured in {many}{_processes(facts, single=counts == [1])}."
    if any(record.pilot is not None for group in groups for record in group):
        text += " The number of rounds was chosen from the spread of the first ones."
    if not timed(groups):
        return text
    if statistic != "geomean":
        return f"{text} Times are the {STATISTIC_WORDS[statistic]}."
    if counts == [1]:
        return f"{text} Times are medians of the timed calls; one round gives no interval."
    single = "; cases of one round have none" if counts[0] == 1 else ""
    return (
        f"{text} Times are geometric means of the rounds' medians, with 95 % intervals over rounds (Student's t on "
        f"logarithms{single})."
    )


def _processes(facts: Facts, *, single: bool) -> str:
    """What the records show of the processes: only one that was started for a case is given its threads beforehand."""
    known = [(record, one) for record, one in facts if one]
    if any(one.get("launcher") == _INLINE for _, one in known):
        return ", in one process for all cases"
    threads = [one["threads"] if isinstance(one.get("threads"), Mapping) else {} for _, one in known]
    own = [
        str(given.get("OMP_NUM_THREADS")) == str(record.case.axes.threads)
        for (record, _), given in zip(known, threads, strict=True)
    ]
    return "" if not own or not all(own) else ", in a fresh process" if single else ", each in a fresh process"


def machines(groups: Groups, facts: Facts) -> str:
    """The hardware, one machine after another, with the subjects where one did not have all of them."""
    hosts: dict[str, list[tuple[Record, Mapping[str, Any]]]] = {}
    for record, one in facts:
        hosts.setdefault(record.host or "unknown", []).append((record, one))
    if not hosts:
        return ""
    if len(hosts) == 1:
        return f"All measurements were made on one machine: {_machine(next(iter(hosts.values())))}."
    every = {group[0].case.subject.name for group in groups}
    parts = []
    for host, those in hosts.items():
        names = dict.fromkeys(record.case.subject.name for record, _ in those)
        only = f" (only {listed(names)})" if set(names) < every else ""
        parts.append(f"{host}{only}: {_machine(those)}.")
    return f"The measurements were made on {len(hosts)} machines. {' '.join(parts)}"


def _machine(those: Facts) -> str:
    facts = {key: value for _, one in those for key, value in one.items() if value}
    if not facts:
        return "the records hold no facts about it"
    cores = listed(str(record.case.axes.cores) for record, _ in those if record.case.axes.cores)
    total = facts.get("cores_total")
    used = f" with {total} cores" if str(total) == cores else f" with {cores} of {total} cores used" if cores else ""
    parts = [f"{facts.get('cpu', 'a processor of unknown type')}{used}"]
    parts += [f"{number(float(facts['memory_bytes']), 'bytes')} of memory"] if facts.get("memory_bytes") else []
    if facts.get("gpu") and any(record.case.device.is_cuda for record, _ in those):
        size = f" ({number(float(facts['gpu_memory_bytes']), 'bytes')})" if facts.get("gpu_memory_bytes") else ""
        parts.append(f"{facts['gpu']}{size}")
    parts += [f"clock governor {facts['governor']}"] if facts.get("governor") not in (None, "unknown") else []
    return ", ".join([*parts, str(facts.get("system", "unknown system"))])


def software(facts: Facts) -> str:
    """Versions of what was loaded, and the commit of the folder that the command ran in."""
    versions: dict[str, dict[str, None]] = {}
    for _, one in facts:
        for name, version in {"Python": one.get("python"), **packages(one), "CUDA": one.get("cuda")}.items():
            if version and name != "speechmeter":
                versions.setdefault(name, {})[str(version)] = None
    if not versions:
        return ""
    commits = dict.fromkeys(str(one["git"]) for _, one in facts if one.get("git"))
    at = f"; the working directory was at commit {listed(c.removesuffix('-dirty') for c in commits)}" if commits else ""
    at += " with uncommitted changes" if any(commit.endswith("-dirty") for commit in commits) else ""
    return f"Software: {', '.join(f'{name} {listed(found)}' for name, found in versions.items())}{at}."


def failures(groups: Groups, labels: Mapping[str, str]) -> str:
    """What has no figure, and why; and rounds that failed beside others that did not."""
    failed, partly, absent, left_out = [], [], [], []
    for group in groups:
        label, last = labels[group[0].case.id], group[-1]
        if all(record.status in FAILED for record in group):
            failed.append(f"{label} ({kind_of(last)})")
        elif any(record.status in FAILED for record in group):
            partly.append(f"{label} ({in_words(group)})")
        elif last.status == "unavailable":
            absent.append(f"{label} ({cut(last.reason)})")
        elif last.status == "skipped":
            left_out.append(label)
    of = f"of {counted(len(groups), 'case')}"
    said = [f"{len(failed)} {of} failed: {listed(failed)}."] if failed else []
    said += [f"Some rounds failed, and the results are from the other rounds: {listed(partly)}."] if partly else []
    said += [f"{len(absent)} {of} could not be measured: {listed(absent)}."] if absent else []
    said += [f"{len(left_out)} {of} were left out by the plan: {listed(left_out)}."] if left_out else []
    return " ".join(said)


def warnings(groups: Groups) -> str:
    """What disturbed the measurements, by its first words, with the number of cases."""
    cases: dict[str, set[str]] = {}
    for group in groups:
        for text in (text for record in group for text in record.warnings):
            cases.setdefault(re.split("[:;]", text)[0].strip(), set()).add(group[0].case.id)
    ordered = sorted(cases, key=lambda text: -len(cases[text]))
    named = [f"{text} ({len(cases[text])} of {counted(len(groups), 'case')})" for text in ordered]
    return f"Warnings: {listed(named)}." if named else ""


def dates(groups: Groups) -> str:
    """The day or days of the measurements, UTC."""
    days = sorted({record.started[:10] for group in groups for record in group if record.started})
    if not days:
        return ""
    return f"Measured on {days[0]}." if len(days) == 1 else f"Measured between {days[0]} and {days[-1]}."
