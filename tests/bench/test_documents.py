"""Tests for the benchmark of documents: it measures what it says, of databases that are filled as it says."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pymupdf
import pytest

from tests.bench import documents
from tests.bench.documents import Run, arguments
from tests.bench.documents_corpus import PAGE_CHARACTERS, Writer, paragraphs
from tests.bench.documents_filling import Vectors
from tests.bench.documents_ingest import measure_load, measure_memory
from tests.bench.documents_report import GOALS, goals_table
from tests.bench.documents_search import measure_many, measure_queries, measure_start
from tests.bench.documents_site import ENGINES, SQLITE, Model, Running, made_model, prepared
from tests.bench.documents_waiting import measure_waiting, write_large
from tests.bench.targets import running_mock
from tests.bench.tools import CannotRunError, Tools, build

EVERYTHING: dict[str, Any] = {
    "ingest": [{"pages": 10, "passages": 30, "alone": 9.0, "gateway": 10.0, "daemon_cpu": 1.0, "busy": 2.0}],
    "memory": {
        "before": {"daemon": 80.0, "embedding": 130.0, "extraction": 60.0},
        "most": {"daemon": 100.0, "embedding": 140.0, "extraction": 90.0},
        "after": {"daemon": 90.0, "embedding": 131.0},
    },
    "load": [
        {
            name: {"first_ms": {"p99": first}, "errors": 0, "health": {"p99": 5.0}}
            for name, first in (("idle", 4.0), ("ingesting", 6.0))
        }
    ],
    "waiting": [{"seconds": [1.0, 2.0]}],
    "start": [{"ready": [1.0], "first": [1.0], "second": [0.1]}] * 2,
    **{
        f"search {engine}": [
            {
                "passages": size,
                **{kind: {"p50": 1.0, "p99": 2.0} for kind in ("hybrid", "dense", "same", "words")},
                "cpu_ms": 1.0,
                "recall": 0.99,
            }
            for size in (100_000, 10_000)
        ]
        for engine in ENGINES
    },
    "quality": {
        way: {
            f"{measure} {kind}": mark for measure in ("ndcg", "hit") for kind in ("all", "question", "name")
        }
        for way, mark in (("hybrid", 0.7), ("dense", 0.6), ("words", 0.5))
    },
    **{
        f"many {engine}": {name: [{"p50": 1.0, "p99": 1.0}] for name in ("many", "one")} for engine in ENGINES
    },
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return made_model(tmp_path_factory.mktemp("model"), passages=8)


def test_prose_is_real_and_each_text_is_another() -> None:
    assert len(paragraphs()) > 5000
    writer = Writer(3)
    texts = [writer.passage() for _ in range(500)]
    assert len(set(texts)) == len(texts)
    assert all(800 < len(text) < 1000 for text in texts)
    assert Writer(3).passage() == texts[0]
    assert 3 <= len(writer.question().split()) <= 13


def test_a_document_has_its_pages_full(tmp_path: Path) -> None:
    Writer(3).pdf(tmp_path / "a.pdf", 5)
    with pymupdf.open(tmp_path / "a.pdf") as document:
        sizes = [len(page.get_text()) for page in document]
    assert len(sizes) == 5
    assert all(abs(size - PAGE_CHARACTERS) < 300 for size in sizes)


def test_vectors_lie_around_real_ones() -> None:
    real = np.eye(8, 384, dtype=np.float32)
    rows = Vectors(real).make(100)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert ((rows @ real.T).max(axis=1) > 0.5).all()
    assert len(np.unique(rows, axis=0)) == 100


def test_every_goal_is_reached_missed_or_left_out() -> None:
    assert "MISSED" not in goals_table(EVERYTHING)
    assert len(goals_table(EVERYTHING).splitlines()) == len(GOALS) + 2
    assert len(goals_table({}).splitlines()) == 2
    slow = json.loads(json.dumps(EVERYTHING))
    slow["search sqlite"][0]["recall"] = 0.9
    slow["load"][0]["ingesting"]["first_ms"]["p99"] = 9.0
    missed = [line.split("|")[1].strip() for line in goals_table(slow).splitlines() if "MISSED" in line]
    assert missed == [
        "chat, time to first token p99 while ingesting, of idle",
        "sqlite, 100,000 passages: recall@10 of exact search",
    ]


def test_unknown_suites_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments(["searches"])
    assert "searches" in capsys.readouterr().err
    assert arguments([]).suite == list(documents.SUITES)
    assert arguments(["start", "many"]).suite == ["start", "many"]


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
def test_searches_are_measured(engine: str, tmp_path: Path, model: Model) -> None:
    with prepared(tmp_path / "a", model, engine, [600, 30]) as site:
        with site.running() as running:
            large, small = measure_queries(site, running, model, 5)
        assert (large["passages"], small["passages"]) == (600, 30)
        # Exact search finds what exact search finds.
        assert large["recall"] == small["recall"] == 1.0
        assert 0 < large["hybrid"]["p50"] <= large["hybrid"]["p99"]
        if engine == SQLITE:
            rows = measure_start(site)
            assert [len(row["first"]) for row in rows] == [3, 3]


@pytest.mark.long
def test_many_collections_are_compared_with_one(tmp_path: Path, model: Model) -> None:
    found = measure_many(tmp_path, model, SQLITE, 3, 4)
    assert len(found["many"]) == len(found["one"]) == 3


@pytest.mark.long
def test_ingestion_is_compared_with_the_same_work_alone(tmp_path: Path, model: Model) -> None:
    options = argparse.Namespace(rounds=2, scale=0.1)
    run = Run(options, tmp_path)
    vars(run)["model"] = model
    run.ingest()
    samples = run.results["ingest"]
    assert len(samples) == 2
    for sample in samples:
        assert sample["pages"] == 2
        assert sample["passages"] > 2
        assert sample["alone"] > 0
        assert sample["gateway"] > 0


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return build(tmp_path_factory.mktemp("tools"))


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, model: Model, tools: Tools) -> Iterator[Running]:
    """Start a gateway with a provider, for all measurements that need no filled database."""
    folder = tmp_path_factory.mktemp("r")
    with (
        running_mock(tools, folder) as mock,
        prepared(folder / "a", model, provider=mock.port) as site,
        site.running() as started,
    ):
        yield started


@pytest.mark.long
@pytest.mark.real("cc")
def test_small_files_with_nothing_before_them_are_no_measurement(running: Running, tmp_path: Path) -> None:
    large = write_large(tmp_path / "b", 1, 1, 1)
    with pytest.raises(CannotRunError, match="done too early"):
        measure_waiting(running, tmp_path, 1, 1.0, large)


@pytest.mark.long
@pytest.mark.real("cc")
def test_small_files_are_found_behind_large_ones(running: Running, tmp_path: Path) -> None:
    large = write_large(tmp_path / "b", 3, 100, 400)
    found = measure_waiting(running, tmp_path, 2, 0.0, large)
    assert found["queued"] == 3
    assert found["bytes"] > 400_000
    assert len(found["seconds"]) == 2


@pytest.mark.long
@pytest.mark.real("cc")
def test_memory_is_told_of_each_process(running: Running, tmp_path: Path) -> None:
    found = measure_memory(running, tmp_path / "b", pages=40)
    assert set(found["before"]) == {"daemon", "embedding", "extraction"}
    assert all(found["most"][kind] >= size - 1 for kind, size in found["before"].items())
    assert all(found["most"][kind] >= size for kind, size in found["after"].items())


@pytest.mark.long
@pytest.mark.real("cc")
def test_chats_are_measured_idle_and_while_ingesting(running: Running, tools: Tools, tmp_path: Path) -> None:
    [row] = measure_load(running, tools, tmp_path / "b", 1, 0.6)
    for sample in row.values():
        assert sample["errors"] == 0, sample
        assert sample["probes"] > 3
        assert sample["first_ms"]["p99"] > 0
