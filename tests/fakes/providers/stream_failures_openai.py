"""What can befall the stream of a provider that speaks the OpenAI protocol."""

from typing import Any

import orjson

from tests.fakes.providers.stream_failure import (
    CALLS,
    EXECUTE,
    HTML,
    HUGE,
    TEXT,
    USAGE,
    Accident,
    broken,
    drip,
    refused,
)
from tests.fakes.providers.upstream import (
    CUT,
    SILENCE,
    Reply,
    json_reply,
    openai_chunk,
    openai_completion,
    sse,
)


def call(name: str | None = None, arguments: Any = None, **fields: Any) -> dict[str, Any]:
    """Return one piece of a tool call."""
    function = {"name": name, "arguments": arguments}
    return {**fields, "function": {key: value for key, value in function.items() if value is not None}}


def said(*words: str) -> bytes:
    """Return a chunk for each word."""
    return sse(*(openai_chunk(content=word) for word in words))


def called(*pieces: dict[str, Any]) -> bytes:
    """Return a chunk with pieces of tool calls."""
    return sse(openai_chunk(tool_calls=list(pieces)))


DONE = sse(b"[DONE]")
HELLO = said("Hel", "lo é\U0001f600")
STOP = sse(openai_chunk(finish_reason="stop"))
TOOLS_STOP = sse(openai_chunk(finish_reason="tool_calls"))
WHOLE = HELLO + STOP + DONE


def _well(
    name: str, *steps: bytes, reason: str | None = "stop", text: str = TEXT, **outcome: Any
) -> Accident:
    """Return a playbook whose accident no caller notices."""
    return Accident(
        f"openai: {name}", "openai", Reply(steps=steps), text=text, finish_reason=reason, **outcome
    )


def _tools(name: str, *steps: bytes, calls: Any = CALLS, stop: bytes = TOOLS_STOP) -> Accident:
    reply = Reply(steps=[*steps, stop, DONE])
    return Accident(f"openai: {name}", "openai", reply, tool_calls=tuple(calls), finish_reason="tool_calls")


