"""Searching: how long it takes a client, how much of the exact answer comes, and what else delays it."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from tests.bench.documents_corpus import Writer
from tests.bench.documents_filling import Filled, Rows
from tests.bench.documents_site import Client, Model, Running, Site, prepared, query_vectors
from tests.bench.measure import say
from tests.bench.report import quantile

WARM_UP: Final = 20
NEAREST: Final = 10
LARGE: Final = 100_000
MIDDLE: Final = 10_000
MANY: Final = 500
SMALL: Final = 200
READY_SECONDS: Final = 180.0
ROUNDS: Final = 3

Times = Mapping[str, float]


def questions(count: int, seed: int = 21) -> list[str]:
    """Return different questions."""
    writer = Writer(seed)
    return [writer.question() for _ in range(count)]


def times(ask: Callable[[str], Any], asked: Sequence[str]) -> Times:
    """Ask one question after the other and return p50 and p99 in milliseconds."""
    for question in asked[:WARM_UP]:
        ask(question)
    spent = []
    for question in asked:
        began = time.perf_counter()
        ask(question)
        spent.append((time.perf_counter() - began) * 1000)
    return {"p50": quantile(spent, 0.5), "p99": quantile(spent, 0.99)}


def measure_queries(site: Site, running: Running, model: Model, count: int) -> list[dict[str, Any]]:
    """Return a row per collection: hybrid and dense searches, and their recall."""
    asked = questions(count)
    vectors = query_vectors(model, asked)
    rows = []
    for filled in site.collections:
        wait_for_graph(site, running, filled)
        row: dict[str, Any] = {"passages": len(filled.passages)}
        cpu = running.session.cpu_seconds()
        row["hybrid"] = times(lambda text, at=filled.id: running.client.query(at, text), asked)
        spent = running.session.cpu_seconds() - cpu
        row["cpu_ms"] = spent * 1000 / (count + min(count, WARM_UP))
        row["dense"] = times(lambda text, at=filled.id: running.client.query(at, text, hybrid=False), asked)
        row["same"] = times(lambda _, at=filled.id: running.client.query(at, asked[0]), asked)
        row["words"] = times(lambda text, at=filled.id: _words(running.client, at, text), asked)
        row["recall"] = recall(running.client, filled, asked, vectors)
        say(f"search  {row}")
        rows.append(row)
    return rows


def _words(client: Client, collection_id: str, text: str) -> Any:
    return client.query(collection_id, text, hybrid_bm25_weight=1.0)


def recall(client: Client, filled: Filled, asked: Sequence[str], vectors: Rows) -> float:
    """Return which part of the ten nearest vectors the searches by meaning found."""
    found = 0
    numbers = np.array(filled.passages)
    for question, vector in zip(asked, vectors, strict=True):
        products = filled.vectors @ vector
        nearest = set(numbers[np.argpartition(products, -NEAREST)[-NEAREST:]].tolist())
        answer = client.query(filled.id, question, hybrid=False, k=NEAREST)
        found += len(nearest.intersection(map(int, answer["ids"][0])))
    return found / (NEAREST * len(asked))


def wait_for_graph(site: Site, running: Running, filled: Filled) -> None:
    """Ask once, and wait until the index does nothing any more in the background."""
    running.client.query(filled.id, "which file is it")
    running.session.settle(READY_SECONDS)
    site.database.settle(READY_SECONDS)


def measure_start(site: Site) -> list[dict[str, Any]]:
    """Return seconds to READY and of the first query, without a checkpoint and with one."""
    rows = []
    for name in ("without a checkpoint", "with a checkpoint"):
        row = {"start": name, "ready": [], "first": [], "second": []}
        for number in range(3):
            if name.startswith("without"):
                _remove_checkpoints(site.state)
            with site.running() as running:
                row["ready"].append(running.seconds)
                row["first"].append(_seconds(running.client, site.collections[0].id))
                row["second"].append(_seconds(running.client, site.collections[0].id))
                if name.startswith("without") and number == 2:
                    wait_for_graph(site, running, site.collections[0])
        say(f"start  {row}")
        rows.append(row)
    return rows


def _remove_checkpoints(state: Path) -> None:
    for path in (state / "vectors").rglob("*"):
        if path.is_file():
            path.unlink()


def _seconds(client: Client, collection_id: str) -> float:
    began = time.perf_counter()
    client.query(collection_id, "which file is read first")
    return time.perf_counter() - began


@contextlib.contextmanager
def _one_of(folder: Path, model: Model, engine: str, count: int) -> Iterator[tuple[Site, Running]]:
    folder.mkdir()
    with prepared(folder, model, engine, [SMALL] * count) as site, site.running() as running:
        yield site, running


def measure_many(folder: Path, model: Model, engine: str, count: int, asking: int) -> dict[str, Any]:
    """Ask a database with `count` collections and one with a single one, in alternation."""
    asked = questions(asking, 33)
    with (
        _one_of(folder / "m", model, engine, count) as (many, large),
        _one_of(folder / "o", model, engine, 1) as (one, small),
    ):
        samples: dict[str, list[Times]] = {"many": [], "one": []}
        middle = many.collections[len(many.collections) // 2].id
        for _ in range(ROUNDS):
            samples["many"].append(times(lambda text: large.client.query(middle, text), asked))
            samples["one"].append(times(lambda text: small.client.query(one.collections[0].id, text), asked))
    say(f"many  {engine} {samples}")
    return {"engine": engine, **samples}
