"""Tests for gatewayd.http.public.administration.status."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gatewayd.accounts.records import Role
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.daemon_state import DaemonFacts
from gatewayd.http.public.administration.status import StatusRoutes, StatusServices
from gatewayd.scim.request_log import LoggedRequest, ScimRequestLog
from gatewayd.scim.tokens.credential import ScimTokens
from gatewayd.scim.tokens.rotation import ScimTokenKeeper, TokenSource
from tests.fakes.accounts.directory import MemoryDirectory
from tests.fakes.accounts.memory_scim_tokens import MemoryScimTokens
from tests.fakes.accounts.memory_stores import Memory
from tests.fakes.http.public_app import Client, bearer, serving
from tests.fakes.providers.models import make_actor

ACTORS = {"admin": make_actor(), "user": make_actor("u2", Role.USER)}
TOKEN = "t" * 40


class Monitor:
    """A database that fails when it is told to."""

    def __init__(self, problem: GatewayError | None = None, degraded: Sequence[str] | None = None) -> None:
        self.problem = problem
        self.degraded = degraded or []
        self.stalls = (2, 0.25)

    async def database_problem(self) -> GatewayError | None:
        return self.problem


class Sources:
    """One source with a problem, or none."""

    def __init__(self, problem: str | None) -> None:
        self.problem = problem

    def source_states(self) -> Sequence[Mapping[str, object]]:
        return [{"name": "acme", "models": 1, "problem": self.problem}]


@asynccontextmanager
async def site(
    tmp_path: Path, monitor: Monitor | None = None, problem: str | None = None
) -> AsyncIterator[Client]:
    path, origin = tmp_path / "scim-token", "environment SCIM_TOKEN"
    source = TokenSource(True, path, (TOKEN,), origin, is_external=True)
    memory = Memory()
    tokens, log = ScimTokens(True, (TOKEN,)), ScimRequestLog()
    log.add(LoggedRequest(5, "GET", "/Users", 200, "192.0.2.1", "r1"))
    log.add(LoggedRequest(6, "POST", "/Users", 409, "192.0.2.1", "r2", "taken"))
    facts = DaemonFacts("full", "hnsw", lambda: (0.98765, 64), lambda: {"size_bytes": 1, "problem": None})
    services = StatusServices(
        monitor or Monitor(),
        Sources(problem),
        facts,
        ScimTokenKeeper(tokens, source, MemoryScimTokens(memory), memory),
        MemoryDirectory(Memory()),
        log,
        "okta",
    )
    async with serving(StatusRoutes(services, "1.2.3", lambda: 100).routes(), ACTORS) as client:
        yield client


async def get(client: Client, path: str) -> Any:
    reply = await client.get(f"/api/v1/configs{path}", headers=bearer("admin"))
    assert reply.status == 200, await reply.text()
    return await reply.json()


@pytest.mark.parametrize("path", ["/api/v1/configs/status", "/api/v1/configs/scim"])
async def test_rows_are_for_administrators(tmp_path: Path, path: str) -> None:
    async with site(tmp_path) as client:
        assert (await client.get(path)).status == 401
        assert (await client.get(path, headers=bearer("user"))).status == 403


@pytest.mark.parametrize(
    ("monitor", "problem", "status"),
    [
        (Monitor(), None, "pass"),
        (Monitor(), "cannot reach acme", "warn"),
        (Monitor(degraded=["event tickets"]), None, "warn"),
        (Monitor(GatewayError(ErrorKind.TIMEOUT, "no answer")), None, "fail"),
    ],
)
async def test_the_state_of_the_gateway(
    tmp_path: Path, monitor: Monitor, problem: str | None, status: str
) -> None:
    async with site(tmp_path, monitor, problem) as client:
        shown = await get(client, "/status")
    assert (shown["status"], shown["version"], shown["vector_recall"]) == (status, "1.2.3", 0.988)
    assert (shown["stalls"], shown["longest_stall_ms"]) == (2, 250)
    assert (shown["database_problem"] is not None) == (status == "fail")
    assert shown["degraded"] == monitor.degraded


async def test_provisioning_is_shown_without_its_token(tmp_path: Path) -> None:
    async with site(tmp_path) as client:
        shown = await get(client, "/scim")
    assert (shown["enabled"], shown["provider"], len(shown["token_fingerprints"])) == (True, "okta", 1)
    assert TOKEN not in str(shown)
    assert (shown["last_request"]["request_id"], shown["last_refused"]["detail"]) == ("r2", "taken")
    assert [each["request_id"] for each in shown["requests"]] == ["r2", "r1"]
