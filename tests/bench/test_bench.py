"""Tests for the benchmark: the load generator sees what the provider sends, and what is wrong with it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.bench.__main__ import read_results, slow_rows
from tests.bench.goals import GOALS, goals_table
from tests.bench.growth import Growth, grow
from tests.bench.measure import HEALTH, MODELS, UNPACED, Bench, alternate, plain
from tests.bench.report import case_table, router_table, shown
from tests.bench.suites import growth_by_thirds, measure_leave
from tests.bench.targets import MOCK_PATH, ROUTER_NAME, checked_out, running_floor, running_mock
from tests.bench.tools import CannotRunError, Work, build, running_load

pytestmark = pytest.mark.real("cc")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("bench")
    tools = build(folder)
    with running_mock(tools, folder) as mock:
        yield Bench(tools, mock)


def result_of(bench: Bench, work: Work) -> dict[str, Any]:
    with running_load(bench.tools.load, work, bench.mock.port, MOCK_PATH) as load:
        return load.result()


def test_whole_answers_are_counted(bench: Bench) -> None:
    found = result_of(bench, Work("plain", "m-fast", 8, seconds=0.5, warm_up=0.1))
    assert found["errors"] == 0, found
    assert 0 < found["ok"] <= found["all_ok"]
    assert found["requests_per_second"] == pytest.approx(found["ok"] / 0.5)
    assert 0 < found["total_ms"]["p50"] <= found["total_ms"]["p99"] <= found["total_ms"]["max"] * 1.001


def test_streams_have_all_their_chunks(bench: Bench) -> None:
    found = result_of(bench, Work("stream", "m-c20-i5", 16, seconds=0.5, warm_up=0.1, chunks=20))
    assert found["errors"] == 0, found
    assert found["ok"] > 0
    assert found["all_chunks"] == 20 * found["all_ok"]
    # Its 19 pauses of 5 ms are a part of each stream.
    assert found["total_ms"]["p50"] >= 95


def test_unpaced_streams_have_all_their_chunks(bench: Bench) -> None:
    found = result_of(bench, Work("stream", "m-c500-i0", 16, seconds=0.3, warm_up=0.1, chunks=500))
    assert found["errors"] == 0, found
    assert found["all_chunks"] == 500 * found["all_ok"] > 0


@pytest.mark.parametrize(
    ("model", "fault"),
    [
        ("m-c3-mixed", "mixed"),
        ("m-c3-lost", "count"),
        ("m-c4", "count"),
        ("m-c3-cut", "cut"),
    ],
)
def test_a_faulty_stream_is_told(bench: Bench, model: str, fault: str) -> None:
    found = result_of(bench, Work("stream", model, 2, seconds=0.2, warm_up=0.0, chunks=3))
    assert found["ok"] == 0
    assert found["errors"] == found["faults"][fault] > 0, found


def test_another_status_is_told(bench: Bench) -> None:
    work = Work("plain", "m-fast", seconds=0.1, warm_up=0.0)
    with running_load(bench.tools.load, work, bench.mock.port, "/nothing") as load:
        found = load.result()
    assert found["errors"] == found["faults"]["status"] > 0
    assert "there is no such path" in found["sample"]


def test_held_streams_stay_until_they_are_let_go(bench: Bench) -> None:
    work = Work("hold", "m-c40-i15000", 50)
    with running_load(bench.tools.load, work, bench.mock.port, MOCK_PATH) as load:
        assert load.wait_held() == 50
        assert bench.mock.answers() == 50
        found = load.result()
    assert found["held"] == 50
    assert found["errors"] == 0


def test_a_state_is_made_large(tmp_path: Path) -> None:
    grow(tmp_path, Growth(users=20, chats=3, models=4, plugins=2))
    with closing(sqlite3.connect(tmp_path / "gatewayd.db")) as database:
        tables = ("users", "api_keys", "chats", "chat_messages", "models", "access_grants", "plugins")
        counts = [database.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in tables]
        assert counts == [20, 20, 3, 30, 4, 20, 2]
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []


def test_leaving_clients_free_the_provider(bench: Bench) -> None:
    row = measure_leave(bench, bench.direct)
    assert (row["held"], row["streaming"], row["after_1s"], row["errors"]) == (40, 40, 0, 0)
    assert result_of(bench, Work("leave", "m-c40-i15000", 5, seconds=0.1))["held"] == 5


def test_tables_tell_what_was_measured(bench: Bench) -> None:
    runs = alternate(bench, (plain(1), UNPACED), [bench.direct], 1, 0.2)
    text = case_table(UNPACED, runs["unpaced_16"])
    assert "| direct |" in text
    sample = runs["unpaced_16"]["direct"][0]
    assert sample["errors"] == 0
    assert shown(sample["chunks_per_second"]) in text
    assert sample["cpu_us"] > 0


@pytest.mark.parametrize("name", ["raw", "aiohttp"])
def test_floors_pass_on_all_that_is_measured(bench: Bench, name: str, tmp_path: Path) -> None:
    with running_floor(name, bench.mock, tmp_path) as floor:
        for case in (plain(4), UNPACED, MODELS, HEALTH):
            seconds = 0.1
            while True:
                [sample] = alternate(bench, (case,), [floor], 1, seconds)[case.name][name]
                assert (sample["errors"], sample["fast_share"]) == (0, None), sample
                if sample["ok"] > 0:
                    break
                # A busy machine answers nothing in so short a time.
                seconds *= 2
            assert sample["cpu_us"] > 0


def test_ratios_to_the_router_are_told_with_those_of_an_earlier_run() -> None:
    fields = {"total_ms": {"p50": 1.0, "p99": 2.0}, "other_cpu": 0.0, "faults": {}}
    sides = {"gatewayd": (150.0, 0.5), ROUTER_NAME: (100.0, None)}
    runs = {
        name: [sample | fields | {"fast_share": share} for sample in samples(1000, cpu)]
        for name, (cpu, share) in sides.items()
    }
    text = router_table(plain(64), runs, {"gatewayd": samples(1000, 200), ROUTER_NAME: samples(1000, 100)})
    assert "| gatewayd | 1,000 | 150 | 1.50 (1.50 to 1.50) | 2 | 1 / 2 | 50.0% | 0 | 0 |" in text
    results = {"runs": {"plain_64": runs}}
    assert slow_rows(results) == ["plain_64"]
    assert "| 64 connections, whole answers: CPU of vllm-router | <= 1.15 | 1.50 | MISSED |" in goals_table(
        results
    )


def test_an_earlier_run_is_read(tmp_path: Path) -> None:
    with pytest.raises(CannotRunError, match="cannot read"):
        read_results(tmp_path / "none.json")
    (tmp_path / "run.json").write_text('{"runs": {}}')
    assert read_results(tmp_path / "run.json") == {"runs": {}}


def samples(rate: float, cpu: float, errors: int = 0) -> list[dict[str, Any]]:
    return [{"requests_per_second": rate, "cpu_us": cpu, "errors": errors}] * 3


def test_goals_compare_with_nginx() -> None:
    runs = {"nginx": samples(1000, 13), "gatewayd": samples(250, 120)}
    text = goals_table({"runs": {"plain_64": runs}})
    assert "| 64 connections, whole answers: requests/s of nginx | >= 0.200 | 0.250 | reached |" in text
    assert "| the same: CPU us per request | <= 110 | 120 | MISSED |" in text
    assert text.count("not measured") == len(GOALS) - 2


def test_a_goal_without_a_value_is_missed() -> None:
    runs = {"nginx": samples(1000, 13), "gatewayd": [{"requests_per_second": 0.0, "cpu_us": None}]}
    assert "| the same: CPU us per request | <= 110 | - | MISSED |" in goals_table(
        {"runs": {"plain_64": runs}}
    )


def test_growth_is_told_by_thirds() -> None:
    series = [
        (float(at), 100.0 + at / 60 * (6 if at < 100 else 3 if at < 200 else 0)) for at in range(0, 300, 10)
    ]
    first, _, last = growth_by_thirds(series)
    assert first == pytest.approx(6)
    assert last == pytest.approx(0)
    assert growth_by_thirds([(0.0, 1.0)]) == [None, None, None]


def test_an_unknown_revision_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotRunError, match="cannot check out no-such-revision"):
        checked_out(Path(__file__).parents[2], "no-such-revision", tmp_path / "tree")
