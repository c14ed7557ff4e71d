"""What gatewayd is to reach, and whether it did."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.bench.report import difference, middle, paired, ratio, shown, table
from tests.bench.targets import ROUTER_NAME

Results = dict[str, Any]
Found = Sequence[float | None] | None  # one value per limit; None when it was not measured
OURS = "gatewayd"
UNMETERED = "unmetered"
GROWN = "grown"
CHUNK_RATE = "chunks_per_second"
STILL = 0.1  # MiB a minute: less than this is no growth that could fall


@dataclass(frozen=True)
class Goal:
    """A value to reach: at least the limits, or at most."""

    title: str
    limits: tuple[float, ...]
    find: Callable[[Results], Found]
    is_least: bool = False

    def verdict(self, results: Results) -> tuple[str, str, str]:
        """Return the limit, what was found, and reached / missed / not measured, as texts."""
        sign = ">=" if self.is_least else "<="
        wanted = f"{sign} {' / '.join(map(shown, self.limits))}"
        found = self.find(results)
        if found is None:
            return wanted, "-", "not measured"
        pairs = zip(found, self.limits, strict=True)
        reached = all(value is not None and self._holds(value, limit) for value, limit in pairs)
        return wanted, " / ".join(map(shown, found)), "reached" if reached else "MISSED"

    def _holds(self, value: float, limit: float) -> bool:
        return value >= limit if self.is_least else value <= limit


def goals_table(results: Results) -> str:
    """Return a Markdown table of all goals."""
    return table(["goal", "reach", "found", ""], [[goal.title, *goal.verdict(results)] for goal in GOALS])


def _samples(results: Results, case: str) -> dict[str, list[dict[str, Any]]] | None:
    runs: dict[str, list[dict[str, Any]]] | None = results.get("runs", {}).get(case)
    return runs if runs and OURS in runs else None


def _ratio(*cases: str, fields: Sequence[str], other: str = "nginx") -> Callable[[Results], Found]:
    """Return a search for each field of each case in ratio to another target."""

    def find(results: Results) -> Found:
        found: list[float | None] = []
        for case in cases:
            runs = _samples(results, case)
            if runs is None or other not in runs:
                return None
            found += [paired(runs, OURS, other, field, ratio) for field in fields]
        return found

    return find


def _of_router(*cases: str, fields: Sequence[str] = ("cpu_us",)) -> Callable[[Results], Found]:
    return _ratio(*cases, fields=fields, other=ROUTER_NAME)


def _one_at_a_time(results: Results) -> Found:
    runs = _samples(results, "plain_1")
    return None if runs is None else [paired(runs, OURS, "direct", "total_ms.p50", difference)]


def _fast_share(results: Results) -> Found:
    """Return the smallest share of requests on the fast path, of the rows with the router."""
    shares = [
        middle(runs, OURS, "fast_share")
        for runs in results.get("runs", {}).values()
        if OURS in runs and ROUTER_NAME in runs
    ]
    return [min((share or 0.0) for share in shares)] if shares else None


def _cost(case: str) -> Callable[[Results], Found]:
    def find(results: Results) -> Found:
        runs = _samples(results, case)
        return None if runs is None else [middle(runs, OURS, "cpu_us")]

    return find


def _metering(results: Results) -> Found:
    """Return what metrics, usage and limits add to the processor time of a request, and of a chunk."""
    found = []
    for case in ("plain_64", "paced_64", "unpaced_16"):
        runs = _samples(results, case)
        if runs is None or UNMETERED not in runs:
            return None
        found.append(paired(runs, OURS, UNMETERED, "cpu_us", difference))
    return found


def _growth(results: Results) -> Found:
    """Return the processor time with a large state in ratio to that with an empty one."""
    runs = results.get("growth")
    if runs is None:
        return None
    return [paired(runs[case], GROWN, OURS, "cpu_us", ratio) for case in ("plain_64", "paced_64")]


def _first_token(results: Results) -> Found:
    runs = _samples(results, "paced_64")
    if runs is None:
        return None
    fields = ("first_ms.p50", "first_ms.p99")
    return [paired(runs, OURS, "direct", field, difference) for field in fields]


def _errors(case: str) -> Callable[[Results], Found]:
    def find(results: Results) -> Found:
        runs = _samples(results, case)
        return None if runs is None else [sum(sample["errors"] for sample in runs[OURS])]

    return find


def _row(results: Results, suite: str) -> dict[str, Any] | None:
    return next((row for row in results.get(suite, ()) if row["target"] == OURS), None)


def _idle(results: Results) -> Found:
    row = _row(results, "memory")
    return None if row is None else [row["idle_mib"]]


def _held(results: Results) -> Found:
    row = _row(results, "memory")
    if row is None:
        return None
    return [one["kib_each"] if one["held"] == one["streams"] else None for one in row["held"]]


def _start(results: Results) -> Found:
    row = _row(results, "start")
    return None if row is None else [row["median"]]


def _left(results: Results) -> Found:
    row = _row(results, "leave")
    return None if row is None else [row["after_1s"] - row["before"]]


def _soak_growth(results: Results) -> Found:
    row = _row(results, "soak")
    if row is None:
        return None
    first, _, last = row["growth"]
    return [last, None if first is None or last is None else max(last - max(first, STILL), 0.0)]


def _soak_errors(results: Results) -> Found:
    row = _row(results, "soak")
    return None if row is None else [row["errors"]]


GOALS = (
    Goal(
        "64 connections, whole answers: requests/s of nginx",
        (0.20,),
        _ratio("plain_64", fields=["requests_per_second"]),
        True,
    ),
    Goal("the same: CPU us per request", (110.0,), _cost("plain_64")),
    Goal("metering (--unmetered): CPU us per request / chunk paced / unpaced", (8.0, 1.0, 1.0), _metering),
    Goal("64 paced streams: CPU us per chunk", (32.0,), _cost("paced_64")),
    Goal("the same: first token added p50 / p99 ms", (4.0, 6.0), _first_token),
    Goal(
        "16 unpaced streams: chunks/s of nginx",
        (0.85,),
        _ratio("unpaced_16", fields=[CHUNK_RATE]),
        True,
    ),
    Goal(
        "256 paced streams: chunks/s of nginx",
        (0.98,),
        _ratio("paced_256", fields=[CHUNK_RATE]),
        True,
    ),
    Goal("the same: errors", (0.0,), _errors("paced_256")),
    Goal("memory idle, MiB", (90.0,), _idle),
    Goal("memory per held stream, KiB, of 500 / 2000", (30.0, 30.0), _held),
    Goal("exec to READY on an existing database, s", (1.0,), _start),
    Goal("streams left at the provider 1 s after clients left", (0.0,), _left),
    Goal("large state (growth): CPU of an empty one, whole answers / paced streams", (1.05, 1.05), _growth),
    Goal("1000 streams at once: errors", (0.0,), _errors("many_1000")),
    Goal(
        "long run: growth in the last third, MiB/min / faster than in the first by", (2.0, 0.0), _soak_growth
    ),
    Goal("the same: errors", (0.0,), _soak_errors),
    Goal("64 connections, whole answers: CPU of vllm-router", (1.15,), _of_router("plain_64")),
    Goal("64 / 256 paced streams: CPU of vllm-router", (1.05, 1.05), _of_router("paced_64", "paced_256")),
    Goal(
        "256 paced streams: first token p50 / p99 of vllm-router",
        (1.2, 1.3),
        _of_router("paced_256", fields=("first_ms.p50", "first_ms.p99")),
    ),
    Goal("16 unpaced streams: CPU of vllm-router", (0.8,), _of_router("unpaced_16")),
    Goal("one request at a time: answer added p50 ms", (0.2,), _one_at_a_time),
    Goal("models / health: CPU of vllm-router", (1.5, 2.5), _of_router("models_16", "health_16")),
    Goal("smallest share of requests on the fast path", (0.95,), _fast_share, True),
)
