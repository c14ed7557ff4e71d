"""The runtimes' client for Python: every model through it, wherever the model lives."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import ollama
import pytest

from tests.clients.askers import SECONDS
from tests.clients.conversation import OPENAI_TOOLS, PNG, SAYINGS, Said
from tests.clients.scene import PREFIXES, Scene, model_of
from tests.fakes.providers.upstream import Reply, json_reply, ndjson

HI: Any = [{"role": "user", "content": "hi"}]
KINDS = tuple(PREFIXES)
CITY = '{"name": "Ulm"}'
SCHEMA: Any = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@pytest.fixture
async def client(scene: Scene) -> AsyncIterator[ollama.AsyncClient]:
    headers = {"Authorization": f"Bearer {scene.key}"}
    async with ollama.AsyncClient(f"{scene.url}/ollama", headers=headers, timeout=SECONDS) as made:
        yield made


@pytest.mark.parametrize("kind", KINDS)
async def test_chat(scene: Scene, client: ollama.AsyncClient, kind: str) -> None:
    said = SAYINGS["text and parallel tool calls"]
    scene.provider.script(said.reply(kind, stream=False), said.reply(kind, stream=True))
    answer = await client.chat(model_of(kind), HI, tools=OPENAI_TOOLS)
    assert answer.message.content == "Let me look."
    calls = answer.message.tool_calls or ()
    assert [(call.function.name, call.function.arguments) for call in calls] == list(said.calls)
    assert answer.done
    assert answer.created_at
    parts = [part async for part in await client.chat(model_of(kind), HI, tools=OPENAI_TOOLS, stream=True)]
    assert "".join(part.message.content or "" for part in parts) == "Let me look."
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    assert (parts[-1].prompt_eval_count, parts[-1].eval_count) == (3, 2)


GENERATED = [{"model": "m", "created_at": "2026-01-01T00:00:00Z", "response": text} for text in ("Hel", "lo")]


def generated(kind: str, *, stream: bool) -> Reply:
    """Return what a provider answers when a prompt is to be continued: only runtimes know how."""
    if kind != "ollama":
        return Said(("Hel", "lo")).reply(kind, stream=stream)
    end = {"done": True, "done_reason": "stop", "prompt_eval_count": 3, "eval_count": 2}
    if stream:
        last = {**GENERATED[0], "response": "", **end}
        return Reply(steps=[*(ndjson({**part, "done": False}) for part in GENERATED), ndjson(last)])
    return json_reply({**GENERATED[0], "response": "Hello", **end})


@pytest.mark.parametrize("kind", KINDS)
async def test_generate(scene: Scene, client: ollama.AsyncClient, kind: str) -> None:
    scene.provider.script(generated(kind, stream=False), generated(kind, stream=True))
    answer = await client.generate(model_of(kind), "hi", system="Be brief.", images=[PNG])
    assert (answer.response, answer.done_reason) == ("Hello", "stop")
    assert (answer.prompt_eval_count, answer.eval_count) == (3, 2)
    sent = scene.provider.last()
    assert PNG.encode() in sent.body
    assert b"Be brief." in sent.body
    parts = [part async for part in await client.generate(model_of(kind), "hi", stream=True)]
    assert "".join(part.response or "" for part in parts) == "Hello"
    assert parts[-1].eval_count == 2


@pytest.mark.parametrize("kind", KINDS)
async def test_the_form_of_the_answer(scene: Scene, client: ollama.AsyncClient, kind: str) -> None:
    scene.provider.script(Said((CITY,)).reply(kind, stream=False))
    answer = await client.chat(model_of(kind), HI, format=SCHEMA)
    assert answer.message.content == CITY
    sent = scene.provider.last().json
    forms = {
        "openai": lambda: sent["response_format"]["json_schema"]["schema"],
        "anthropic": lambda: sent["output_config"]["format"]["schema"],
        "ollama": lambda: sent["format"],
    }
    found = forms[kind]()
    assert found["properties"] == SCHEMA["properties"]
    assert found["required"] == SCHEMA["required"]


async def test_results_and_thoughts_in_the_history(scene: Scene, client: ollama.AsyncClient) -> None:
    scene.provider.script(SAYINGS["a tool call"].reply("openai", stream=False))
    first = await client.chat("o.m", HI, tools=OPENAI_TOOLS, think="high")
    assert scene.provider.last().json["reasoning_effort"] == "high"
    result = {"role": "tool", "tool_name": "f", "content": "Error: no", "images": [PNG]}
    await client.chat("o.m", [*HI, first.message, result], tools=OPENAI_TOOLS)
    sent = scene.provider.last().json["messages"]
    call = sent[1]["tool_calls"][0]
    assert call["function"] == {"name": "f", "arguments": '{"x":1}'}
    assert sent[2]["tool_call_id"] == call["id"]
    assert "Error: no" in str(sent[2]["content"])
    assert PNG in str(sent)


@pytest.mark.parametrize("kind", ["openai", "ollama"])
async def test_vectors(client: ollama.AsyncClient, kind: str) -> None:
    both = await client.embed(model_of(kind), ["a", "b"])
    one = await client.embed(model_of(kind), "b")
    assert [len(vector) for vector in both.embeddings] == [32, 32]
    assert list(both.embeddings[1]) == pytest.approx(list(one.embeddings[0]))
    assert both.embeddings[0] != both.embeddings[1]


async def test_a_vector_the_old_way(scene: Scene, client: ollama.AsyncClient) -> None:
    wanted = (await client.embed("o.m", "a")).embeddings[0]
    assert list((await client.embeddings("o.m", "a")).embedding) == pytest.approx(list(wanted))
    scene.provider.script(json_reply({"embedding": [0.5]}))
    assert list((await client.embeddings("l.m", "a")).embedding) == [0.5]


async def test_lists(client: ollama.AsyncClient) -> None:
    models = {model.model: model for model in (await client.list()).models}
    assert {"l.m", "l.n", "hl.m"} <= set(models)
    assert models["l.m"].size == 1
    running = {model.model: model for model in (await client.ps()).models}
    assert {"l.m", "l.n", "hl.m"} <= set(running)
    assert running["l.m"].size_vram == 1


async def test_show(scene: Scene, client: ollama.AsyncClient) -> None:
    scene.provider.script(json_reply({"capabilities": ["completion"], "model_info": {"a": 1}}))
    shown = await client.show("l.m")
    assert (shown.capabilities, shown.modelinfo) == (["completion"], {"a": 1})
    elsewhere = await client.show("o.m")
    assert "completion" in (elsewhere.capabilities or [])
    with pytest.raises(ollama.ResponseError, match="'nope'") as caught:
        await client.show("nope")
    assert caught.value.status_code == 404


def test_the_client_that_waits(scene: Scene, ollama_client: ollama.Client) -> None:
    scene.provider.script(generated("openai", stream=False))
    assert ollama_client.generate("o.m", "hi").response == "Hello"
    assert len(ollama_client.embed("l.m", ["a", "b"]).embeddings) == 2
    assert ollama_client.list().models
    assert ollama_client.ps().models
    scene.provider.script(json_reply({"capabilities": ["completion"], "model_info": {}}))
    assert ollama_client.show("l.m").capabilities == ["completion"]


async def test_many_at_once_are_not_mixed_up(scene: Scene, client: ollama.AsyncClient) -> None:
    scene.provider.script()

    async def one(kind: str, name: str) -> str:
        stream = await client.chat(PREFIXES[kind] + name, HI, stream=True)
        return "".join([part.message.content or "" async for part in stream])

    asked = [(kind, name) for kind in KINDS for name in ("m", "n")] * 5
    told = await asyncio.gather(*(one(kind, name) for kind, name in asked))
    assert told == [f"Hello from {name}" for _, name in asked]
