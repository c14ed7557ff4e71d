"""One conversation in three dialects, and one answer from three kinds of providers."""

import base64
import json
from dataclasses import dataclass
from typing import Any

from tests.clients.outcome import Outcome
from tests.fakes.providers.upstream import (
    Reply,
    anthropic_events,
    anthropic_message,
    json_reply,
    ndjson,
    ollama_reply,
    openai_chunk,
    openai_completion,
    sse,
)

PNG = base64.b64encode(
    base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
).decode()
"""A picture of one pixel."""

SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
ANY_SCHEMA = {"type": "object", "properties": {"y": {"type": "string"}}}
TOOLS = (("f", "Does f.", SCHEMA), ("g", "Does g.", ANY_SCHEMA))

OPENAI_TOOLS = [
    {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}
    for name, description, schema in TOOLS
]
ANTHROPIC_TOOLS = [
    {"name": name, "description": description, "input_schema": schema} for name, description, schema in TOOLS
]

OPENAI: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
            ],
        },
        {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [
                {"id": "toolu_1", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}},
                {"id": "toolu_2", "type": "function", "function": {"name": "g", "arguments": '{"y":"é"}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "toolu_1", "content": "one"},
        {"role": "tool", "tool_call_id": "toolu_2", "content": "two"},
        {"role": "user", "content": "And now?"},
    ],
    "tools": OPENAI_TOOLS,
    "temperature": 0.5,
    "max_tokens": 64,
    "stop": ["END"],
}

ANTHROPIC: dict[str, Any] = {
    "system": "Be brief.",
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"x": 1}},
                {"type": "tool_use", "id": "toolu_2", "name": "g", "input": {"y": "é"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "one"},
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_2",
                    "content": [{"type": "text", "text": "two"}],
                },
                {"type": "text", "text": "And now?"},
            ],
        },
    ],
    "tools": ANTHROPIC_TOOLS,
    "temperature": 0.5,
    "max_tokens": 64,
    "stop_sequences": ["END"],
}

OLLAMA: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is this?", "images": [PNG]},
        {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [
                {"function": {"name": "f", "arguments": {"x": 1}}},
                {"function": {"name": "g", "arguments": {"y": "é"}}},
            ],
        },
        {"role": "tool", "tool_name": "f", "content": "one"},
        {"role": "tool", "tool_name": "g", "content": "two"},
        {"role": "user", "content": "And now?"},
    ],
    "tools": OPENAI_TOOLS,
    "options": {"temperature": 0.5, "num_predict": 64, "stop": ["END"]},
}

CONVERSATION = {"openai": OPENAI, "anthropic": ANTHROPIC, "ollama": OLLAMA}
"""What is asked, by dialect, without the model."""

_ANTHROPIC_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


@dataclass(frozen=True)
class Said:
    """What the model says, in `words` as a stream has them, for 3 tokens of prompt and 2 of completion."""

    words: tuple[str, ...] = ()
    thoughts: tuple[str, ...] = ()
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    reason: str = "stop"

    @property
    def outcome(self) -> Outcome:
        """What every client is to learn."""
        return Outcome("".join(self.words), "".join(self.thoughts), self.calls, self.reason, (3, 2))

    def reply(self, kind: str, *, stream: bool) -> Reply:
        """Return this as a provider of one kind sends it."""
        if stream:
            return Reply(steps=_STREAMS[kind](self))
        return json_reply(_WHOLES[kind](self))


SAYINGS = {
    "text": Said(("Hel", "lo é\U0001f600")),
    "cut at the limit": Said(("Hel", "lo"), reason="length"),
    "thoughts": Said(("Hello",), ("hm", " so")),
    "a tool call": Said(calls=(("f", {"x": 1}),), reason="tool_calls"),
    "text and parallel tool calls": Said(
        ("Let me", " look."), calls=(("f", {"x": 1}), ("g", {"y": "é"})), reason="tool_calls"
    ),
}


