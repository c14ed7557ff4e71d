"""Tests for gatewayd.assembly.routes."""

import re
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from openapi_spec_validator import validate

from gatewayd.assembly.gateway import assemble, make_pipeline
from gatewayd.assembly.routes import Parts, control_rows, public_rows
from gatewayd.http.openapi import describe
from gatewayd.http.routes import Access, Dialect
from gatewayd.settings import load

OPENAI_WORK = r"/(chat/completions|completions|messages|message|count_tokens|responses|embeddings)$"
RUNTIME_WORK = r"^/ollama/api/(generate|chat|embed|embeddings|show|pull|push|create)(/\{index.*)?$"
MODEL_WORK = f"{OPENAI_WORK}|{RUNTIME_WORK}"


@pytest.fixture
async def parts(state: Path) -> Parts:
    settings = load(None, {"DATA_DIR": str(state), "ENABLE_BUILTIN_MODEL": "false"})
    async with AsyncExitStack() as stack:
        gateway = await assemble(settings, stack)
        return Parts(
            settings,
            gateway.accounts,
            gateway.catalog,
            make_pipeline(gateway.catalog, gateway.documents.attachments),
            gateway.health,
            gateway.provisioning,
            gateway.documents,
        )


async def test_public_rows_are_unique_and_none_is_a_control_row(parts: Parts) -> None:
    rows = [(row.method, row.path) for row in public_rows(parts)]
    assert len(rows) == len(set(rows))
    assert all(row.access is not Access.CONTROL for row in public_rows(parts))


async def test_control_rows_speak_the_control_protocol(parts: Parts) -> None:
    rows = control_rows(parts)
    assert all(row.access is Access.CONTROL and row.dialect is Dialect.CONTROL for row in rows)
    assert len({(row.method, row.path) for row in rows}) == len(rows)


async def test_the_whole_description_is_valid(parts: Parts) -> None:
    validate(describe(public_rows(parts), title="gatewayd", version="1"))


async def test_only_answers_of_models_may_be_interrupted(parts: Parts) -> None:
    interruptible = {row.path for row in public_rows(parts) if row.interruptible}
    # Everything else runs to its end, so that what was committed is also announced.
    assert all(re.search(MODEL_WORK, path) for path in interruptible), interruptible
    assert {
        "/api/chat/completions",
        "/api/v1/messages",
        "/v1/embeddings",
        "/ollama/api/pull",
    } <= interruptible
