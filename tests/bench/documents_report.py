"""The tables of documents, in Markdown, and what is to be reached."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.bench.documents_quality import KINDS
from tests.bench.documents_search import LARGE, MIDDLE
from tests.bench.documents_site import ENGINES
from tests.bench.report import median, shown, table

Results = dict[str, Any]
Value = Callable[[Results], float | None]


@dataclass(frozen=True)
class Goal:
    """A value to reach: at most the limit, or at least; without a limit it is only told."""

    title: str
    find: Value
    limit: float | None = None
    is_least: bool = False

    def row(self, results: Results) -> list[str]:
        """Return title, limit, what was found and the verdict."""
        value = self.find(results)
        if self.limit is None:
            return [self.title, "-", shown(value), ""]
        wanted = f"{'>=' if self.is_least else '<='} {shown(self.limit)}"
        if value is None:
            return [self.title, wanted, "-", "not measured"]
        is_reached = value >= self.limit if self.is_least else value <= self.limit
        return [self.title, wanted, shown(value), "reached" if is_reached else "MISSED"]


def goals_table(results: Results) -> str:
    """Return a table of what was measured."""
    rows = [goal.row(results) for goal in GOALS]
    return table(["measure", "reach", "found", ""], [row for row in rows if row[2] != "-"])


def _rounds(suite: str, value: Callable[[dict[str, Any]], float]) -> Value:
    return lambda results: median(value(row) for row in results.get(suite, ()))


def _memory(kind: str, *, added: bool) -> Value:
    def find(results: Results) -> float | None:
        row = results.get("memory")
        if row is None or kind not in row["most"] or kind not in row["before"]:
            return None
        most: float = row["most"][kind]
        return most - row["before"][kind] if added else most

    return find


def _embedding(results: Results) -> float | None:
    row = results.get("memory")
    return None if row is None else row["after"].get("embedding")


def _slower(sample: dict[str, Any]) -> float:
    first = {name: sample[name]["first_ms"]["p99"] for name in ("idle", "ingesting")}
    return float(first["ingesting"] / first["idle"])


def _query(engine: str, size: int, *path: str) -> Value:
    def find(results: Results) -> float | None:
        for row in results.get(f"search {engine}", ()):
            if row["passages"] == size:
                value: Any = row
                for name in path:
                    value = value[name]
                return float(value)
        return None

    return find


def _start(number: int, field: str) -> Value:
    def find(results: Results) -> float | None:
        rows: Sequence[dict[str, Any]] = results.get("start", ())
        return median(rows[number][field]) if rows else None

    return find


def _many(engine: str, share: str) -> Value:
    def find(results: Results) -> float | None:
        row = results.get(f"many {engine}")
        if row is None:
            return None
        pairs = zip(row["many"], row["one"], strict=True)
        return median(many[share] / one[share] for many, one in pairs)

    return find


def _quality(way: str, measure: str) -> Value:
    def find(results: Results) -> float | None:
        row = results.get("quality")
        return None if row is None else float(row[way][measure])

    return find


def _above(way: str) -> Value:
    def find(results: Results) -> float | None:
        row = results.get("quality")
        return None if row is None else float(row["hybrid"]["ndcg all"] - row[way]["ndcg all"])

    return find


def _search_goals(engine: str) -> list[Goal]:
    found = []
    for size, limit in ((LARGE, 30.0), (MIDDLE, 10.0)):
        what = f"{engine}, {size:,} passages"
        found += [
            Goal(f"{what}: hybrid query p50, ms", _query(engine, size, "hybrid", "p50")),
            Goal(f"{what}: hybrid query p99, ms", _query(engine, size, "hybrid", "p99"), limit),
            Goal(f"{what}: the same question again p99, ms", _query(engine, size, "same", "p99"), limit),
            Goal(f"{what}: by meaning alone p99, ms", _query(engine, size, "dense", "p99"), limit),
            Goal(f"{what}: by words alone p99, ms", _query(engine, size, "words", "p99"), limit),
            Goal(f"{what}: processor time of a hybrid query, ms", _query(engine, size, "cpu_ms")),
            Goal(f"{what}: recall@10 of exact search", _query(engine, size, "recall"), 0.97, is_least=True),
        ]
    return found


def _many_goals(engine: str) -> list[Goal]:
    what = f"{engine}: hybrid query in one of 500 collections, of the only one"
    return [
        Goal(f"{what}, p50", _many(engine, "p50"), 1.25),
        Goal(f"{what}, p99", _many(engine, "p99"), 1.5),
    ]


GOALS: Final = (
    Goal(
        "ingestion through the gateway, of the same work alone",
        _rounds("ingest", lambda row: row["alone"] / row["gateway"]),
        0.85,
        is_least=True,
    ),
    Goal("the same: pages per minute", _rounds("ingest", lambda row: row["pages"] / row["gateway"] * 60)),
    Goal("the same: passages per second", _rounds("ingest", lambda row: row["passages"] / row["gateway"])),
    Goal(
        "the same: processor time of the daemon itself, of all of two cores",
        _rounds("ingest", lambda row: row["daemon_cpu"] / row["gateway"] / 2),
    ),
    Goal("the same: cores that were busy", _rounds("ingest", lambda row: row["busy"])),
    Goal("the process of the embedding model after work, MiB", _embedding, 150.0),
    Goal("the same: at most, MiB", _memory("embedding", added=False)),
    Goal("a PDF of 1,600 pages adds to its reader, MiB", _memory("extraction", added=True), 150.0),
    Goal("the same: its reader at most, MiB", _memory("extraction", added=False)),
    Goal("a PDF of 1,600 pages adds to the daemon, MiB", _memory("daemon", added=True), 50.0),
    Goal("the same: the daemon at most, MiB", _memory("daemon", added=False)),
    Goal(
        "a small file behind large ones until it is found, at most, s",
        _rounds("waiting", lambda row: max(row["seconds"])),
        5.0,
    ),
    Goal("the same: median, s", _rounds("waiting", lambda row: median(row["seconds"]) or 0.0)),
    Goal(
        "/health while ingesting p99, ms",
        _rounds("load", lambda row: row["ingesting"]["health"]["p99"]),
        50.0,
    ),
    Goal("chat, time to first token p99 while ingesting, of idle", _rounds("load", _slower), 2.0),
    Goal("the same: idle p99, ms", _rounds("load", lambda row: row["idle"]["first_ms"]["p99"])),
    Goal("the same: ingesting p99, ms", _rounds("load", lambda row: row["ingesting"]["first_ms"]["p99"])),
    Goal(
        "the same: errors",
        _rounds("load", lambda row: float(row["idle"]["errors"] + row["ingesting"]["errors"])),
        0.0,
    ),
    *_search_goals(ENGINES[0]),
    Goal("100,000 passages: exec to READY, s", _start(0, "ready"), 1.5),
    Goal("the same: first query, no checkpoint, s", _start(0, "first"), 1.5),
    Goal("the same: first query, with a checkpoint, s", _start(1, "first"), 1.5),
    Goal("the same: second query, with a checkpoint, s", _start(1, "second")),
    *_many_goals(ENGINES[0]),
    *_search_goals(ENGINES[1]),
    *_many_goals(ENGINES[1]),
    Goal("real questions: nDCG@10 of hybrid searches", _quality("hybrid", "ndcg all")),
    Goal("the same: above those by meaning alone", _above("dense"), 0.05, is_least=True),
    Goal("the same: above those by words alone", _above("words"), 0.09, is_least=True),
    *(
        Goal(f"the same: {measure}@10 of {kind}s, {way}", _quality(way, f"{measure} {kind}"))
        for kind in ("question", "name")
        for measure in ("ndcg", "hit")
        for way in KINDS
    ),
)
