"""Tests for gatewayd.http.public.responses.native: what sources with the protocol answer themselves."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from openai import AsyncOpenAI, NotFoundError

from gatewayd.http.responses.streams import KEEP_ALIVE_FRAME, AnswerStreams
from tests.fakes.http.public_app import bearer
from tests.fakes.providers.upstream import SILENCE, Reply, json_reply, sse
from tests.gatewayd.http.public.responses.door import PATH, Door, opened


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with opened() as made:
        yield made


@pytest.fixture
async def sdk(door: Door) -> AsyncIterator[AsyncOpenAI]:
    async with door.sdk() as made:
        yield made


def response(status: str = "completed", response_id: str = "resp_theirs") -> dict[str, Any]:
    part = {"type": "output_text", "text": "hi", "annotations": []}
    message = {"id": "msg_x", "type": "message", "role": "assistant", "status": status, "content": [part]}
    return {
        "id": response_id,
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": status,
        "output": [message],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def event(kind: str, **fields: Any) -> bytes:
    return b"event: " + kind.encode() + b"\n" + sse({"type": kind, **fields})


async def test_a_request_and_its_answer_pass_as_they_are(door: Door) -> None:
    raw = b' {"any" : "thing"}'
    door.fake.script(Reply(steps=[raw], content_type="application/json"))
    body = {"model": "acme.m", "input": "a", "odd": [None, 1.5]}
    reply = await door.client.post(PATH, json=body, headers=bearer("admin"))
    assert (reply.status, await reply.read()) == (200, raw)
    (request,) = door.fake.requests
    assert (request.path, request.json) == ("/v1/responses", {**body, "model": "m"})


@pytest.mark.parametrize("streamed", [False, True])
async def test_the_provider_that_stores_a_response_is_asked_about_it(
    door: Door, sdk: AsyncOpenAI, streamed: bool
) -> None:
    if streamed:
        steps = [
            event("response.created", sequence_number=0, response=response("in_progress")),
            event("response.completed", sequence_number=1, response=response()),
        ]
        door.fake.script(Reply(steps=steps))
        async for _ in await sdk.responses.create(model="acme.m", input="a", stream=True):
            pass
    else:
        door.fake.script(json_reply(response()))
        await sdk.responses.create(model="acme.m", input="a", background=True)
    door.fake.script(json_reply(response()), json_reply(response()), json_reply({"data": []}), json_reply({}))
    assert (
        await sdk.responses.retrieve("resp_theirs", include=["file_search_call.results"])
    ).output_text == "hi"
    await sdk.responses.cancel("resp_theirs")
    await sdk.responses.input_items.list("resp_theirs")
    await sdk.responses.delete("resp_theirs")
    about = [(request.method, request.path) for request in door.fake.requests[1:]]
    assert about == [
        ("GET", "/v1/responses/resp_theirs"),
        ("POST", "/v1/responses/resp_theirs/cancel"),
        ("GET", "/v1/responses/resp_theirs/input_items"),
        ("DELETE", "/v1/responses/resp_theirs"),
    ]
    assert "file_search_call.results" in door.fake.requests[1].query.values()
    with pytest.raises(NotFoundError):
        await sdk.responses.retrieve("resp_theirs")


async def test_an_id_of_a_provider_belongs_to_who_received_it(door: Door) -> None:
    door.fake.script(json_reply(response()))
    await door.ask("acme.m")
    for method, tail in (("GET", ""), ("DELETE", ""), ("GET", "/input_items"), ("POST", "/cancel")):
        assert (await door.get(f"/resp_theirs{tail}", "user", method))[0] == 404
    assert len(door.fake.requests) == 1


async def test_the_end_in_the_background_is_counted_once(door: Door) -> None:
    ended = {**response(), "usage": {"input_tokens": 9, "output_tokens": 20, "total_tokens": 29}}
    door.fake.script(json_reply({**response("queued"), "usage": None, "output": []}))
    await door.ask("acme.m", background=True)
    door.fake.script(json_reply({**response("in_progress"), "usage": None}), *[json_reply(ended)] * 3)
    assert (await door.get("/resp_theirs"))[1]["status"] == "in_progress"
    assert (await door.get("/resp_theirs", "user"))[0] == 404
    assert not door.store.usage
    polls = await asyncio.gather(*(door.get("/resp_theirs") for _ in range(2)))
    assert [poll[1]["status"] for poll in polls] == ["completed"] * 2
    assert (await door.get("/resp_theirs"))[1]["usage"] == ended["usage"]
    [(key, sums)] = door.store.usage.items()
    # The request was estimated as one token, "hi".
    assert (key.model, key.provider, key.endpoint) == ("acme.m", "acme", "responses")
    assert (sums.requests, sums.prompt, sums.completion, sums.estimated) == (0, 9 - 1, 20, -1)


async def test_a_response_that_is_not_stored_leaves_no_trace(door: Door) -> None:
    door.fake.script(json_reply(response()))
    await door.ask("acme.m", store=False)
    assert not door.store.kept


async def test_a_conversation_that_moves_to_such_a_source_is_written_out(door: Door) -> None:
    included = ["reasoning.encrypted_content"]
    thought = {"type": "thinking", "thinking": "hm", "signature": "sig"}
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    door.fake.script(
        json_reply({"content": [thought, call], "stop_reason": "tool_use"}), json_reply(response())
    )
    first = await door.ask("claude.m", include=included)
    output = {"type": "function_call_output", "call_id": "toolu_1", "output": "42"}
    reference = {"type": "item_reference", "id": "msg_x_of_theirs"}
    status, refusal = await door.post(
        {"model": "acme.m", "previous_response_id": first["id"], "input": [output, reference]}
    )
    # The reference to an item of the provider stays, and this user has never received it.
    assert (status, refusal["error"]["param"]) == (404, "input")
    await door.ask("acme.m", previous_response_id=first["id"], input=[output])
    sent = door.fake.requests[-1].json
    assert "previous_response_id" not in sent
    assert [item["type"] for item in sent["input"]] == ["message", "function_call", "function_call_output"]
    assert not any("id" in item for item in sent["input"])


async def test_reasoning_of_ours_never_reaches_a_provider(door: Door) -> None:
    sealed = await door.post({"model": "pipe", "input": "hi"}, f"{PATH}/compact")
    summary = sealed[1]["output"][-1]
    door.fake.script(json_reply(response()))
    await door.ask("acme.m", input=[summary, {"role": "user", "content": "go"}])
    sent = door.fake.requests[-1].json["input"]
    assert sent[0] == {"role": "user", "content": "Summary of the conversation so far:\n\nhello"}


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": [{"type": "custom", "name": "patch"}]},
        {"input": [{"type": "additional_tools", "tools": []}, {"role": "user", "content": "a"}]},
        {"tools": [{"type": "namespace", "name": "n", "tools": []}]},
        {"tool_ids": []},
    ],
)
async def test_what_a_source_may_not_know_is_converted(door: Door, fields: dict[str, Any]) -> None:
    await door.ask("acme.m", **fields)
    assert [request.path for request in door.fake.requests] == ["/v1/chat/completions"]


@pytest.mark.parametrize(
    "missing",
    [
        json_reply({"detail": "Not Found"}, 404),
        Reply(steps=[b"<html>hi</html>"], content_type="text/html"),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_source_without_the_endpoint_gets_a_chat_request(
    door: Door, missing: Reply, streamed: bool
) -> None:
    door.fake.script(missing)
    await (door.stream("acme.m") if streamed else door.ask("acme.m"))
    assert door.fake.requests[-1].path == "/v1/chat/completions"


@pytest.mark.parametrize("is_missing", [False, True])
async def test_a_late_failure_of_a_begun_stream_is_in_band(is_missing: bool) -> None:
    async with opened(streams=AnswerStreams(seconds=0.02, head_seconds=0.02)) as door:
        late = Reply(404 if is_missing else 500, {}, [b"{}"], SILENCE, "application/json")
        door.fake.script(late, json_reply({"error": {"message": "odd"}}, 400))
        body = {"model": "acme.m", "input": "hi", "stream": True}
        reply = await asyncio.wait_for(door.client.post(PATH, json=body, headers=bearer("admin")), 5)
        door.fake.release.set()
        frames = (await reply.read()).replace(KEEP_ALIVE_FRAME, b"")
        kind = b"response.failed" if is_missing else b"error"
        assert frames.split(b"event: ")[-1].startswith(kind + b"\n")


async def test_a_model_without_the_endpoint_says_nothing_about_its_source(door: Door) -> None:
    refusal = json_reply({"error": {"message": "not here", "code": "model_not_found"}}, 404)
    door.fake.script(refusal)
    await door.ask("acme.m")
    door.fake.script(json_reply(response()))
    assert (await door.ask("acme.m"))["id"] == "resp_theirs"


async def test_counts_and_compactions_of_such_a_source(door: Door, sdk: AsyncOpenAI) -> None:
    door.fake.script(json_reply({"object": "response.input_tokens", "input_tokens": 77}))
    assert (await sdk.responses.input_tokens.count(model="acme.m", input="hi")).input_tokens == 77
    assert door.fake.requests[-1].path == "/v1/responses/input_tokens"
    assert (await sdk.responses.compact(model="acme.m", input="hi")).output[-1].type == "compaction"
    assert [request.path for request in door.fake.requests[1:]] == [
        "/v1/responses/compact",
        "/v1/chat/completions",
    ]
