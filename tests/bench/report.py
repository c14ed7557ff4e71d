"""The tables, in Markdown: medians over the rounds; what is compared is compared within each round first."""

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tests.bench.measure import Case, Sample
from tests.bench.targets import ROUTER_NAME

Samples = dict[str, list[Sample]]  # target -> a sample per round


def field_of(sample: Sample, name: str) -> float | None:
    """Return a number of a sample by a dotted name; None when it was not there to be measured."""
    value: Any = sample
    for part in name.split("."):
        value = value.get(part) if value is not None else None
    return None if value is None else float(value)


def median(values: Iterable[float | None]) -> float | None:
    """Return the median of the values that are there."""
    present = [value for value in values if value is not None]
    return statistics.median(present) if present else None


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that a share of the values does not exceed."""
    return sorted(values)[max(0, math.ceil(len(values) * share) - 1)]


def middle(runs: Samples, target: str, field: str) -> float | None:
    """Return the median of a field over the rounds."""
    return median(field_of(sample, field) for sample in runs.get(target, ()))


def pairs(
    runs: Samples, target: str, other: str, field: str, compare: Callable[[float, float], float]
) -> list[float]:
    """Compare two targets in each round and return what came out."""
    found = []
    for ours, theirs in zip(runs.get(target, ()), runs.get(other, ()), strict=False):
        a, b = field_of(ours, field), field_of(theirs, field)
        if a is not None and b:
            found.append(compare(a, b))
    return found


def paired(
    runs: Samples, target: str, other: str, field: str, compare: Callable[[float, float], float]
) -> float | None:
    """Compare two targets in each round and return the median of what came out."""
    return median(pairs(runs, target, other, field, compare))


def ratio(ours: float, other: float) -> float:
    """Return how many times the other it is."""
    return ours / other


def difference(ours: float, other: float) -> float:
    """Return what was added to the other."""
    return ours - other


def shown(value: float | None) -> str:
    """Return a number with three digits or more."""
    if value is None:
        return "-"
    size = abs(value)
    if size >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 1 else f"{value:.3f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def case_table(case: Case, runs: Samples) -> str:
    """Return the table of one case; added is the difference to the direct provider."""
    others = [name for name in runs if name not in ("direct", "gatewayd")]
    rate = f"{case.unit}s_per_second"
    is_streamed = case.unit == "chunk"
    added = ["first_ms", "transit_ms"] if is_streamed else ["total_ms"]
    names = {"first_ms": "first token", "transit_ms": "chunk transit", "total_ms": "answer"}
    head = ["target", f"{case.unit}s/s (range)", *(f"of {name}" for name in others)]
    head += [f"{names[one]} added p50 / p99 ms" for one in added]
    head += [f"CPU us/{case.unit}", "errors", "other CPU"]
    rows = []
    for target, samples in runs.items():
        row = [target, _with_range([sample[rate] for sample in samples])]
        row += [shown(paired(runs, target, other, rate, ratio)) for other in others]
        row += [_added(runs, target, one) for one in added]
        row += [shown(middle(runs, target, "cpu_us")), str(sum(sample["errors"] for sample in samples))]
        rows.append([*row, shown(middle(runs, target, "other_cpu"))])
    return f"### {case.title}\n\n{table(head, rows)}\n{_faults(runs)}"


def router_table(case: Case, runs: Samples, earlier: Samples) -> str:
    """Return the table of one case in ratio to vllm-router, with the ratio of an earlier run."""
    rate = f"{case.unit}s_per_second"
    delay = "first_ms" if case.unit == "chunk" else "total_ms"
    head = ["target", f"{case.unit}s/s", f"CPU us/{case.unit}", f"of {ROUTER_NAME} (range)", "earlier"]
    head += [f"{delay.split('_')[0]} p50 / p99 ms", "fast", "errors", "other CPU"]
    rows = []
    for target, samples in runs.items():
        row = [target, shown(middle(runs, target, rate)), shown(middle(runs, target, "cpu_us"))]
        ratios = pairs(runs, target, ROUTER_NAME, "cpu_us", ratio)
        row += [_with_range(ratios) if ratios else "-"]
        row += [shown(paired(earlier, target, ROUTER_NAME, "cpu_us", ratio))]
        row += [" / ".join(shown(middle(runs, target, f"{delay}.{one}")) for one in ("p50", "p99"))]
        share = middle(runs, target, "fast_share")
        row += ["-" if share is None else f"{share:.1%}"]
        rows.append([*row, str(sum(sample["errors"] for sample in samples))])
        rows[-1].append(shown(middle(runs, target, "other_cpu")))
    return f"### {case.title}\n\n{table(head, rows)}\n{_faults(runs)}"


def memory_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return resident memory per target."""
    sizes = [str(one["streams"]) for one in rows[0]["held"]]
    head = ["target", "idle MiB", "most under load MiB", "after load MiB"]
    head += [f"KiB per stream, {size} held" for size in sizes] + ["first token p50 / p99 ms", "errors"]
    lines = []
    for row in rows:
        first = row["held"][-1]["first_ms"] or {}
        line = [row["target"], *(shown(row[name]) for name in ("idle_mib", "peak_mib", "after_mib"))]
        line += [f"{shown(one['kib_each'])} ({one['held']} held)" for one in row["held"]]
        line += [f"{shown(first.get('p50'))} / {shown(first.get('p99'))}"]
        lines.append([*line, str(sum(one["errors"] for one in row["held"]))])
    faults = _faults({row["target"]: row["held"] for row in rows})
    return f"### Memory (resident, fresh processes)\n\n{table(head, lines)}\n{faults}"


