"""What can befall the stream of a provider that speaks the messages protocol."""

from collections.abc import Mapping
from typing import Any

import orjson

from tests.fakes.providers.stream_failure import (
    CALLS,
    EXECUTE,
    HTML,
    HUGE,
    TEXT,
    Accident,
    broken,
    drip,
    refused,
)
from tests.fakes.providers.upstream import (
    CUT,
    SILENCE,
    Reply,
    anthropic_events,
    anthropic_message,
    json_reply,
)

Event = dict[str, Any]


def start(**usage: int) -> Event:
    """Return the first event."""
    message = anthropic_message("", content=[], stop_reason=None, usage={"input_tokens": 3, **usage})
    return {"type": "message_start", "message": message}


def block(index: int, content: Mapping[str, Any], *deltas: Mapping[str, Any]) -> list[Event]:
    """Return the events of one content block."""
    return [
        {"type": "content_block_start", "index": index, "content_block": content},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def said(*words: str, index: int = 0) -> list[Event]:
    """Return a block of text."""
    return block(
        index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": word} for word in words)
    )


def thought(*words: str) -> list[Event]:
    """Return a block of thoughts."""
    deltas = [{"type": "thinking_delta", "thinking": word} for word in words]
    signature = {"type": "signature_delta", "signature": "sig"}
    return block(0, {"type": "thinking", "thinking": "", "signature": ""}, *deltas, signature)


def called(index: int, name: str, *parts: str, **given: Any) -> list[Event]:
    """Return a block with a tool call whose input comes in parts, or is `given` at once."""
    content = {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": given}
    return block(index, content, *({"type": "input_json_delta", "partial_json": part} for part in parts))


def end(reason: str | None = "end_turn", **usage: int) -> list[Event]:
    """Return the events that end a message."""
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 2, **usage}},
        {"type": "message_stop"},
    ]


HELLO = said("Hel", "lo é\U0001f600")
EVENTS = [start(), {"type": "ping"}, *HELLO, *end()]
WHOLE = anthropic_events(*EVENTS)
BEGUN = anthropic_events(start(), *HELLO[:-1])


def _well(name: str, *steps: bytes, reason: str = "stop", **outcome: Any) -> Accident:
    """Return a playbook whose accident no caller notices."""
    told = {"text": TEXT, "usage": (3, 2), **outcome}
    return Accident(f"anthropic: {name}", "anthropic", Reply(steps=steps), finish_reason=reason, **told)


def _tools(name: str, *events: Event) -> Accident:
    steps = [anthropic_events(event) for event in (start(), *events, *end("tool_use"))]
    return _well(name, *steps, text="", tool_calls=CALLS, reason="tool_calls")


FAULTS = {
    "a cut in the stream": ([CUT], ""),
    "a cut in an event": ([WHOLE[:40], CUT], ""),
    "a stall": ([SILENCE], "silent"),
    "an early end": ([], "before it was complete"),
    "an early end in an event": ([WHOLE[:40]], "before it was complete"),
    "garbage in the stream": ([b"data: garbage\n\n", WHOLE], "not JSON"),
    "invalid UTF-8": ([b'data: {"type": "ping", "x": "\xff"}\n\n', WHOLE], "not JSON"),
    "a huge line in the stream": ([b"data: ", *HUGE, b"\n\n"], "bytes"),
    "HTML in the stream": ([HTML], "before it was complete"),
    "an error event": (
        [anthropic_events({"type": "error", "error": {"type": "overloaded_error", "message": "it broke"}})],
        "it broke",
    ),
}

ANTHROPIC = [
    _well("in one read", WHOLE),
    _well("byte by byte", *drip(WHOLE)),
    _well("CRLF", WHOLE.replace(b"\n", b"\r\n")),
    _well("CR byte by byte", *drip(WHOLE.replace(b"\n", b"\r"))),
    _well("no event lines", b"".join(b"data: " + orjson.dumps(event) + b"\n\n" for event in EVENTS)),
    _well("comments", b": hi\n\n" + BEGUN, b":\n\n", anthropic_events(HELLO[-1], *end())),
    _well("execute objects", anthropic_events(*({**event, **EXECUTE} for event in EVENTS))),
    _well("no message_stop", anthropic_events(*EVENTS[:-1])),
    _well("a [DONE] of another protocol", anthropic_events(*EVENTS[:-1]) + b"data: [DONE]\n\n"),
    _well("no end of a block", BEGUN, anthropic_events(*end())),
    _well("unknown events", BEGUN, anthropic_events({"type": "new_kind", "index": 0}, HELLO[-1], *end())),
    _well(
        "an empty block before the text",
        anthropic_events(start(), *said(), *said("Hel", "lo é\U0001f600", index=1), *end()),
    ),
    _well("data after message_stop", WHOLE + anthropic_events(*said("late"))),
    _well("the limit of tokens", BEGUN + anthropic_events(HELLO[-1], *end("max_tokens")), reason="length"),
    _well("all usage at the end", anthropic_events(start(input_tokens=0), *HELLO, *end(input_tokens=3))),
    _well(
        "thoughts",
        anthropic_events(start(), *thought("hm", " so"), *said("Hel", "lo é\U0001f600", index=1), *end()),
        thoughts="hm so",
    ),
    _tools("tool calls in pieces", *called(0, "f", "", '{"x"', ":1}"), *called(1, "g", '{"y":', '"é"}')),
    _tools("arguments at the start", *called(0, "f", x=1), *called(1, "g", y="é")),
    _tools("arguments only at the end", *called(0, "f", "", "", '{"x":1}'), *called(1, "g", '{"y":"é"}')),
    Accident(
        "anthropic: a tool call without arguments",
        "anthropic",
        Reply(steps=[anthropic_events(start(), *called(0, "f"), *end("tool_use"))]),
        tool_calls=(("f", {}),),
        finish_reason="tool_calls",
        usage=(3, 2),
    ),
    Accident(
        "anthropic: a whole answer",
        "anthropic",
        json_reply(anthropic_message(TEXT)),
        text=TEXT,
        finish_reason="stop",
        usage=(3, 2),
    ),
    *refused("anthropic"),
    *broken("anthropic", BEGUN, TEXT, FAULTS),
]
