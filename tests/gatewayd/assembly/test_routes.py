"""Tests for gatewayd.assembly.routes."""

import re
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from openapi_spec_validator import validate

from gatewayd.assembly.gateway import Gateway, assemble
from gatewayd.assembly.routes import GatewayServices, control_rows, public_rows, site_facts
from gatewayd.http.openapi import describe_routes
from gatewayd.http.routes import Route, RouteAccess, RouteDialect
from gatewayd.settings import load

OPENAI_WORK = r"/(chat/completions|completions|messages|message|count_tokens|embeddings|responses)$"
RESPONSE_WORK = r"/responses/(compact|input_tokens)$"
MEDIA_WORK = r"/(images/\w+|audio/\w+|moderations|rerank)$"
RUNTIME_WORK = r"^/ollama/api/(generate|chat|embed|embeddings|show|pull|push|create)(/\{index.*)?$"
UNKNOWN_WORK = r"^/ollama/api/\{path:"
PROVIDER_TESTS = "^/(?:openai|ollama)/verify$"
MODEL_WORK = f"{OPENAI_WORK}|{RESPONSE_WORK}|{MEDIA_WORK}|{RUNTIME_WORK}|{UNKNOWN_WORK}|{PROVIDER_TESTS}"


@pytest.fixture
async def gateway(state: Path) -> Gateway:
    settings = load(None, {"DATA_DIR": str(state), "ENABLE_BUILTIN_MODEL": "false"})
    async with AsyncExitStack() as stack:
        return await assemble(settings, stack)


@pytest.fixture
def rows(gateway: Gateway) -> Sequence[Route]:
    return public_rows(gateway.services, gateway.streaming)


@pytest.fixture
def parts(gateway: Gateway) -> GatewayServices:
    return gateway.services


async def test_public_rows_are_unique_and_none_is_a_control_row(rows: Sequence[Route]) -> None:
    named = [(row.method, row.path) for row in rows]
    assert len(named) == len(set(named))
    assert all(row.access is not RouteAccess.CONTROL for row in rows)


async def test_control_rows_speak_the_control_protocol(parts: GatewayServices) -> None:
    rows = control_rows(parts)
    assert all(row.access is RouteAccess.CONTROL and row.dialect is RouteDialect.CONTROL for row in rows)
    assert len({(row.method, row.path) for row in rows}) == len(rows)


async def test_the_whole_description_is_valid(rows: Sequence[Route]) -> None:
    validate(describe_routes(rows, title="gatewayd", version="1"))


async def test_only_answers_of_models_may_be_interrupted(rows: Sequence[Route]) -> None:
    interruptible = {row.path for row in rows if row.interruptible}
    # Everything else runs to its end, so that what was committed is also announced.
    assert all(re.search(MODEL_WORK, path) for path in interruptible), interruptible
    assert {
        "/api/chat/completions",
        "/api/v1/messages",
        "/v1/embeddings",
        "/ollama/api/pull",
    } <= interruptible


@pytest.mark.parametrize("off", ["ENABLE_LOGIN_FORM", "ENABLE_PASSWORD_AUTH"])
def test_a_form_is_offered_where_passwords_are_accepted(off: str) -> None:
    assert site_facts(load(None, {})).enable_login_form
    assert not site_facts(load(None, {off: "false"})).enable_login_form
