"""Tests for resumable streams and repeated requests, from the client to a source."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from gatewayd.accounts.records import Role
from gatewayd.assembly.resumption import EDGES
from gatewayd.catalog.records import EVERYBODY, Grant, ModelRecord
from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.completions.records import CompletionChunk
from gatewayd.dialects.tokenizers import count_locally
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.public.completions.chat import ChatRoutes
from gatewayd.http.public.completions.messages import MessageRoutes
from gatewayd.http.public.completions.streams import PATHS, StreamRoutes
from gatewayd.http.responses.repeatable import RepeatableAnswers
from gatewayd.http.responses.resumable import ResumableAnswers
from gatewayd.http.responses.streams import AnswerStreams
from gatewayd.pipeline.filters.inputs import InputFilters
from gatewayd.pipeline.pipeline import NoFilters, NoTools, Pipeline
from gatewayd.pipeline.token_counts import TokenCounts
from gatewayd.resumption.idempotency import IdempotentReplies
from gatewayd.resumption.service import ResumableStreams
from gatewayd.tasks import TaskRegistry
from tests.fakes.documents.no_documents import NoAttachments
from tests.fakes.http.public_app import Client, bearer, serving
from tests.fakes.providers.models import FakeRecords, FakeSource, make_actor, make_model
from tests.fakes.storage.chat_runs import make_plain_runs
from tests.fakes.storage.streams import CountingLimiter, MemoryReplies, MemoryStreams

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
ASKED = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
RESUMABLE = {"X-Gateway-Stream": "resumable"}
STREAM_ID = "X-Gateway-Stream-Id"
WORDS = ("one ", "two\n\nid: 7\n", "thr\u00e9e")

ID = re.compile(rb"(?m)^id: \d+\n")


def chunk(text: str) -> CompletionChunk:
    choice = {"index": 0, "delta": {"content": text}}
    return CompletionChunk(events=[{"id": "c", "object": "chat.completion.chunk", "choices": [choice]}])


@dataclass
class World:
    """The routes over a source with a script, and stores in memory."""

    client: Client
    source: FakeSource
    tasks: TaskRegistry
    store: MemoryStreams
    replies: MemoryReplies
    streams: ResumableStreams
    limiter: CountingLimiter = field(default_factory=CountingLimiter)

    async def ask(
        self, path: str = CHAT, *, user: str = "ann", headers: dict[str, str] | None = None, **changes: Any
    ) -> Any:
        body = {**ASKED, "stream": True, **changes}
        return await self.client.post(path, json=body, headers={**bearer(user), **(headers or RESUMABLE)})

    async def resume(self, stream_id: str, after: int | str | None = None, user: str = "ann") -> Any:
        headers = bearer(user) if after is None else {**bearer(user), "Last-Event-ID": str(after)}
        return await self.client.get(f"/v1/streams/{stream_id}", headers=headers)


class GatedSource(FakeSource):
    """A source that waits for `gate` before its last word."""

    gate: asyncio.Event

    async def stream(self, *asked: Any) -> AsyncIterator[CompletionChunk]:
        async for each in super().stream(*asked):
            yield each
        await self.gate.wait()
        yield chunk("end")


@asynccontextmanager
async def world_of(
    source: FakeSource | None = None,
    *,
    store: MemoryStreams | None = None,
    replies: MemoryReplies | None = None,
    head_seconds: float = 5.0,
) -> AsyncIterator[World]:
    tasks = TaskRegistry()
    source = source or FakeSource()
    source.models = [make_model("m")]
    source.script = source.script or (lambda _: [chunk(word) for word in WORDS])
    catalog = Catalog(FakeRecords(), tasks, CatalogOptions())
    catalog.use([source])
    await catalog.list(make_actor())
    await catalog.put_record(ModelRecord("m", "a", "m", grants=(Grant("user", EVERYBODY, "read"),)))
    pipeline = Pipeline(catalog, NoFilters(), NoAttachments(), NoTools())
    store, replies, limiter = store or MemoryStreams(), replies or MemoryReplies(), CountingLimiter()
    streams = ResumableStreams(store, tasks, limiter)
    await streams.resume()
    resumable = ResumableAnswers(streams, AnswerStreams(seconds=0.02), head_seconds=head_seconds)
    repeatable = RepeatableAnswers(resumable, IdempotentReplies(replies, tasks))
    runs = make_plain_runs(catalog, pipeline, tasks)
    counts = TokenCounts(catalog, InputFilters(catalog, NoFilters()), count_locally)
    rows = [
        *ChatRoutes(runs, body_limit=9_999, repeatable=repeatable).routes(),
        *MessageRoutes(pipeline, counts, body_limit=9_999, repeatable=repeatable).routes(),
        *StreamRoutes(resumable, EDGES).routes(),
    ]
    actors = {"ann": make_actor("ann", Role.USER), "bob": make_actor("bob", Role.USER)}
    async with serving(rows, actors) as client:
        yield World(client, source, tasks, store, replies, streams, limiter)
    await tasks.close()


def last_whole(data: bytes) -> int:
    """Return the id of the last whole frame."""
    frames = data.split(b"\n\n")[:-1]
    return int(frames[-1].partition(b"\n")[0].removeprefix(b"id: ")) if frames else 0


def whole_frames(data: bytes) -> bytes:
    return data[: data.rfind(b"\n\n") + 2] if b"\n\n" in data else b""


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
async def test_stream_cut_at_every_byte_joins_to_the_unbroken_one(path: str) -> None:
    async with world_of() as world:
        reply = await world.ask(path)
        stream_id = reply.headers[STREAM_ID]
        data = await reply.read()
        reply = await world.client.post(path, json={**ASKED, "stream": True}, headers=bearer("ann"))
        plain = await reply.read()
        assert len(ID.findall(data)) == data.count(b"\n\n")
        if path == CHAT:
            assert ID.sub(b"", data) == plain
        for is_stored in (False, True):
            cuts: Sequence[int] = range(len(data)) if is_stored else range(0, len(data), 29)
            for cut in cuts:
                seen = data[:cut]
                reply = await world.resume(stream_id, last_whole(seen))
                assert whole_frames(seen) + await reply.read() == data
            await world.streams.write()
        assert (await world.resume(stream_id, last_whole(data))).status == 204


@pytest.mark.parametrize("path", PATHS)
async def test_stream_is_its_callers_alone_under_every_base(path: str) -> None:
    async with world_of() as world:
        stream_id = (await world.ask()).headers[STREAM_ID]
        address = path.replace("{id}", stream_id)
        for method in ("GET", "DELETE"):
            assert (await world.client.request(method, address)).status == 401
            reply = await world.client.request(method, address, headers=bearer("bob"))
            unknown = await world.client.request(method, path.replace("{id}", "x"), headers=bearer("bob"))
            assert (reply.status, unknown.status) == (404, 404)
            assert (await reply.text()).replace(stream_id, "x") == await unknown.text()
        assert (await world.client.head(address, headers=bearer("ann"))).status == 200
        reply = await world.client.delete(address, headers=bearer("ann"))
        assert await reply.json() == {"id": stream_id, "object": "stream", "deleted": True}
        assert (await world.client.get(address, headers=bearer("ann"))).status == 404


async def test_answer_goes_on_without_its_client_who_comes_back_and_follows() -> None:
    source = GatedSource()
    source.gate = asyncio.Event()
    async with world_of(source) as world:
        reply = await world.ask()
        stream_id = reply.headers[STREAM_ID]
        await reply.content.readany()
        reply.close()
        await asyncio.sleep(0.01)
        again = await world.resume(stream_id, 2)
        assert (await again.content.readuntil(b"\n\n")).startswith(b"id: 3\n")
        source.gate.set()
        assert b'"end"' in await again.read()
        assert (source.closed_streams, len(source.asked)) == (1, 1)


async def test_silent_stream_is_kept_alive_with_the_last_id() -> None:
    source = GatedSource()
    source.gate = asyncio.Event()
    async with world_of(source) as world:
        reply = await world.ask(MESSAGES)
        await asyncio.sleep(0.05)
        source.gate.set()
        frames = (await reply.read()).split(b"\n\n")
        pings = [place for place, frame in enumerate(frames) if frame.endswith(b'data: {"type":"ping"}')]
        # The first ping belongs to the begin of a message, and is recorded.
        late = [place for place in pings[1:] if place + 2 < len(frames)]
        assert late
        for place in late:
            assert frames[place].partition(b"\n")[0] == frames[place - 1].partition(b"\n")[0]


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
async def test_failure_before_the_stream_is_a_status_and_one_within_it_is_replayed(path: str) -> None:
    failure = GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot go on", code="odd")
    async with world_of() as world:
        world.source.script = lambda _: [failure]
        reply = await world.ask(path)
        assert (reply.status, STREAM_ID in reply.headers) == (502, False)
        world.source.script = lambda _: [chunk("one"), failure]
        reply = await world.ask(path)
        data = await reply.read()
        assert b"cannot go on" in data.rpartition(b"id: ")[2]
        assert await (await world.resume(reply.headers[STREAM_ID])).read() == data
        await asyncio.sleep(0)
        assert world.limiter.running == 0


async def test_slow_answer_begins_its_stream_with_the_name_and_fails_within_it() -> None:
    gate = asyncio.Event()

    class Slow(FakeSource):
        async def stream(self, *_: Any) -> AsyncIterator[CompletionChunk]:
            await gate.wait()
            raise GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot")
            yield chunk("")

    async with world_of(Slow(), head_seconds=0.01) as world:
        reply = await world.ask()
        assert reply.status == 200
        gate.set()
        data = await reply.read()
        assert data.startswith(b": keep-alive\n\n")
        assert b"upstream_failed" in data
        again = await (await world.resume(reply.headers[STREAM_ID])).read()
        assert again == data[data.index(b"id: 1\n") :]


async def test_client_that_leaves_before_it_knows_the_stream_ends_the_answer() -> None:
    closed = asyncio.Event()

    class Silent(FakeSource):
        async def stream(self, *_: Any) -> AsyncIterator[CompletionChunk]:
            try:
                await asyncio.Event().wait()
                yield chunk("")
            finally:
                closed.set()

    async with world_of(Silent()) as world:
        asking = asyncio.ensure_future(world.ask())
        await asyncio.sleep(0.05)
        asking.cancel()
        await asyncio.wait_for(closed.wait(), 1)


async def test_restart_is_said_in_the_callers_protocol_and_loses_only_what_was_not_stored() -> None:
    store = MemoryStreams()
    source = GatedSource()
    source.gate = asyncio.Event()
    ids = {}
    async with world_of(source, store=store) as world:
        for path in (CHAT, MESSAGES):
            reply = await world.ask(path)
            ids[path] = reply.headers[STREAM_ID]
            await reply.content.readany()
        await world.streams.write()
        # What kill -9 leaves.
        kept = {each.id: each for each in store.streams.values()}
        batches = {name: dict(each) for name, each in store.batches.items()}
    store.streams, store.batches = kept, batches
    async with world_of(store=store) as world:
        for path, stream_id in ids.items():
            data = await (await world.resume(stream_id)).read()
            frames = data.split(b"\n\n")
            error = orjson.loads(frames[-2].partition(b"data: ")[2])
            assert (error["error"]["code"], b"one " in data) == ("stream_interrupted", True)
            assert frames[-2].startswith(b"id: %d\n" % (len(frames) - 1))
            assert (b"event: error" in frames[-2]) == (path == MESSAGES)
            # The client had more than was stored.
            late = await (await world.resume(stream_id, 77)).read()
            assert late == frames[-2].replace(b"id: %d" % (len(frames) - 1), b"id: 78") + b"\n\n"


@pytest.mark.parametrize("value", ["-1", "x", "1.5", "9" * 20, "99", " 1 2"])
async def test_bad_last_event_id_is_refused_by_name(value: str) -> None:
    async with world_of() as world:
        reply = await world.ask()
        await reply.read()
        again = await world.resume(reply.headers[STREAM_ID], value)
        assert again.status == 400
        assert (await again.json())["error"]["param"] == "Last-Event-ID"


async def test_other_value_of_the_header_is_refused_and_a_whole_answer_warns() -> None:
    async with world_of() as world:
        reply = await world.ask(headers={"X-Gateway-Stream": "yes"})
        assert (reply.status, (await reply.json())["error"]["param"]) == (400, "X-Gateway-Stream")
        for path in (CHAT, MESSAGES):
            whole = await world.ask(path, stream=False)
            assert (whole.status, "not streamed" in whole.headers["X-Gateway-Warning"]) == (200, True)


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
@pytest.mark.parametrize("stream", [False, True])
async def test_same_key_gets_the_first_reply_and_another_body_none(path: str, stream: bool) -> None:
    async with world_of() as world:
        headers = {"Idempotency-Key": "k 1"}
        first, again, quoted = [
            await world.ask(path, headers={"Idempotency-Key": key}, stream=stream)
            for key in ("k 1", "k 1", '"k 1"')
        ]
        assert first.status == 200
        data = await first.read()
        for each in (again, quoted):
            assert (each.headers["Idempotent-Replayed"], await each.read()) == ("true", data)
        assert "Idempotent-Replayed" not in first.headers
        assert len(world.source.asked) == 1
        other = await world.ask(path, headers=headers, stream=stream, max_tokens=3)
        assert other.status == 422
        assert "Idempotency-Key" in await other.text()
        assert (await world.ask(path, headers=headers, stream=stream, user="bob")).status == 200
        assert len(world.source.asked) == 2


async def test_same_key_in_two_protocols_is_another_request() -> None:
    async with world_of() as world:
        headers = {"Idempotency-Key": "k"}
        assert (await world.ask(CHAT, headers=headers, stream=False)).status == 200
        reply = await world.ask(MESSAGES, headers=headers, stream=False)
        assert (reply.status, (await reply.json())["type"]) == (422, "error")


@pytest.mark.parametrize("stream", [False, True])
async def test_same_key_for_another_deployment_is_another_request(stream: bool) -> None:
    async with world_of() as world:
        headers = {"Idempotency-Key": "k"}
        path = "/openai/deployments/{}/chat/completions"
        first = await world.ask(path.format("m"), headers=headers, stream=stream)
        assert first.status == 200
        for path_of_other in (path.format("other"), CHAT):
            reply = await world.ask(path_of_other, headers=headers, stream=stream)
            assert (reply.status, (await reply.json())["error"]["code"]) == (422, "idempotency_key_reused")
        assert len(world.source.asked) == 1


async def test_repeated_request_follows_the_stream_of_the_first_one_whose_client_left() -> None:
    source = GatedSource()
    source.gate = asyncio.Event()
    async with world_of(source) as world:
        headers = {"Idempotency-Key": "stainless-python-retry-1"}
        first = await world.ask(headers=headers)
        await first.content.readany()
        first.close()
        again = await world.ask(headers=headers)
        assert again.headers[STREAM_ID] == first.headers[STREAM_ID]
        source.gate.set()
        assert len(ID.findall(await again.read())) == 5
        assert len(source.asked) == 1


async def test_failed_or_interrupted_request_is_done_again() -> None:
    store, replies = MemoryStreams(), MemoryReplies()
    headers = {"Idempotency-Key": "k"}
    async with world_of(store=store, replies=replies) as world:
        words = world.source.script
        world.source.script = lambda _: [GatewayError(ErrorKind.RATE_LIMITED, "cannot")]
        assert (await world.ask(headers=headers)).status == 429
        world.source.script = lambda _: [chunk("a"), GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot")]
        broken = await world.ask(headers=headers)
        await broken.read()
        world.source.script = words
        whole = await world.ask(headers=headers)
        assert whole.headers[STREAM_ID] != broken.headers[STREAM_ID]
        data = await whole.read()
        await world.streams.write()
    async with world_of(store=store, replies=replies) as world:
        again = await world.ask(headers=headers)
        assert (await again.read(), world.source.asked) == (data, [])


@pytest.mark.parametrize("key", ["", " ", '""', "x" * 256, "\u00e9", "a\tb"])
async def test_malformed_key_is_refused_by_name(key: str) -> None:
    async with world_of() as world:
        reply = await world.ask(headers={"Idempotency-Key": key})
        assert (reply.status, (await reply.json())["error"]["param"]) == (400, "Idempotency-Key")
