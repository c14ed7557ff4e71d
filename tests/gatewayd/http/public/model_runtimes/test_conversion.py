"""Tests for gatewayd.http.public.model_runtimes.conversion."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
from ollama import AsyncClient, ResponseError

from gatewayd.catalog.interfaces import CallContext
from gatewayd.catalog.records import Model
from gatewayd.completions.records import Body, CompletionChunk
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.daemons.runtime_site import Scene, serving_runtimes, two_runtimes
from tests.fakes.http.public_app import Client, bearer
from tests.fakes.providers.models import FakeSource, make_model
from tests.fakes.providers.upstream import openai_chunk

ADMIN = bearer("admin")
MESSAGES = [{"role": "user", "content": "hi"}]
CHAT = {"model": "gpt", "messages": MESSAGES}
USAGE = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}}
WHOLE = [
    CompletionChunk(events=[openai_chunk(content="hel")]),
    CompletionChunk(events=[openai_chunk(content="lo"), openai_chunk(finish_reason="stop"), USAGE]),
]
BROKEN = GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot get an answer from provider 'acme': gone")
MODELS = [
    make_model("gpt", "acme"),
    make_model("tagged:latest", "acme"),
    make_model("small", "acme", owned_by="local", connection_type="local", created=1_700_000_000),
]


@dataclass
class Acme(FakeSource):
    """A source that gives vectors too."""

    async def embed(self, body: Body, model: Model, context: CallContext) -> Body:
        self.asked.append(body)
        data = [
            {"object": "embedding", "index": index, "embedding": [0.5, float(len(text))]}
            for index, text in enumerate(body["input"])
        ]
        return {"object": "list", "data": data, "model": model.upstream_id, "usage": {"prompt_tokens": 4}}


def acme(*script: CompletionChunk | Exception) -> Acme:
    return Acme("acme", MODELS, script=lambda _: script or WHOLE)


@asynccontextmanager
async def asking(source: FakeSource) -> AsyncIterator[tuple[Scene, Client]]:
    async with two_runtimes(source) as scene, serving_runtimes(scene) as client:
        yield scene, client


async def post(client: Client, path: str, body: Any, who: str = "admin") -> tuple[int, list[Any]]:
    reply = await client.post(f"/ollama{path}", json=body, headers=bearer(who))
    return reply.status, [orjson.loads(line) for line in (await reply.read()).splitlines()]


async def test_chat_in_lines() -> None:
    source = acme()
    async with asking(source) as (scene, client):
        reply = await client.post("/ollama/api/chat", json=CHAT, headers=ADMIN)
        assert reply.content_type == "application/x-ndjson"
        lines = [orjson.loads(line) for line in (await reply.read()).splitlines()]
        assert [line["message"]["content"] for line in lines] == ["hel", "lo", ""]
        assert [line["done"] for line in lines] == [False, False, True]
        assert (lines[-1]["prompt_eval_count"], lines[-1]["eval_count"]) == (3, 2)
        assert lines[-1]["total_duration"] >= lines[-1]["prompt_eval_duration"] > 0
        assert {line["model"] for line in lines} == {"gpt"}
        assert source.asked[0]["model"] == "up-gpt"
        assert source.contexts[0].request_id == reply.headers["X-Request-Id"]
        assert scene.near.requests == scene.far.requests == []


async def test_chat_and_generate_at_once() -> None:
    source = acme()
    async with asking(source) as (_, client):
        status, (answer,) = await post(client, "/api/chat", {**CHAT, "stream": False})
        assert (status, answer["message"]) == (200, {"role": "assistant", "content": "hello"})
        body = {"model": "gpt", "prompt": "go on", "stream": False, "options": {"temperature": 0.5}}
        status, (answer,) = await post(client, "/api/generate", body)
        assert (status, answer["response"], answer["done"]) == (200, "hello", True)
        assert source.asked[1]["messages"] == [{"role": "user", "content": "go on"}]
        assert source.asked[1]["temperature"] == 0.5


async def test_generate_in_lines() -> None:
    async with asking(acme()) as (_, client):
        _, lines = await post(client, "/api/generate", {"model": "gpt", "prompt": "go on"})
        assert [line["response"] for line in lines] == ["hel", "lo", ""]


@pytest.mark.parametrize(("name", "meant"), [("tagged", "tagged:latest"), ("gpt:latest", "gpt")])
async def test_a_tag_may_be_left_out_or_put_in(name: str, meant: str) -> None:
    source = acme()
    async with asking(source) as (_, client):
        status, _ = await post(client, "/api/chat", {**CHAT, "model": name})
        assert (status, source.asked[0]["model"]) == (200, f"up-{meant}")


async def test_a_failure_before_the_first_line_is_a_status() -> None:
    async with asking(acme(BROKEN)) as (_, client):
        status, (answer,) = await post(client, "/api/chat", CHAT)
        assert (status, answer["error"]) == (502, BROKEN.message)


@pytest.mark.parametrize(
    "failure", [BROKEN, CompletionChunk(events=[{"error": {"message": BROKEN.message}}])]
)
async def test_a_failure_after_it_is_the_last_line(failure: CompletionChunk | Exception) -> None:
    async with asking(acme(WHOLE[0], failure)) as (_, client):
        status, (first, last) = await post(client, "/api/chat", CHAT)
        assert (status, first["message"]["content"]) == (200, "hel")
        assert last["error"] == BROKEN.message


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/api/chat", {"messages": "hi"}, "messages"),
        ("/api/chat", {"messages": [], "stream": 1}, "stream"),
        ("/api/generate", {"prompt": "x", "raw": True}, "raw"),
        ("/api/embed", {"input": 5}, "input"),
    ],
)
async def test_bad_fields_are_named(path: str, body: dict[str, Any], param: str) -> None:
    async with asking(acme()) as (_, client):
        status, (answer,) = await post(client, path, {"model": "gpt", **body})
        assert status == 400
        assert param in answer["error"]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("keep_alive", "reason"), [(0, "unload"), ("5m", "load")])
async def test_loading_asks_nothing_of_the_source(
    keep_alive: int | str, reason: str, *, stream: bool
) -> None:
    source = acme()
    async with asking(source) as (_, client):
        body = {"model": "gpt", "keep_alive": keep_alive, "stream": stream}
        for path in ("/api/chat", "/api/generate"):
            _, (answer,) = await post(client, path, body)
            assert (answer["done"], answer["done_reason"]) == (True, reason)
        assert source.asked == []


async def test_what_cannot_be_used_is_told_in_a_header() -> None:
    async with asking(acme()) as (_, client):
        for stream in (True, False):
            body = {**CHAT, "options": {"num_ctx": 9}, "stream": stream}
            reply = await client.post("/ollama/api/chat", json=body, headers=ADMIN)
            assert "num_ctx" in reply.headers["X-Gateway-Warning"]


async def test_vectors() -> None:
    source = acme()
    async with asking(source) as (_, client):
        status, (answer,) = await post(client, "/api/embed", {"model": "gpt", "input": ["a", "bb"]})
        assert (status, answer["embeddings"]) == (200, [[0.5, 1.0], [0.5, 2.0]])
        assert (answer["model"], answer["prompt_eval_count"]) == ("gpt", 4)
        status, (answer,) = await post(client, "/api/embeddings", {"model": "gpt", "prompt": "abc"})
        assert (status, answer) == (200, {"embedding": [0.5, 3.0]})
        assert source.asked[0]["model"] == "up-gpt"


async def test_a_source_without_vectors() -> None:
    async with asking(FakeSource("acme", MODELS)) as (_, client):
        status, (answer,) = await post(client, "/api/embed", {"model": "gpt", "input": "a"})
        assert status == 404
        assert "gives no embeddings" in answer["error"]


async def test_only_local_models_are_listed() -> None:
    async with asking(acme()) as (scene, client):
        tags = await (await client.get("/ollama/api/tags", headers=ADMIN)).json()
        assert [tag for tag in tags["models"] if tag["model"] in {"gpt", "small", "tagged:latest"}] == [
            {
                "name": "small",
                "model": "small",
                "modified_at": "2023-11-14T22:13:20Z",
                "size": 0,
                "digest": tags["models"][-1]["digest"],
                "details": tags["models"][-1]["details"],
                "urls": [],
                "connection_type": "local",
            }
        ]
        tags = await (await client.get("/ollama/api/tags/0", headers=ADMIN)).json()
        assert "small" not in {tag["model"] for tag in tags["models"]}
        await scene.let("gpt")
        tags = await (await client.get("/ollama/api/tags", headers=bearer("user"))).json()
        assert tags == {"models": []}


@pytest.mark.parametrize("name", ["gpt", "gpt:latest", "absent"])
@pytest.mark.parametrize("path", ["/api/chat", "/api/generate", "/api/embed", "/api/embeddings", "/api/show"])
async def test_a_model_without_a_grant_is_not_there(path: str, name: str) -> None:
    source = acme()
    async with asking(source) as (_, client):
        status, (answer,) = await post(client, path, {**CHAT, "model": name, "prompt": "p"}, "user")
        assert (status, answer["error"]) == (404, f"model {name!r} not found")
        assert source.asked == []


async def test_a_place_means_a_runtime() -> None:
    async with asking(acme()) as (_, client):
        status, (answer,) = await post(client, "/api/chat/0", CHAT)
        assert (status, answer["error"]) == (404, "model 'gpt' not found")


async def test_a_client_that_leaves_closes_the_source() -> None:
    closed = asyncio.Event()

    class Silent(FakeSource):
        async def stream(self, *_: object) -> AsyncIterator[CompletionChunk]:
            try:
                yield WHOLE[0]
                await asyncio.Event().wait()
            finally:
                closed.set()

    async with asking(Silent("acme", MODELS)) as (_, client):
        reply = await client.post("/ollama/api/chat", json=CHAT, headers=ADMIN)
        await reply.content.readany()
        reply.close()
        await asyncio.wait_for(closed.wait(), 1)


async def test_the_official_client() -> None:
    call = {"index": 0, "id": "c1", "type": "function"}
    named = {**call, "function": {"name": "add", "arguments": '{"a":'}}
    rest = {"index": 0, "function": {"arguments": " 1}"}}
    calling = [
        CompletionChunk(events=[openai_chunk(tool_calls=[named])]),
        CompletionChunk(events=[openai_chunk(tool_calls=[rest]), openai_chunk(finish_reason="tool_calls")]),
    ]
    async with (
        asking(acme(*calling)) as (_, server),
        AsyncClient(str(server.make_url("/ollama")), headers=ADMIN) as client,
    ):
        parts = [part async for part in await client.chat("small", MESSAGES, stream=True)]
        (made,) = [made for part in parts for made in part.message.tool_calls or ()]
        assert (made.function.name, made.function.arguments) == ("add", {"a": 1})
        assert (await client.chat("small", MESSAGES)).message.content == "hello"
        assert (await client.generate("small", "hi")).response == "hello"
        assert (await client.embed("small", "abc")).embeddings == [[0.5, 3.0]]
        assert (await client.show("small")).capabilities == ["completion", "tools"]
        assert "small" in {model.model for model in (await client.list()).models}
        with pytest.raises(ResponseError, match="model 'no' not found"):
            await client.show("no")
