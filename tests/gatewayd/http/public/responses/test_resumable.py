"""Tests for resumable streams of the Responses protocol, converted and forwarded."""

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gatewayd.completions.records import CompletionChunk
from gatewayd.dialects.responses.sealed import SEAL_USE
from gatewayd.encryption import TextCipher
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.responses.resumable import ResumableAnswers
from gatewayd.http.responses.streams import AnswerStreams
from gatewayd.resumption.service import ResumableStreams
from gatewayd.tasks import TaskRegistry
from tests.fakes.http.public_app import bearer
from tests.fakes.providers.response_events import check, parse
from tests.fakes.providers.upstream import Reply, json_reply, sse
from tests.fakes.storage.streams import CountingLimiter, MemoryStreams
from tests.gatewayd.http.public.responses.door import PATH, Door, opened

ID = re.compile(rb"(?m)^id: \d+\n")
RESUMABLE = {"X-Gateway-Stream": "resumable"}
EVENTS = b"".join(
    b"event: %b\n%b" % (kind.encode(), sse({"type": kind, "sequence_number": number}))
    for number, kind in enumerate(("response.created", "response.completed"))
)


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    tasks = TaskRegistry()
    streams = ResumableStreams(MemoryStreams(), tasks, CountingLimiter())
    async with opened(resumable=ResumableAnswers(streams, AnswerStreams())) as made:
        yield made
    await tasks.close()


async def ask(door: Door, model: str, **fields: Any) -> tuple[str, bytes]:
    body = {"model": model, "input": "hi", "stream": True, **fields}
    reply = await door.client.post(PATH, json=body, headers={**bearer("admin"), **RESUMABLE})
    assert reply.status == 200, await reply.text()
    return reply.headers["X-Gateway-Stream-Id"], await reply.read()


async def resume(door: Door, stream_id: str, after: int) -> bytes:
    headers = {**bearer("admin"), "Last-Event-ID": str(after)}
    reply = await door.client.get(f"/v1/streams/{stream_id}", headers=headers)
    return await reply.read()


async def test_converted_response_joins_after_each_event_and_is_stored(door: Door) -> None:
    door.pipe.script = lambda _: [
        CompletionChunk(events=[{"choices": [{"index": 0, "delta": {"content": word}}]}]) for word in "abc"
    ]
    stream_id, data = await ask(door, "pipe")
    final = check(parse(ID.sub(b"", data)))
    frames = data.split(b"\n\n")[:-1]
    for after in range(len(frames)):
        assert data.endswith(b"\n\n".join(frames[after:]) + b"\n\n")
        assert await resume(door, stream_id, after) == b"\n\n".join(frames[after:]) + b"\n\n"
    assert (await door.get(f"/{final['id']}"))[1]["output"] == final["output"]


async def test_reasoning_of_a_converted_response_names_its_origin(door: Door) -> None:
    door.pipe.script = lambda _: [
        CompletionChunk(events=[{"choices": [{"index": 0, "delta": delta}]}])
        for delta in ({"reasoning_content": "hm"}, {"content": "a"})
    ]
    include = ["reasoning.encrypted_content"]
    plain = (await door.stream("pipe", include=include))[-1]["response"]
    _, data = await ask(door, "pipe", include=include)
    origins = []
    for response in (plain, check(parse(ID.sub(b"", data)))):
        [item] = [each for each in response["output"] if each["type"] == "reasoning"]
        sealed = TextCipher(b"secret", SEAL_USE).decrypt(item["encrypted_content"])
        origins.append(json.loads(sealed)["content"].get("origin"))
    assert origins[0]
    assert origins[0] == origins[1]


async def test_failure_of_a_converted_response_is_its_last_event_again(door: Door) -> None:
    word = CompletionChunk(events=[{"choices": [{"index": 0, "delta": {"content": "a"}}]}])
    door.pipe.script = lambda _: [word, GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot go on")]
    stream_id, data = await ask(door, "pipe")
    assert parse(ID.sub(b"", data))[-1]["type"] == "response.failed"
    assert await resume(door, stream_id, 0) == data


async def test_forwarded_response_keeps_its_events(door: Door) -> None:
    door.fake.script(Reply(steps=[EVENTS[:70], EVENTS[70:]]))
    stream_id, data = await ask(door, "acme.m")
    assert ID.sub(b"", data) == EVENTS
    assert await resume(door, stream_id, 1) == data[data.index(b"id: 2\n") :]


async def test_broken_forwarded_response_ends_with_a_numbered_error(door: Door) -> None:
    created = EVENTS.partition(b"event: response.completed")[0]
    door.fake.script(Reply(steps=[created, sse({"error": {"message": "no"}})]))
    stream_id, data = await ask(door, "acme.m")
    assert parse(ID.sub(b"", data))[-1]["type"] == "error"
    assert await resume(door, stream_id, 0) == data


async def keyed(door: Door, key: str, user: str = "admin", **body: Any) -> tuple[int, Any, str | None]:
    """Return status, answer and mark of a request with an idempotency key."""
    headers = {**bearer(user), "Idempotency-Key": key}
    reply = await door.client.post(PATH, json={"input": "hi", **body}, headers=headers)
    return reply.status, await reply.json(), reply.headers.get("Idempotent-Replayed")


@pytest.mark.parametrize("model", ["pipe", "acme.m"])
async def test_a_response_with_a_key_is_made_once(door: Door, model: str) -> None:
    native = {"id": "resp_theirs", "object": "response", "status": "completed", "output": []}
    door.fake.script(json_reply(native))
    first = await keyed(door, "k", model=model)
    again = await keyed(door, "k", model=model)
    assert (first[0], first[2], again[2]) == (200, None, "true")
    assert first[1] == again[1]
    assert len(door.fake.requests) == (model == "acme.m")
    status, refusal, _ = await keyed(door, "k", model=model, input="other")
    assert (status, refusal["error"]["code"]) == (422, "idempotency_key_reused")
    assert (await keyed(door, "k", "user", model="pipe"))[0] == 404
    assert (await keyed(door, '"half', model=model))[0] == 400


async def test_a_streamed_response_with_a_key_is_the_same_stream(door: Door) -> None:
    door.pipe.script = lambda _: [
        CompletionChunk(events=[{"choices": [{"index": 0, "delta": {"content": "a"}}]}])
    ]
    body = {"model": "pipe", "input": "hi", "stream": True}
    headers = {**bearer("admin"), "Idempotency-Key": "k"}
    first, again = [await door.client.post(PATH, json=body, headers=headers) for _ in range(2)]
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert await first.read() == await again.read()
    assert len(door.store.kept) == 1


async def test_an_unstreamed_response_says_that_it_cannot_be_resumed(door: Door) -> None:
    reply = await door.client.post(
        PATH, json={"model": "pipe", "input": "hi"}, headers={**bearer("admin"), **RESUMABLE}
    )
    assert "X-Gateway-Stream is ignored" in reply.headers["X-Gateway-Warning"]
