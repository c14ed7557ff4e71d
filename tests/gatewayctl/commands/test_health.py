"""gatewayctl health."""

import json

from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.daemons.control_socket import Control, Ctl


async def test_a_daemon_in_order(ctl: Ctl, control: Control) -> None:
    await ctl("model", "list")
    control.accounts.time += 90
    shown = json.loads((await ctl("health", "-o", "json")).out)
    assert list(shown) == [
        "status",
        "version",
        "protocol",
        "started_at",
        "uptime_seconds",
        "database",
        "sources",
        "extraction_sandbox",
        "vector_index",
        "vector_recall",
        "vector_ef_search",
        "vector_cache",
        "stalls",
        "longest_stall_ms",
        "database_problem",
        "degraded",
    ]
    assert shown["uptime_seconds"] == 90
    assert (shown["extraction_sandbox"], shown["vector_index"]) == ("full", "hnsw")
    assert (shown["vector_recall"], shown["vector_ef_search"]) == (0.962, 1111)
    assert "0.962 with ef_search 1111" in (await ctl("health")).out
    assert shown["sources"] == [{"name": "fake", "models": 2, "problem": None}]
    assert (await ctl("health", "-o", "name")).out == "pass\n"
    assert "fake: 2 models" in (await ctl("health")).out
    control.health.stalls = (3, 0.25)
    assert "3, the longest 250 ms" in (await ctl("health")).out


async def test_a_vector_cache_that_is_too_small_warns(ctl: Ctl, control: Control) -> None:
    assert "300 of 512 MiB" in (await ctl("health")).out
    control.vector_cache |= {"reloads": 7, "problem": "collections load each other out"}
    assert (await ctl("health", "-o", "name")).out == "warn\n"
    told = " ".join((await ctl("health")).out.split())
    assert "300 of 512 MiB, 7 loaded again: collections load each other out" in told


async def test_what_is_dead_or_degraded_warns_and_a_dead_database_fails(ctl: Ctl, control: Control) -> None:
    control.source.failure = GatewayError(ErrorKind.UPSTREAM_UNREACHABLE, "cannot reach fake")
    await ctl("model", "list", "--refresh")
    assert (await ctl("health", "-o", "name")).out == "warn\n"
    assert "fake: cannot reach fake" in (await ctl("health")).out
    control.source.failure, control.health.degraded = None, ("event tickets", "events of other nodes")
    await ctl("model", "list", "--refresh")
    assert (await ctl("health", "-o", "name")).out == "warn\n"
    assert "event tickets, events of other nodes" in (await ctl("health")).out
    control.health.problem = GatewayError(
        ErrorKind.UNAVAILABLE, "cannot reach the database", place="db.example.org:5432/gatewayd"
    )
    assert "cannot reach the database at db.example.org:5432/gatewayd" in (await ctl("health")).out
    failing = await ctl("health", "-o", "jsonl")
    assert failing.code == 1
    assert json.loads(failing.out)["status"] == "fail"
