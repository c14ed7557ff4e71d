"""Callers of every dialect reach a model that takes tools only in the Responses protocol, for two turns."""

from contextlib import asynccontextmanager

import orjson
import pytest

from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.dialects import openai
from gatewayd.dialects.anthropic import dialect as anthropic
from gatewayd.dialects.ollama import dialect as ollama
from gatewayd.pipeline.pipeline import NoFilters, NoTools, Pipeline
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from gatewayd.upstream.sources.openai import OpenAiSource
from tests.fakes.documents.no_documents import NoAttachments
from tests.fakes.providers.models import FakeRecords, make_actor
from tests.fakes.providers.strict.conversation import ANSWER, ARGUMENTS, PARAMETERS, RESULT, TEXT, TOOL
from tests.fakes.providers.strict.responses import StrictResponses

NAME = "gpt-5.6-sol"
ASK = {"role": "user", "content": "How is the weather there?"}
FUNCTION = {"type": "function", "function": {"name": TOOL, "parameters": PARAMETERS}}
CALL = {
    "id": "call_0",
    "type": "function",
    "function": {"name": TOOL, "arguments": orjson.dumps(ARGUMENTS).decode()},
}
USE = {"type": "tool_use", "id": "call_0", "name": TOOL, "input": ARGUMENTS}

CHAT = (
    openai.parse_request,
    {"tools": [FUNCTION]},
    [
        {"role": "assistant", "content": TEXT, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_0", "content": RESULT},
    ],
)
MESSAGES = (
    anthropic.parse_request,
    {"tools": [{"name": TOOL, "input_schema": PARAMETERS}], "max_tokens": 500},
    [
        {"role": "assistant", "content": [{"type": "text", "text": TEXT}, USE]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_0", "content": RESULT}]},
    ],
)
RUNTIME = (
    ollama.parse_chat,
    {"tools": [FUNCTION], "stream": False},
    [
        {
            "role": "assistant",
            "content": TEXT,
            "tool_calls": [{"function": {"name": TOOL, "arguments": ARGUMENTS}}],
        },
        {"role": "tool", "tool_name": TOOL, "content": RESULT},
    ],
)


@asynccontextmanager
async def piped(strict, short):
    config = ProviderConfig(
        "acme", SourceKind.OPENAI, strict.openai_url, strict.key, maker="openai", timeouts=short
    )
    source, tasks = OpenAiSource(config), TaskRegistry()
    catalog = Catalog(FakeRecords(), tasks, CatalogOptions())
    catalog.use([source])
    await catalog.list_all()
    yield Pipeline(catalog, NoFilters(), NoAttachments(), NoTools())
    await source.close()
    await tasks.close()


@pytest.mark.parametrize(
    ("parse", "fields", "turn"), [CHAT, MESSAGES, RUNTIME], ids=["chat", "messages", "runtime"]
)
async def test_two_turns(short, parse, fields, turn):
    async with StrictResponses([NAME]) as strict, piped(strict, short) as pipeline:
        asked = {"model": NAME, "messages": [ASK], **fields}
        first = (await pipeline.run(parse(asked), make_actor())).completion.body["choices"][0]
        called = first["message"]["tool_calls"][0]["function"]
        assert (called["name"], orjson.loads(called["arguments"])) == (TOOL, ARGUMENTS)
        assert first["finish_reason"] == "tool_calls"
        asked = {**asked, "messages": [ASK, *turn]}
        second = (await pipeline.run(parse(asked), make_actor())).completion.body["choices"][0]
    assert second["message"]["content"] == ANSWER
    assert [request.path for request in strict.requests[1:]] == ["/v1/responses"] * 2
    # Its reasoning goes back, though these clients have no place for it.
    assert b'"encrypted_content":"sealed for org"' in strict.requests[-1].body
