"""Tests for gatewayd.http.public.health."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from gatewayd.accounts.records import Actor
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.public.health import HealthRoutes
from tests.fakes.http.public_app import bearer, serving
from tests.fakes.providers.models import make_actor

GONE = GatewayError(ErrorKind.UNAVAILABLE, "the database is gone", place="db.example.org:5432/gatewayd")


FEATURES = (
    *("auth", "auth_trusted_header", "enable_signup_password_confirmation", "enable_ldap"),
    *("enable_signup", "enable_login_form", "enable_websocket"),
)
CONFIG = {
    "status": True,
    "version": "1.2",
    "default_locale": "",
    "oauth": {"providers": {}, "auto_redirect": False},
    "features": dict.fromkeys(FEATURES, True),
}


@dataclass
class Probe:
    """A daemon in any state."""

    ready: bool = True
    problem: GatewayError | None = None
    degraded: Sequence[str] = ()
    is_well = True

    async def database_problem(self) -> GatewayError | None:
        return self.problem


class Config:
    """Tells who asked."""

    async def describe(self, actor: Actor | None) -> dict[str, Any]:
        return {**CONFIG, "name": actor.user_id if actor else "nobody"}


@pytest.mark.parametrize(
    ("probe", "health", "live", "ready"),
    [
        (Probe(), 200, 200, 200),
        (Probe(ready=False), 200, 200, 503),
        (Probe(problem=GONE), 503, 200, 503),
    ],
)
async def test_each_question_has_its_answer(probe: Probe, health: int, live: int, ready: int) -> None:
    async with serving(HealthRoutes(probe, Config(), "1.2").routes()) as client:
        for path, status in {
            "/health": health,
            "/health/db": health,
            "/livez": live,
            "/readyz": ready,
            "/ready": ready,
        }.items():
            reply = await client.get(path)
            assert reply.status == status, path
            assert "db.example.org" not in await reply.text()
            assert (await reply.json())["status"] is (status == 200)
        assert (await client.head("/health")).status == health


async def test_a_degraded_part_is_named_and_requests_are_served() -> None:
    probe = Probe(degraded=["event tickets"])
    async with serving(HealthRoutes(probe, Config(), "1.2").routes()) as client:
        for path in ("/readyz", "/ready"):
            reply = await client.get(path)
            assert (reply.status, await reply.json()) == (
                200,
                {"status": True, "degraded": ["event tickets"]},
            )
        probe.problem = GONE
        reply = await client.get("/readyz")
        assert (reply.status, "degraded" in await reply.json()) == (503, False)


async def test_version_and_config() -> None:
    async with serving(HealthRoutes(Probe(), Config(), "1.2").routes(), {"a": make_actor()}) as client:
        assert (await (await client.get("/api/version")).json())["version"] == "1.2"
        assert (await (await client.get("/api/config")).json())["name"] == "nobody"
        assert (await (await client.get("/api/config", headers=bearer("bad"))).json())["name"] == "nobody"
        assert (await (await client.get("/api/config", headers=bearer("a"))).json())["name"] == "u1"
