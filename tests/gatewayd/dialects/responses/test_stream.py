"""Tests for gatewayd.dialects.responses.stream, and of its events replayed."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import pytest

from gatewayd.completions.records import Body
from gatewayd.dialects.responses.replay import ResponseReplay
from gatewayd.dialects.responses.request import parse_request
from gatewayd.dialects.responses.sealed import UserSeal
from gatewayd.dialects.responses.stream import ResponseStream
from gatewayd.encryption import TextCipher
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.providers.response_events import check, kinds, parse

SEAL = UserSeal(TextCipher(b"secret", b"test"), "u1")
RESPONSE_ID = f"resp_{1:032x}"

TOOLS = [
    {"type": "function", "name": "f", "parameters": {"type": "object"}},
    {"type": "custom", "name": "patch"},
    {
        "type": "namespace",
        "name": "files",
        "description": "d",
        "tools": [{"type": "function", "name": "read"}],
    },
]


def new_stream(**fields: Any) -> ResponseStream:
    asked = {"model": "m", "input": "hi", "tools": TOOLS, **fields}
    numbers = count(1)
    return ResponseStream(
        parse_request(asked), RESPONSE_ID, SEAL, lambda: f"new{next(numbers)}", lambda: 7, lambda: 11
    )


def chunk(finish: str | None = None, **delta: Any) -> Body:
    return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call(index: int | None, name: str = "", arguments: Any = "", **more: Any) -> Body:
    place = {} if index is None else {"index": index}
    function = {**({"name": name} if name else {}), "arguments": arguments}
    return {**place, **({"id": f"c{index}"} if name else {}), "function": function, **more}


def run(chunks: Sequence[Mapping[str, Any]], stream: ResponseStream | None = None) -> list[Body]:
    """Return the events of chunks, all given at once or one by one, which makes no difference."""
    one = stream or new_stream()
    raw = b"".join(one.feed([each]) for each in chunks) + one.finish() + one.last(is_stored=True)
    return parse(raw)


def output(*chunks: Body) -> list[Body]:
    return list(check(run(chunks))["output"])


def test_a_text_has_all_events_in_order() -> None:
    events = run([chunk(role="assistant", content=""), chunk(content="Hel"), chunk("stop", content="lo")])
    assert kinds(events) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    final = check(events)
    assert (final["status"], final["completed_at"], final["created_at"]) == ("completed", 7, 7)
    assert final["output"][0]["content"] == [
        {"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}
    ]
    assert final["usage"]["input_tokens"] == 11
    assert final["usage"]["output_tokens"] == 2


CASES: dict[str, list[Body]] = {
    "text": [chunk(content="a"), chunk("stop", content="b")],
    "reasoning, text": [
        chunk(reasoning_content="th"),
        chunk(reasoning_content="ink"),
        chunk("stop", content="a"),
    ],
    "signed": [
        chunk(reasoning_content="one"),
        chunk(thinking_blocks=[{"type": "thinking", "thinking": "one", "signature": "s1"}]),
        chunk(reasoning_content="two"),
        chunk(thinking_blocks=[{"type": "thinking", "thinking": "two", "signature": "s2"}]),
        chunk(thinking_blocks=[{"type": "redacted_thinking", "data": "d"}]),
        chunk("stop", content="a"),
    ],
    "two calls": [
        chunk(tool_calls=[call(0, "f", '{"a"')]),
        chunk(tool_calls=[call(0, "", ":1}")]),
        chunk("tool_calls", tool_calls=[call(1, "f", "{}")]),
    ],
    "interleaved calls": [
        chunk(tool_calls=[call(0, "f", '{"a"'), call(1, "f", '{"b"')]),
        chunk(tool_calls=[call(1, "", ":2}"), call(0, "", ":1}")]),
        chunk("tool_calls"),
    ],
    "arguments at once": [chunk("tool_calls", tool_calls=[call(0, "f", '{"a":1}')])],
    "no arguments": [chunk("tool_calls", tool_calls=[call(0, "f")])],
    "arguments as an object": [chunk("stop", tool_calls=[call(0, "f", {"a": 1})])],
    "custom and namespace": [
        chunk(tool_calls=[call(0, "patch", '{"input":"*** ä\\n"}')]),
        chunk("tool_calls", tool_calls=[call(1, "files__read", '{"path":"x"}')]),
    ],
    "text between calls": [
        chunk(tool_calls=[call(0, "f", '{"a":1}')]),
        chunk(content="and"),
        chunk("tool_calls", tool_calls=[call(1, "f", '{"b":1}')]),
    ],
    "refusal": [chunk(refusal="I can"), chunk("stop", refusal="not")],
    "annotation": [
        chunk(content="see"),
        chunk(annotations=[{"type": "url_citation", "url_citation": {"url": "https://x", "end_index": 3}}]),
        chunk("stop", content=" it"),
    ],
    "opaque members": [
        chunk(
            "tool_calls",
            tool_calls=[call(0, "f", "{}", extra_content={"google": {"thought_signature": "g"}})],
        )
    ],
    "details": [
        chunk(reasoning="a", reasoning_details=[{"type": "reasoning.text", "text": "a", "format": "x"}]),
        chunk("stop", content="b"),
    ],
}


@pytest.mark.parametrize("chunks", CASES.values(), ids=CASES.keys())
def test_events_agree_with_their_ends_and_the_final_response(chunks: list[Body]) -> None:
    check(run(chunks))


@pytest.mark.parametrize("chunks", CASES.values(), ids=CASES.keys())
def test_a_stored_response_replays_the_same_events(chunks: list[Body]) -> None:
    stream = new_stream(include=["reasoning.encrypted_content"])
    raw = b"".join(
        [stream.ping(), stream.feed(chunks[:1]), stream.ping(), stream.feed(chunks[1:]), stream.ping()]
    )
    events = parse(raw + stream.finish() + stream.last(is_stored=True))
    check(events)

    def replayed(after: int | None) -> list[Body]:
        replay = ResponseReplay(stream.response, stream.events.pieces, stream.events.pings)
        return parse(b"".join(replay.frames(after)))

    assert replayed(None) == events
    for after in range(-1, len(events)):
        assert replayed(after) == events[after + 1 :]


def test_grouping_makes_no_difference() -> None:
    for chunks in CASES.values():
        whole = new_stream()
        raw = whole.feed(chunks) + whole.finish() + whole.last(is_stored=True)
        assert kinds(parse(raw))[-1] == "completed"
        assert _without_ids(parse(raw)[-1]["response"]) == _without_ids(run(chunks)[-1]["response"])


def test_a_whole_answer_is_the_folded_stream() -> None:
    calls = [{"id": "c0", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}]
    message = {"role": "assistant", "reasoning_content": "th", "content": "hi", "tool_calls": calls}
    usage = {"prompt_tokens": 5, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}
    stream = new_stream()
    stream.feed_whole({"choices": [{"message": message, "finish_reason": "tool_calls"}], "usage": usage})
    stream.finish()
    streamed = run(
        [
            chunk(reasoning_content="t"),
            chunk(reasoning_content="h"),
            chunk(content="hi"),
            chunk(tool_calls=[call(0, "f", '{"a"')]),
            chunk("tool_calls", tool_calls=[call(0, "", ":1}")]),
            {"choices": [], "usage": usage},
        ]
    )[-1]["response"]
    assert stream.response["output"] == streamed["output"]
    assert stream.response["usage"] == streamed["usage"]
    assert streamed["usage"] == {
        "input_tokens": 5,
        "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0},
        "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 8,
    }


def test_calls_have_the_names_that_the_caller_knows() -> None:
    custom, read = output(*CASES["custom and namespace"])
    assert (custom["type"], custom["name"], custom["input"]) == ("custom_tool_call", "patch", "*** ä\n")
    assert (read["type"], read["name"], read["namespace"]) == ("function_call", "read", "files")
    assert read["arguments"] == '{"path":"x"}'
    assert [item["call_id"] for item in (custom, read)] == ["c0", "c1"]


def test_arguments_that_come_at_once_or_not_at_all_have_a_delta() -> None:
    for name, arguments in (("arguments at once", '{"a":1}'), ("no arguments", "{}")):
        events = run(CASES[name])
        assert [event["delta"] for event in events if event["type"].endswith("arguments.delta")] == [
            arguments
        ]


def test_repeated_and_missing_call_ids_become_unique() -> None:
    chunks = [
        chunk("tool_calls", tool_calls=[{**call(0, "f", '{"a":1}'), "id": ""}, call(1, "f", '{"b":1}')])
    ]
    ids = [item["call_id"] for item in output(*chunks)]
    assert ids[1] == "c1"
    assert ids[0].startswith("call_")


@pytest.mark.parametrize(
    ("finish", "status", "reason"),
    [
        ("stop", "completed", None),
        ("tool_calls", "completed", None),
        ("anything", "completed", None),
        ("length", "incomplete", "max_output_tokens"),
        ("content_filter", "incomplete", "content_filter"),
    ],
)
def test_finish_reasons(finish: str, status: str, reason: str | None) -> None:
    events = run([chunk(content="a"), chunk(finish)])
    final = check(events)
    assert events[-1]["type"] == f"response.{status}"
    assert (final["status"], final["output"][0]["status"]) == (status, status)
    assert (final["incomplete_details"] or {}).get("reason") == reason


def test_a_cut_call_is_incomplete() -> None:
    final = check(run([chunk(content="a"), chunk("length", tool_calls=[call(0, "f", '{"a"')])]))
    assert [item["status"] for item in final["output"]] == ["completed", "incomplete"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (GatewayError(ErrorKind.INVALID_REQUEST, "cannot x", provider_code="context_length_exceeded"), None),
        (
            GatewayError(ErrorKind.RATE_LIMITED, "cannot x", provider_code="credit_balance_exhausted"),
            "insufficient_quota",
        ),
        (GatewayError(ErrorKind.RATE_LIMITED, "cannot x", retry_after=3), "rate_limit_exceeded"),
        (GatewayError(ErrorKind.UPSTREAM_UNREACHABLE, "cannot x"), "server_is_overloaded"),
        (GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot x"), "server_error"),
        (GatewayError(ErrorKind.INVALID_REQUEST, "cannot x", provider_code="odd"), "invalid_prompt"),
    ],
)
def test_a_failure_is_the_last_event(error: GatewayError, code: str | None) -> None:
    stream = new_stream()
    raw = stream.feed([chunk(content="a")]) + stream.fail(error) + stream.last(is_stored=False)
    final = check(parse(raw))
    assert (final["status"], final["error"]["code"]) == ("failed", code or error.provider_code)
    assert "cannot x" in final["error"]["message"]
    assert ("try again in 3s" in final["error"]["message"]) == (error.retry_after == 3)
    assert (final["output"][0]["status"], final["store"]) == ("incomplete", False)
    assert stream.feed([chunk(content="b")]) == stream.ping() == stream.finish() == b""


def test_a_failure_leaves_out_the_unfinished_call_which_a_client_would_run() -> None:
    stream = new_stream()
    raw = stream.feed([chunk(content="a"), chunk(tool_calls=[call(0, "f", '{"a"')])])
    events = parse(
        raw + stream.fail(GatewayError(ErrorKind.TIMEOUT, "cannot x")) + stream.last(is_stored=False)
    )
    assert [item["type"] for item in check(events)["output"]] == ["message"]


def test_an_answer_without_a_choice_is_a_failure() -> None:
    with pytest.raises(GatewayError, match="no choice"):
        new_stream().finish()


def test_keep_alives_repeat_the_state_with_the_next_number() -> None:
    stream = new_stream()
    assert kinds(parse(stream.ping())) == ["created", "in_progress"]
    assert kinds(parse(stream.ping())) == ["in_progress"]
    raw = stream.feed([chunk("stop", content="a")])
    assert kinds(parse(raw))[0] == "output_item.added"
    events = parse(stream.ping())
    assert events[0]["sequence_number"] == 6
    assert events[0]["response"]["output"] == []
    assert stream.finish()
    assert stream.ping() == b""


def _sealed(chunks: Sequence[Body], **fields: Any) -> Iterator[tuple[Body, Body | None]]:
    stream = new_stream(**fields)
    stream.feed(chunks)
    stream.finish()
    for shown, kept in zip(stream.output, stream.kept_output, strict=True):
        if shown["type"] == "reasoning":
            yield shown, SEAL.open("reasoning", kept.get("encrypted_content", ""))


def test_reasoning_is_sealed_with_its_signatures() -> None:
    found = list(_sealed(CASES["signed"], include=["reasoning.encrypted_content"]))
    assert [content for _, content in found] == [
        {"text": "one", "signature": "s1"},
        {"text": "two", "signature": "s2"},
        {"data": "d"},
    ]
    assert [shown["summary"] for shown, _ in found][2] == []
    assert all(SEAL.open("reasoning", shown["encrypted_content"]) == content for shown, content in found)


def test_opaque_members_of_calls_and_details_are_sealed() -> None:
    ((_, content),) = _sealed(CASES["opaque members"])
    assert content == {"calls": {"c0": {"extra_content": {"google": {"thought_signature": "g"}}}}}
    ((_, content),) = _sealed(CASES["details"])
    assert content is not None
    assert content["details"] == [{"type": "reasoning.text", "text": "a", "format": "x"}]


def test_sealed_reasoning_names_its_origin() -> None:
    """It outlives the memory, and goes to no other maker."""
    stream = new_stream()
    stream.origin = "deepseek"
    run(CASES["reasoning, text"], stream)
    opened = SEAL.open("reasoning", stream.kept_output[0]["encrypted_content"])
    assert opened is not None
    assert opened["origin"] == "deepseek"


def test_encrypted_content_is_shown_only_if_asked_for() -> None:
    ((shown, content),) = _sealed(CASES["reasoning, text"])
    assert "encrypted_content" not in shown
    assert content == {"text": "think"}
    ((shown, content),) = _sealed(CASES["reasoning, text"], store=False)
    assert "encrypted_content" not in shown
    assert content is None


def test_log_probabilities_of_a_text() -> None:
    tokens = [{"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}]
    choice = {"index": 0, "delta": {"content": "a"}, "logprobs": {"content": tokens}, "finish_reason": "stop"}
    events = run([{"choices": [choice]}])
    assert check(events)["output"][0]["content"][0]["logprobs"] == tokens
    assert next(event["logprobs"] for event in events if event["type"].endswith("text.delta")) == tokens


def _without_ids(response: Body) -> Body:
    return {name: value for name, value in response.items() if name not in ("id",)}


def test_a_too_long_request_is_an_error_before_the_failure() -> None:
    error = GatewayError(ErrorKind.INVALID_REQUEST, "too much", provider_code="context_length_exceeded")
    stream = new_stream()
    events = parse(stream.fail(error) + stream.last(is_stored=False))
    assert [event["type"] for event in events[-2:]] == ["error", "response.failed"]
    told = events[-2]["error"]
    assert (told["code"], told["param"]) == ("context_length_exceeded", "input")
    assert "exceeds the context window" in told["message"]
    assert events[-1]["response"]["error"]["code"] == "context_length_exceeded"