OPENAI = [
    _well("in one read", WHOLE),
    _well("byte by byte", *drip(WHOLE)),
    _well("cut everywhere", *drip(WHOLE, 7)),
    _well("CRLF", WHOLE.replace(b"\n", b"\r\n")),
    _well("CRLF byte by byte", *drip(WHOLE.replace(b"\n", b"\r\n"))),
    _well("CR", WHOLE.replace(b"\n", b"\r")),
    _well("a byte order mark", b"\xef\xbb\xbf" + WHOLE),
    _well("no space after data:", WHOLE.replace(b"data: ", b"data:")),
    _well("an event in two data lines", WHOLE.replace(b'"choices"', b'\ndata: "choices"')),
    _well("comments", b": hi\n\n" + HELLO, b":\n\n: PROCESSING\n\n", STOP + b": bye\n" + DONE),
    _well("heartbeats without data", b"data:\n\n", HELLO, b"data: \n\ndata\n\n", STOP + DONE),
    _well("fields of its own", b"event: execute\nid: 7\nretry: 1\n" + HELLO, b"event: x\n\n", STOP + DONE),
    _well(
        "execute objects",
        sse({**openai_chunk(content="Hel"), **EXECUTE}, EXECUTE, openai_chunk(content="lo é\U0001f600")),
        b'data: {"\\u0065vent": {"type": "execute", "data": "canary()"}}\n\n' + STOP + DONE + sse(EXECUTE),
    ),
    _well("no [DONE]", HELLO, STOP),
    _well("no [DONE] and no blank line", HELLO + STOP[:-2]),
    _well("[DONE] cut short", HELLO + STOP, b"data: [DO"),
    _well("[DONE] without a blank line", HELLO + STOP, b"data: [DONE]\n"),
    _well("data after [DONE]", WHOLE, said("late")),
    _well("no finish reason", HELLO, DONE, reason=None),
    _well(
        "a finish reason in the last chunk with text",
        said("Hel"),
        sse(openai_chunk(finish_reason="length", content="lo é\U0001f600")) + DONE,
        reason="length",
    ),
    _well(
        "empty deltas",
        sse(openai_chunk(role="assistant", content=""), openai_chunk()),
        HELLO,
        sse(openai_chunk(content=None), openai_chunk(content="")),
        STOP + DONE,
    ),
    _well(
        "empty tool calls",
        sse(openai_chunk(content="Hel", tool_calls=[])),
        sse(openai_chunk(content="lo é\U0001f600", tool_calls=None)),
        STOP + DONE,
    ),
    _well(
        "no choices",
        sse({**openai_chunk(), "choices": []}),
        HELLO,
        sse({**openai_chunk(), "choices": None}),
        STOP + DONE,
    ),
    _well(
        "usage without choices",
        HELLO + STOP,
        sse({**openai_chunk(), "choices": [], "usage": USAGE}) + DONE,
        usage=(3, 2),
    ),
    _well(
        "usage without the field choices", HELLO + STOP, sse({"id": "x", "usage": USAGE}) + DONE, usage=(3, 2)
    ),
    _well(
        "usage with the last chunk",
        HELLO,
        sse({**openai_chunk(finish_reason="stop"), "usage": USAGE}) + DONE,
        usage=(3, 2),
    ),
    _well("null errors", sse({**openai_chunk(content=TEXT), "error": None}), STOP + DONE),
    *(
        _well(
            f"reasoning in {name}",
            sse(openai_chunk(**{name: "hm"}), openai_chunk(**{name: " so"})),
            WHOLE,
            thoughts="hm so",
        )
        for name in ("reasoning_content", "reasoning", "thinking")
    ),
    _well(
        "reasoning in details",
        sse(openai_chunk(reasoning_details=[{"type": "reasoning.text", "text": "hm"}])),
        WHOLE,
        thoughts="hm",
    ),
    _well("reasoning twice", sse(openai_chunk(reasoning="hm", reasoning_content="hm")), WHOLE, thoughts="hm"),
    _tools(
        "tool calls in pieces",
        called(call("f", "", index=0, id="a", type="function")),
        called(call(None, '{"x"', index=0)),
        called(call(None, ":", index=0), call(None, "1}", index=0)),
        called(call("g", "", index=1, id="b")) + called(call(None, '{"y":"é"}', index=1)),
    ),
    _tools(
        "tool calls interleaved",
        called(call("f", "", index=0, id="a"), call("g", "", index=1, id="b")),
        called(call(None, '{"y":', index=1), call(None, '{"x":', index=0)),
        called(call(None, "1}", index=0)),
        called(call(None, '"é"}', index=1)),
    ),
    _tools(
        "arguments only at the end",
        called(call("f", "", index=0, id="a"), call("g", index=1, id="b")),
        called(call(None, "", index=0)),
        called(call(None, '{"x":1}', index=0), call(None, '{"y":"é"}', index=1)),
    ),
    _tools(
        "one index for all tool calls",
        called(call("f", '{"x":1}', index=0, id="a")),
        called(call("g", '{"y":"é"}', index=0, id="b")),
    ),
    _tools(
        "tool calls without an index",
        called(call("f", '{"x":1}', id="a")),
        called(call("g", '{"y":"é"}', id="b")),
    ),
    _tools(
        "tool calls without an id", called(call("f", '{"x":1}', index=0), call("g", '{"y":"é"}', index=1))
    ),
    _tools(
        "arguments as an object", called(call("f", {"x": 1}, index=0, id="a"), call("g", {"y": "é"}, index=1))
    ),
    _tools("a tool call without arguments", called(call("f", "", index=0, id="a")), calls=[("f", {})]),
    _tools(
        "a tool's name in pieces",
        called(call("get_", index=0, id="a"))
        + called(call("it", "", index=0))
        + called(call(None, "{}", index=0)),
        calls=[("get_it", {})],
    ),
    Accident(
        "openai: a whole answer",
        "openai",
        json_reply(openai_completion(TEXT)),
        text=TEXT,
        finish_reason="stop",
        usage=(3, 2),
    ),
    _well(
        "a character cut in two",
        HELLO,
        b'data: {"choices": [{"delta": {"content": "\\ud83d"}}]}\n\n',
        STOP + DONE,
        text=TEXT + "\ufffd",
    ),
    *refused("openai"),
    Accident(
        "openai: an answer without a choice",
        "openai",
        json_reply({"choices": []}),
        error="choice",
        is_begun=False,
    ),
    *broken(
        "openai",
        HELLO,
        TEXT,
        {
            "a cut in the stream": ([CUT], ""),
            "a cut in a chunk": ([said("late")[:40], CUT], ""),
            "a stall": ([SILENCE], "silent"),
            "an early end": ([], "before it was complete"),
            "an early end in a chunk": ([said("late")[:40]], "before it was complete"),
            "garbage in the stream": ([b"data: garbage\n\n", WHOLE], "not JSON"),
            "a list in the stream": ([sse([1]), WHOLE], "not a JSON object"),
            "invalid UTF-8": (
                [b'data: {"choices": [{"delta": {"content": "\xff"}}]}\n\n', WHOLE],
                "not JSON",
            ),
            "a NUL byte": ([b'data: {"choices": [{"delta": {"content": "\x00"}}]}\n\n', WHOLE], "not JSON"),
            "a huge line in the stream": ([b"data: ", *HUGE, b"\n\n", WHOLE], "bytes"),
            "HTML in the stream": ([HTML], "before it was complete"),
            "JSON too deep": ([b"data: " + b'{"a":' * 300 + b"1" + b"}" * 300 + b"\n\n"], "deep"),
            "an error object": ([sse({"error": {"message": "it broke"}}), WHOLE], "it broke"),
            "an error text": ([sse({"error": "it broke"}), DONE], "it broke"),
            "an error with choices": (
                [sse({**openai_chunk(finish_reason="error"), "error": {"message": "it broke"}})],
                "it broke",
            ),
            "an error of another shape": (
                [sse({"object": "error", "message": "it broke"}), DONE],
                "it broke",
            ),
            "an error outside of any event": (
                [orjson.dumps({"error": {"message": "it broke"}}) + b"\n"],
                "it broke",
            ),
        },
    ),
]
