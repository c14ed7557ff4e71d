"""What can befall the stream of a local runtime."""

from typing import Any

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
from tests.fakes.providers.upstream import CUT, SILENCE, Reply, ndjson, ollama_reply

HELLO = ndjson(ollama_reply("Hel", done=False), ollama_reply("lo é\U0001f600", done=False))
END = ndjson(ollama_reply(""))
WHOLE = HELLO + END


def _well(name: str, *steps: bytes, content_type: str = "application/x-ndjson", **outcome: Any) -> Accident:
    """Return a playbook whose accident no caller notices."""
    told = {"text": TEXT, "usage": (3, 2), "finish_reason": "stop", **outcome}
    return Accident(f"ollama: {name}", "ollama", Reply(steps=steps, content_type=content_type), **told)


def _tools(name: str, *replies: dict[str, Any], calls: Any = CALLS) -> Accident:
    steps = [ndjson(reply) for reply in replies]
    return _well(name, *steps, text="", tool_calls=tuple(calls), finish_reason="tool_calls")


def called(*calls: tuple[str, Any], done: bool = False) -> dict[str, Any]:
    """Return a reply with whole tool calls."""
    made = [{"function": {"name": name, "arguments": arguments}} for name, arguments in calls]
    return ollama_reply("", done=done, tool_calls=made)


FAULTS = {
    "a cut in the stream": ([CUT], ""),
    "a cut in a line": ([WHOLE[:40], CUT], ""),
    "a stall": ([SILENCE], "silent"),
    "an early end": ([], "before it was complete"),
    "an early end in a line": ([WHOLE[:40]], "before it was complete"),
    "garbage in the stream": ([b"garbage\n", WHOLE], "not JSON"),
    "a list in the stream": ([b"[1]\n", WHOLE], "not a JSON object"),
    "invalid UTF-8": ([b'{"message": {"content": "\xff"}}\n', WHOLE], "not JSON"),
    "a huge line in the stream": ([b'{"a": "', *HUGE, b'"}\n'], "bytes"),
    "HTML in the stream": ([HTML], "not JSON"),
    "an error line": ([ndjson({"error": "it broke"}), WHOLE], "it broke"),
}

OLLAMA = [
    _well("in one read", WHOLE),
    _well("byte by byte", *drip(WHOLE)),
    _well("CRLF", WHOLE.replace(b"\n", b"\r\n")),
    _well("blank lines", b"\n\n" + HELLO, b"\n \n", END),
    _well("no end of the last line", HELLO, END[:-1]),
    _well("another content type", WHOLE, content_type="application/json"),
    _well("everything in one reply", ndjson(ollama_reply(TEXT))),
    _well("text in the last reply", ndjson(ollama_reply("Hel", done=False), ollama_reply("lo é\U0001f600"))),
    _well("empty replies", ndjson(ollama_reply("", done=False)), HELLO, ndjson({"model": "m"}), END),
    _well("execute objects", ndjson({**ollama_reply(TEXT, done=False), **EXECUTE}), END),
    _well("lines after the end", WHOLE, HELLO),
    _well(
        "the limit of tokens",
        HELLO,
        ndjson({**ollama_reply(""), "done_reason": "length"}),
        finish_reason="length",
    ),
    _well(
        "thoughts",
        ndjson(*(ollama_reply("", done=False, thinking=word) for word in ("hm", " so"))),
        WHOLE,
        thoughts="hm so",
    ),
    _tools("tool calls at once", called(*CALLS), ollama_reply("")),
    _tools("tool calls one by one", called(CALLS[0]), called(CALLS[1]), ollama_reply("")),
    _tools("tool calls in the last reply", called(*CALLS, done=True)),
    _tools("arguments as text", called(("f", '{"x":1}'), ("g", '{"y":"é"}')), ollama_reply("")),
    _tools("a tool call without arguments", called(("f", None)), ollama_reply(""), calls=[("f", {})]),
    _tools("empty tool calls", called(), called(*CALLS), called(done=True)),
    *refused("ollama"),
    *broken("ollama", HELLO, TEXT, FAULTS),
]