def _openai_calls(said: Said) -> list[dict[str, Any]]:
    return [
        {
            "index": index,
            "id": f"call_{index}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for index, (name, arguments) in enumerate(said.calls)
    ]


def _openai_whole(said: Said) -> dict[str, Any]:
    more: dict[str, Any] = {"reasoning_content": "".join(said.thoughts)} if said.thoughts else {}
    if said.calls:
        more["tool_calls"] = _openai_calls(said)
    completion = openai_completion("".join(said.words), **more)
    completion["choices"][0]["finish_reason"] = said.reason
    return completion


def _openai_stream(said: Said) -> list[bytes]:
    chunks = [openai_chunk(role="assistant", content="")]
    chunks += [openai_chunk(reasoning_content=word) for word in said.thoughts]
    chunks += [openai_chunk(content=word) for word in said.words]
    for call in _openai_calls(said):
        text = call["function"]["arguments"]
        begun = {**call, "function": {"name": call["function"]["name"], "arguments": ""}}
        pieces = [{"index": call["index"], "function": {"arguments": part}} for part in (text[:4], text[4:])]
        chunks += [openai_chunk(tool_calls=[piece]) for piece in (begun, *pieces)]
    chunks.append(openai_chunk(finish_reason=said.reason))
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    chunks.append({**openai_chunk(), "choices": [], "usage": usage})
    return [*map(sse, chunks), sse(b"[DONE]")]


def _anthropic_blocks(said: Said) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if said.thoughts:
        blocks.append({"type": "thinking", "thinking": "".join(said.thoughts), "signature": "sig"})
    if said.words:
        blocks.append({"type": "text", "text": "".join(said.words)})
    for index, (name, arguments) in enumerate(said.calls):
        blocks.append({"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": arguments})
    return blocks


def _anthropic_whole(said: Said) -> dict[str, Any]:
    reason = _ANTHROPIC_REASONS[said.reason]
    return anthropic_message("", content=_anthropic_blocks(said), stop_reason=reason)


def _anthropic_stream(said: Said) -> list[bytes]:
    usage = {"input_tokens": 3, "output_tokens": 1}
    begun = anthropic_message("", content=[], stop_reason=None, usage=usage)
    events: list[dict[str, Any]] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    for index, block in enumerate(_anthropic_blocks(said)):
        start, deltas = _begin(block, said)
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": _ANTHROPIC_REASONS[said.reason], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 2}})
    events.append({"type": "message_stop"})
    return [anthropic_events(event) for event in events]


def _begin(block: dict[str, Any], said: Said) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": word} for word in said.thoughts]
        signature = {"type": "signature_delta", "signature": "sig"}
        return {"type": "thinking", "thinking": "", "signature": ""}, [*deltas, signature]
    if block["type"] == "text":
        return {"type": "text", "text": ""}, [{"type": "text_delta", "text": word} for word in said.words]
    text = json.dumps(block["input"])
    deltas = [{"type": "input_json_delta", "partial_json": part} for part in ("", text[:4], text[4:])]
    return {**block, "input": {}}, deltas


def _ollama_message(said: Said) -> dict[str, Any]:
    calls = [{"function": {"name": name, "arguments": arguments}} for name, arguments in said.calls]
    return {"tool_calls": calls} if calls else {}


def _ollama_end(said: Said) -> str:
    return "length" if said.reason == "length" else "stop"


def _ollama_whole(said: Said) -> dict[str, Any]:
    more = _ollama_message(said)
    if said.thoughts:
        more["thinking"] = "".join(said.thoughts)
    return {**ollama_reply("".join(said.words), **more), "done_reason": _ollama_end(said)}


def _ollama_stream(said: Said) -> list[bytes]:
    lines = [ollama_reply("", done=False, thinking=word) for word in said.thoughts]
    lines += [ollama_reply(word, done=False) for word in said.words]
    if said.calls:
        lines.append(ollama_reply("", done=False, **_ollama_message(said)))
    lines.append({**ollama_reply(""), "done_reason": _ollama_end(said)})
    return [ndjson(line) for line in lines]


_WHOLES = {"openai": _openai_whole, "anthropic": _anthropic_whole, "ollama": _ollama_whole}
_STREAMS = {"openai": _openai_stream, "anthropic": _anthropic_stream, "ollama": _ollama_stream}
