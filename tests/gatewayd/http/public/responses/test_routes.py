"""Tests for gatewayd.http.public.responses.routes: converted answers, from client to provider."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from openai import APIError, AsyncOpenAI, BadRequestError, NotFoundError
from pydantic import BaseModel

from gatewayd.accounts.records import Actor
from gatewayd.catalog.records import Model
from gatewayd.completions.records import Completion, CompletionChunk
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.responses.streams import AnswerStreams
from gatewayd.http.routes import BASES
from gatewayd.pipeline.pipeline import NoFilterChain
from gatewayd.pipeline.records import ChatRequest
from gatewayd.pipeline.responses.archive import ArchiveBounds
from tests.fakes.http.public_app import bearer
from tests.fakes.providers.response_events import check, kinds, parse
from tests.fakes.providers.upstream import (
    CUT,
    SILENCE,
    Reply,
    anthropic_events,
    json_reply,
    openai_chunk,
    openai_completion,
    sse,
)
from tests.gatewayd.http.public.responses.door import MODELS, PATH, Door, opened

TOOLS: Any = [
    {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False},
    {"type": "custom", "name": "patch"},
]
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "sig"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with opened() as made:
        yield made


@pytest.fixture
async def sdk(door: Door) -> AsyncIterator[AsyncOpenAI]:
    async with door.sdk() as made:
        yield made


class Answer(BaseModel):
    word: str


@pytest.mark.parametrize("tail", ["", "/input_tokens", "/compact"])
async def test_answers_under_every_alias_to_those_who_may(door: Door, tail: str) -> None:
    asked = {"model": "pipe", "input": "hi"}
    for path in (f"{base}/responses{tail}" for base in BASES):
        assert (await door.client.post(path, json=asked)).status == 401
        assert (await door.post(asked, path, "pending"))[0] == 403
        assert (await door.post(asked, path, "user"))[0] == 404
        assert (await door.post(asked, path))[0] == 200


@pytest.mark.parametrize("model", MODELS)
async def test_the_official_client_creates_reads_and_deletes(
    door: Door, sdk: AsyncOpenAI, model: str
) -> None:
    answer = await sdk.responses.create(model=model, input="hi", metadata={"a": "b"})
    assert answer.output_text == ("hello" if model == "pipe" else "Hello from m")
    assert (answer.status, answer.model, answer.metadata) == ("completed", model, {"a": "b"})
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens > 0
    again = await sdk.responses.retrieve(answer.id)
    assert again.output == answer.output
    items = await sdk.responses.input_items.list(answer.id)
    assert [item.type for item in items.data] == ["message"]
    await sdk.responses.delete(answer.id)
    with pytest.raises(NotFoundError):
        await sdk.responses.retrieve(answer.id)


@pytest.mark.parametrize("model", MODELS[:3])
async def test_the_official_client_streams(door: Door, sdk: AsyncOpenAI, model: str) -> None:
    async with sdk.responses.stream(model=model, input="hi") as stream:
        said = [event.delta async for event in stream if event.type == "response.output_text.delta"]
        final = await stream.get_final_response()
    assert "".join(said) == final.output_text == "Hello from m"
    assert (await sdk.responses.retrieve(final.id)).output_text == "Hello from m"
    replayed = await sdk.responses.retrieve(final.id, stream=True, starting_after=3)
    numbers = [event.sequence_number async for event in replayed]
    assert numbers == list(range(4, numbers[-1] + 1))


async def test_a_call_has_another_id_than_those_before(door: Door) -> None:
    call = {"index": 0, "id": "functions.look:0", "function": {"name": "look", "arguments": "{}"}}
    door.pipe.script = lambda _: [CompletionChunk(events=[openai_chunk(tool_calls=[call])])]
    made = {"type": "function_call", "call_id": "functions.look:0", "name": "look", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "functions.look:0", "output": "r"}
    first, second = [
        check(await door.stream("pipe", input=given))["output"][0]["call_id"]
        for given in ("hi", [made, result, {"role": "user", "content": "again"}])
    ]
    assert first == "functions.look:0"
    assert second.startswith("call_")


async def test_a_function_streams_text_calls_and_a_late_failure(door: Door) -> None:
    call = {"index": 0, "id": "c", "function": {"name": "patch", "arguments": '{"input":"x"}'}}
    pieces = [openai_chunk(content="hi"), openai_chunk(tool_calls=[call])]
    over = openai_chunk(finish_reason="tool_calls")
    door.pipe.script = lambda _: [CompletionChunk(events=[piece]) for piece in (*pieces, over)]
    final = check(await door.stream("pipe", tools=TOOLS))
    assert [item["type"] for item in final["output"]] == ["message", "custom_tool_call"]
    failure = GatewayError(ErrorKind.PLUGIN_FAILED, "cannot run function 'pipe'")
    door.pipe.script = lambda _: [*(CompletionChunk(events=[piece]) for piece in pieces[:1]), failure]
    failed = check(await door.stream("pipe"))
    assert (failed["status"], failed["error"]["code"]) == ("failed", "server_error")


@pytest.mark.parametrize("model", MODELS[:3])
async def test_a_whole_answer_is_the_folded_stream(door: Door, model: str) -> None:
    whole = await door.ask(model)
    streamed = check(await door.stream(model))
    for one in (whole, streamed):
        one["output"][0]["id"] = ""
    assert whole["output"] == streamed["output"]
    assert whole.keys() == streamed.keys()


async def test_an_answer_of_a_schema_is_parsed(door: Door, sdk: AsyncOpenAI) -> None:
    door.fake.script(json_reply({}, 404), json_reply(openai_completion('{"word":"x"}')))
    answer = await sdk.responses.parse(model="acme.m", input="hi", text_format=Answer)
    assert answer.output_parsed == Answer(word="x")
    sent = door.fake.requests[-1].json["response_format"]
    assert (sent["type"], sent["json_schema"]["strict"]) == ("json_schema", True)


async def test_a_source_without_the_endpoint_is_asked_for_it_once(door: Door) -> None:
    for _ in range(2):
        await door.ask("acme.m")
    paths = [request.path for request in door.fake.requests]
    assert paths == ["/v1/responses", "/v1/chat/completions", "/v1/chat/completions"]


async def test_two_turns_with_tools_by_id(door: Door, sdk: AsyncOpenAI) -> None:
    first_answer = {"content": [THOUGHT, CALL], "stop_reason": "tool_use"}
    door.fake.script(json_reply(first_answer))
    first = await sdk.responses.create(model="claude.m", input="hi", tools=TOOLS, instructions="be brief")
    reasoning, call = first.output
    assert (reasoning.type, call.type) == ("reasoning", "function_call")
    assert reasoning.encrypted_content is None
    output: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": "42"}]
    second = await sdk.responses.create(
        model="claude.m", input=output, tools=TOOLS, previous_response_id=first.id
    )
    assert second.previous_response_id == first.id
    sent = door.fake.requests[-1].json
    assert "system" not in sent
    assert [turn["role"] for turn in sent["messages"]] == ["user", "assistant", "user"]
    assert sent["messages"][1]["content"] == [THOUGHT, CALL]
    assert sent["messages"][2]["content"][0]["tool_use_id"] == "toolu_1"


async def test_a_continued_response_keeps_the_tools_of_its_items_only(door: Door, sdk: AsyncOpenAI) -> None:
    given: Any = [
        {"type": "additional_tools", "role": "developer", "tools": TOOLS[:1]},
        {"role": "user", "content": "a"},
    ]
    first = await sdk.responses.create(model="claude.m", input=given, tools=TOOLS[1:])
    second = await sdk.responses.create(model="claude.m", input="b", previous_response_id=first.id)
    await sdk.responses.create(model="claude.m", input="c", previous_response_id=second.id)
    offered = [[tool["name"] for tool in sent.json["tools"]] for sent in door.fake.requests]
    assert offered == [["patch", "f"], ["f"], ["f"]]


@pytest.mark.parametrize("streamed", [False, True])
async def test_two_turns_with_encrypted_reasoning(door: Door, sdk: AsyncOpenAI, streamed: bool) -> None:
    if streamed:
        door.fake.script(Reply(steps=[thinking_stream()]))
        async with sdk.responses.stream(
            model="claude.m", input="hi", store=False, include=["reasoning.encrypted_content"]
        ) as stream:
            first = await stream.get_final_response()
    else:
        door.fake.script(json_reply({"content": [THOUGHT, {"type": "text", "text": "a"}]}))
        first = await sdk.responses.create(
            model="claude.m", input="hi", store=False, include=["reasoning.encrypted_content"]
        )
    assert not door.store.kept
    history: Any = [{"role": "user", "content": "hi"}, *[item.to_dict() for item in first.output]]
    await sdk.responses.create(
        model="claude.m", input=[*history, {"role": "user", "content": "more"}], store=False
    )
    assert door.fake.requests[-1].json["messages"][1]["content"] == [THOUGHT, {"type": "text", "text": "a"}]


async def test_sealed_reasoning_goes_back_to_its_maker_alone(door: Door) -> None:
    door.fake.script(json_reply({"content": [THOUGHT, {"type": "text", "text": "a"}]}))
    first = await door.ask("claude.m", store=False, include=["reasoning.encrypted_content"])
    history = [*first["output"], {"role": "user", "content": "more"}]
    async with opened() as later:
        # Another gateway with the same secret, which remembers nothing of the first answer.
        for model in ("claude.m", "acme.m"):
            await later.ask(model, input=history)
        native, chat = later.fake.requests[0].json, later.fake.requests[-1].json
        assert native["messages"][0]["content"][0] == THOUGHT
        assert chat["messages"][0] == {"role": "assistant", "content": "a"}


def thinking_stream() -> bytes:
    message = {"id": "msg_1", "model": "m", "content": [], "usage": {"input_tokens": 1, "output_tokens": 1}}
    return anthropic_events(
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "sig"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "a"}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    )


async def test_items_by_reference(door: Door) -> None:
    first = await door.ask("pipe")
    reference = {"type": "item_reference", "id": first["output"][0]["id"]}
    await door.ask("pipe", input=[reference, {"role": "user", "content": "more"}])
    assert door.pipe.asked[-1]["messages"] == [
        {"role": "assistant", "content": "hello"},
        {"role": "user", "content": "more"},
    ]
    for bad, key in ((reference, "user"), ({**reference, "id": "msg_other"}, "admin")):
        asked = {"model": "acme.m" if key == "user" else "pipe", "input": [bad]}
        status, refusal = await door.post(asked, key=key)
        assert status == 404, refusal


@pytest.mark.parametrize("model", ["pipe", "acme.m"])
async def test_an_item_is_named_once(door: Door, model: str) -> None:
    """A small request would become one of any size."""
    first = await door.ask("pipe")
    reference = {"type": "item_reference", "id": first["output"][0]["id"]}
    status, refusal = await door.post({"model": model, "input": [reference, {"id": reference["id"]}]})
    assert (status, refusal["error"]["param"]) == (400, "input[1]")
    assert len(door.pipe.asked) == 1


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_conversation_that_is_not_there(door: Door, streamed: bool) -> None:
    first = await door.ask("pipe")
    await door.get(f"/{first['id']}", method="DELETE")
    second = await door.ask("pipe")
    door.store.kept[second["id"]] = _of_another_user(door, second["id"])
    third = await door.ask("pipe")
    door.clock[0] += 7 * 86_400
    for response_id in (first["id"], second["id"], third["id"], "resp_unknown", "x" * 5000, ""):
        asked = {"model": "pipe", "input": "hi", "previous_response_id": response_id, "stream": streamed}
        status, refusal = await door.post(asked)
        assert status == 400, response_id
        assert refusal["error"]["code"] == "previous_response_not_found"
        assert refusal["error"]["param"] == "previous_response_id"


def _of_another_user(door: Door, response_id: str) -> Any:
    stored = door.store.kept[response_id]
    return type(stored)(**{name: getattr(stored, name) for name in stored.__slots__} | {"user_id": "u"})


async def test_a_conversation_lives_as_long_as_it_is_used(door: Door) -> None:
    first = await door.ask("pipe", instructions="only once")
    for _ in range(3):
        door.clock[0] += 5 * 86_400
        first = await door.ask("pipe", previous_response_id=first["id"], input="next")
    assert [message["role"] for message in door.pipe.asked[-1]["messages"]] == ["user", "assistant"] * 3 + [
        "user"
    ]


async def test_nothing_is_stored_if_the_request_or_the_setting_says_so(door: Door) -> None:
    assert (await door.ask("pipe", store=False))["store"] is False
    assert check(await door.stream("claude.m", store=False))["store"] is False
    assert not door.store.kept
    async with opened(bounds=ArchiveBounds(0)) as keeping_nothing:
        answer = await keeping_nothing.ask("pipe", store=True)
        assert answer["store"] is False
        assert (await keeping_nothing.get(f"/{answer['id']}"))[0] == 404


async def test_a_database_that_fails_costs_no_answer(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    door.store.outage = GatewayError(ErrorKind.UNAVAILABLE, "cannot store the response: locked")
    assert (await door.ask("pipe"))["store"] is False
    assert check(await door.stream("claude.m"))["store"] is False
    assert "response not stored" in caplog.text


async def test_a_broken_stream_ends_with_a_failed_response(door: Door, sdk: AsyncOpenAI) -> None:
    door.fake.script(json_reply({}, 404), Reply(steps=[sse(openai_chunk(content="par")), SILENCE, CUT]))
    asking = asyncio.create_task(door.stream("acme.m"))
    await door.fake.silent.wait()
    door.fake.release.set()
    final = check(await asking)
    assert (final["status"], final["error"]["code"]) == ("failed", "server_error")
    assert final["output"][0]["content"][0]["text"] == "par"
    assert not door.store.kept


async def test_an_early_failure_is_a_status(door: Door, sdk: AsyncOpenAI) -> None:
    door.fake.script(json_reply({"error": {"message": "odd"}}, 400))
    with pytest.raises(BadRequestError, match="odd"):
        await sdk.responses.create(model="claude.m", input="hi", stream=True)


async def test_a_too_long_request_fails_where_clients_shorten_it(door: Door, sdk: AsyncOpenAI) -> None:
    refusal = json_reply({"error": {"message": "prompt is too long"}}, 400)
    door.fake.script(refusal)
    with pytest.raises(BadRequestError) as caught:
        await sdk.responses.create(model="claude.m", input="hi")
    assert caught.value.code == "context_length_exceeded"
    door.fake.script(refusal)
    events = await door.stream("claude.m")
    assert kinds(events) == ["created", "in_progress", "error", "failed"]
    assert events[-1]["response"]["error"]["code"] == "context_length_exceeded"


async def test_keep_alives_are_numbered_events() -> None:
    async with opened(streams=AnswerStreams(seconds=0.02, head_seconds=0.02)) as door:
        door.fake.script(Reply(before=SILENCE, steps=[*thinking_steps()]))
        body = {"model": "claude.m", "input": "hi", "stream": True}
        reply = await asyncio.wait_for(door.client.post(PATH, json=body, headers=bearer("admin")), 5)
        begun = b""
        while b'"sequence_number":3' not in begun:
            begun += await asyncio.wait_for(reply.content.readany(), 5)
        door.fake.release.set()
        events = parse(begun + await reply.read())
        check(events)
        assert kinds(events)[:4] == ["created", "in_progress", "in_progress", "in_progress"]
        stored = next(iter(door.store.kept))
        reply = await door.client.get(f"{PATH}/{stored}?stream=true", headers=bearer("admin"))
        assert parse(await reply.read()) == events


def thinking_steps() -> list[bytes]:
    return [thinking_stream()]


async def test_a_late_failure_of_a_begun_stream_is_in_band() -> None:
    async with opened(streams=AnswerStreams(seconds=0.02, head_seconds=0.02)) as door:
        refusal = orjson.dumps({"error": {"message": "slow down"}})
        door.fake.script(Reply(429, {"Retry-After": "3"}, [refusal], SILENCE, "application/json"))
        body = {"model": "claude.m", "input": "hi", "stream": True}
        reply = await asyncio.wait_for(door.client.post(PATH, json=body, headers=bearer("admin")), 5)
        door.fake.release.set()
        final = check(parse(await reply.read()))
        assert final["error"]["code"] == "rate_limit_exceeded"
        assert "try again in 3s" in final["error"]["message"]


async def test_a_websocket_is_refused_at_once(door: Door) -> None:
    headers = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        **bearer("admin"),
    }
    for base in BASES:
        reply = await door.client.get(f"{base}/responses", headers={**headers, "Sec-WebSocket-Key": "x" * 24})
        assert reply.status == 426
        assert (await reply.json())["error"]["code"] == "websocket_unsupported"
    reply = await door.client.get(PATH, headers=bearer("admin"))
    assert (reply.status, reply.headers["Upgrade"]) == (426, "HTTP/1.1")


async def test_a_compaction_keeps_the_users_messages_and_is_read_back(door: Door, sdk: AsyncOpenAI) -> None:
    history: Any = [
        {"role": "user", "content": "do x"},
        {"role": "assistant", "content": "did x"},
        {"role": "user", "content": "and y"},
    ]
    made = await sdk.responses.compact(model="pipe", input=history)
    assert [item.type for item in made.output] == ["message", "message", "compaction"]
    asked = door.pipe.asked[-1]["messages"]
    assert (len(asked), asked[-1]["role"]) == (4, "user")
    items: Any = [item.to_dict(warnings=False) for item in made.output]
    await sdk.responses.create(model="pipe", input=[*items, {"role": "user", "content": "go on"}])
    assert [message["content"] for message in door.pipe.asked[-1]["messages"]] == [
        "do x",
        "and y",
        "Summary of the conversation so far:\n\nhello",
        "go on",
    ]


async def test_tokens_are_estimated(door: Door, sdk: AsyncOpenAI) -> None:
    few = await sdk.responses.input_tokens.count(model="pipe", input="hi")
    more = await sdk.responses.input_tokens.count(model="pipe", input="hi " * 400, tools=TOOLS)
    assert 0 < few.input_tokens < more.input_tokens
    filled = {"variables": {"{{X}}": "hi " * 400}}
    long = await sdk.responses.input_tokens.count(
        model="pipe", input="hi", instructions="{{X}}", extra_body=filled
    )
    assert long.input_tokens > 300
    picture = [{"type": "input_image", "image_url": f"data:image/png;base64,{'A' * 400_000}"}]
    seen: Any = [{"role": "user", "content": picture}]
    assert (await sdk.responses.input_tokens.count(model="pipe", input=seen)).input_tokens < 5000


async def test_a_client_that_leaves_ends_the_work_of_the_source(door: Door) -> None:
    door.fake.script(json_reply({}, 404), Reply(steps=[sse(openai_chunk(content="par")), SILENCE]))
    body = {"model": "acme.m", "input": "hi", "stream": True}
    reply = await door.client.post(PATH, json=body, headers=bearer("admin"))
    assert b"response.created" in await reply.content.readany()
    reply.close()
    await asyncio.wait_for(door.fake.closed.wait(), 5)
    assert not door.store.kept


class Marking:
    """A filter that changes questions, chunks and whole answers."""

    async def inlet(self, request: ChatRequest, model: Model, actor: Actor) -> None:
        request.body["messages"].append({"role": "user", "content": request.endpoint.value})

    async def stream(self, chunk: CompletionChunk) -> CompletionChunk:
        for event in chunk.events:
            for choice in event.get("choices") or ():
                if choice["delta"].get("content"):
                    choice["delta"]["content"] = choice["delta"]["content"].upper()
        return chunk

    async def outlet(self, completion: Completion, actor: Actor) -> None:
        completion.body["choices"][0]["message"]["content"] = "OUTLET"


class OneFilter:
    """Chooses the filter for every request."""

    async def choose(self, request: ChatRequest, model: Model, actor: Actor) -> NoFilterChain:
        item = Marking()
        return NoFilterChain((item,), (item,), (item,))

    async def are_on(self, model_id: str) -> bool:
        return True


async def test_filters_change_converted_requests_and_answers() -> None:
    async with opened(OneFilter()) as door:
        final = check(await door.stream("claude.m"))
        assert final["output"][0]["content"][0]["text"] == "HELLO FROM M"
        assert door.fake.requests[-1].json["messages"][-1]["content"][-1]["text"] == "responses"
        assert (await door.ask("pipe"))["output"][0]["content"][0]["text"] == "OUTLET"


async def test_what_was_left_out_is_told(door: Door) -> None:
    body = {"model": "pipe", "input": "hi", "tools": [{"type": "web_search"}]}
    reply = await door.client.post(PATH, json=body, headers=bearer("admin"))
    assert "web_search" in reply.headers["X-Gateway-Warning"]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": [{"role": "user", "content": "x"}] * 400 + [7]}, "input[400]"),
        ({"background": True}, "background"),
        ({"tools": [{"type": "custom", "name": "n" * 90_000, "format": 7}]}, "tools[0].format"),
        (
            {"input": [{"type": "function_call", "call_id": "1", "name": "f", "arguments": 7}]},
            "input[0].arguments",
        ),
    ],
)
async def test_a_bad_body_is_refused_by_its_field(door: Door, fields: dict[str, Any], param: str) -> None:
    status, refusal = await door.post({"model": "claude.m", "input": "hi", **fields})
    assert (status, refusal["error"]["param"]) == (400, param)
    assert not door.fake.requests


async def test_the_official_client_is_told_of_a_broken_stream(door: Door, sdk: AsyncOpenAI) -> None:
    created = {"type": "response.created", "sequence_number": 4, "response": {"id": "r"}}
    door.fake.script(Reply(steps=[b"event: response.created\n" + sse(created), SILENCE, CUT]))
    stream = await sdk.responses.create(model="acme.m", input="a", stream=True)
    assert (await anext(stream)).type == "response.created"
    door.fake.release.set()
    with pytest.raises(APIError, match="'acme'"):
        await anext(stream)