def start_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the time from exec to READY."""
    lines = [
        [row["target"], shown(row["median"]), " ".join(f"{one:.2f}" for one in row["seconds"])]
        for row in rows
    ]
    return f"### Start to READY on an existing database\n\n{table(['target', 'median s', 'each s'], lines)}\n"


def leave_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return whether the provider is freed when clients leave."""
    head = [
        "target",
        "streams held",
        "at the provider while streaming",
        "1 s after the clients left",
        "freed after s",
    ]
    lines = [
        [
            row["target"],
            *(str(row[name]) for name in ("held", "streaming", "after_1s")),
            shown(row["freed_seconds"]),
        ]
        for row in rows
    ]
    return f"### Clients leave while the provider is silent\n\n{table(head, lines)}\n"


def soak_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return memory and errors of a long run."""
    head = [
        "target",
        "streams",
        "minutes",
        "chunks",
        "MiB at start",
        "MiB at end",
        "growth MiB/min by thirds",
        "errors",
    ]
    lines = []
    for row in rows:
        sizes = [size for _, size in row["memory"]]
        counts = [str(row["streams"]), shown(row["minutes"]), f"{row['all_chunks']:,}"]
        growth = " / ".join(map(shown, row["growth"]))
        lines.append([row["target"], *counts, shown(sizes[0]), shown(sizes[-1]), growth, str(row["errors"])])
    faults = _faults({row["target"]: [row] for row in rows})
    return f"### Long run\n\n{table(head, lines)}\n{faults}"


def _with_range(values: Sequence[float]) -> str:
    return f"{shown(median(values))} ({shown(min(values))} to {shown(max(values))})"


def _added(runs: Samples, target: str, field: str) -> str:
    if target == "direct":
        found = [middle(runs, target, f"{field}.{one}") for one in ("p50", "p99")]
        return f"(takes {shown(found[0])} / {shown(found[1])})"
    found = [paired(runs, target, "direct", f"{field}.{one}", difference) for one in ("p50", "p99")]
    return f"{shown(found[0])} / {shown(found[1])}"


def _faults(runs: Samples) -> str:
    """Return a line per target whose answers had something wrong."""
    lines = []
    for target, samples in runs.items():
        faults: Counter[str] = Counter()
        for sample in samples:
            faults.update(sample["faults"])
        if any(faults.values()):
            told = ", ".join(f"{count} {name}" for name, count in faults.items() if count)
            text = next(sample["sample"] for sample in samples if sample["errors"])
            lines.append(f"\n{target}: {told}; first: `{text}`\n")
    return "".join(lines)
