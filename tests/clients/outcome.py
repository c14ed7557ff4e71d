"""What a caller learned from an answer, said in one way for all dialects."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

Json = Mapping[str, Any]

ANTHROPIC_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


@dataclass(frozen=True)
class Failure:
    """What a client raised: the class by its name, the HTTP status if it knows one, and the words."""

    name: str
    message: str
    status: int | None = None


@dataclass(frozen=True)
class Outcome:
    """`calls` are names with decoded arguments, `reason` is the finish reason in the words of OpenAI.

    `usage` is the numbers of prompt and completion tokens. With `failure`, the rest is what came before it.
    """

    text: str = ""
    thoughts: str = ""
    calls: tuple[tuple[str, Any], ...] = ()
    reason: str | None = None
    usage: tuple[int, int] | None = None
    failure: Failure | None = None

    def failed(self, failure: Failure | None) -> "Outcome":
        """Return this with a failure at its end."""
        return replace(self, failure=failure)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was said at all."""
        return not (self.text or self.thoughts or self.calls)


def openai_whole(completion: Json) -> Outcome:
    """Read a chat completion."""
    (choice,) = completion["choices"]
    message = choice["message"]
    calls = (call["function"] for call in message.get("tool_calls") or ())
    return Outcome(
        text=message.get("content") or "",
        thoughts=_thought(message),
        calls=tuple((call["name"], _decoded(call["arguments"])) for call in calls),
        reason=choice["finish_reason"],
        usage=_openai_usage(completion.get("usage")),
    )


def openai_chunks(chunks: Iterable[Json]) -> Outcome:
    """Read chunks as a careful program does: tool calls by their index, the usage whenever it comes."""
    told = Outcome()
    pieces: dict[int, list[str]] = {}
    for chunk in chunks:
        told = replace(told, usage=_openai_usage(chunk.get("usage")) or told.usage)
        for choice in chunk["choices"]:
            delta = choice["delta"]
            for call in delta.get("tool_calls") or ():
                function = call.get("function") or {}
                made = pieces.setdefault(call["index"], ["", ""])
                made[0] += function.get("name") or ""
                made[1] += function.get("arguments") or ""
            told = replace(
                told,
                text=told.text + (delta.get("content") or ""),
                thoughts=told.thoughts + _thought(delta),
                reason=choice.get("finish_reason") or told.reason,
            )
    calls = tuple((name, _decoded(arguments)) for _, (name, arguments) in sorted(pieces.items()))
    return replace(told, calls=calls)


def anthropic_whole(message: Json) -> Outcome:
    """Read a message."""
    blocks = message["content"]
    return Outcome(
        text="".join(block["text"] for block in blocks if block["type"] == "text"),
        thoughts="".join(block["thinking"] for block in blocks if block["type"] == "thinking"),
        calls=tuple((block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"),
        reason=ANTHROPIC_REASONS.get(message["stop_reason"], message["stop_reason"]),
        usage=_anthropic_usage(message["usage"]),
    )


def anthropic_events(events: Iterable[Json]) -> Outcome:
    """Read events as they are sent, blocks by their index; the order must be the protocol's."""
    message: dict[str, Any] = {}
    inputs: dict[int, str] = {}
    for event in events:
        match event["type"]:
            case "message_start":
                assert not message
                message = {**event["message"], "content": []}
            case "content_block_start":
                assert event["index"] == len(message["content"])
                message["content"].append(dict(event["content_block"]))
            case "content_block_delta":
                _add(message["content"][event["index"]], event["delta"], inputs, event["index"])
            case "message_delta":
                message["stop_reason"] = event["delta"]["stop_reason"]
                counts = {key: value for key, value in event["usage"].items() if value is not None}
                message["usage"] = {**message["usage"], **counts}
    if not message:
        return Outcome()
    for index, text in inputs.items():
        message["content"][index]["input"] = _decoded(text)
    return anthropic_whole(message)


def ollama_whole(reply: Json) -> Outcome:
    """Read a chat reply."""
    return ollama_parts([reply])


def ollama_parts(parts: Iterable[Json]) -> Outcome:
    """Read the lines of a chat stream; the runtimes say "stop" for tool calls too."""
    told = Outcome()
    for part in parts:
        message = part["message"]
        made = tuple((call["function"]["name"], call["function"]["arguments"]) for call in _calls(message))
        told = replace(
            told,
            text=told.text + (message.get("content") or ""),
            thoughts=told.thoughts + (message.get("thinking") or ""),
            calls=told.calls + made,
        )
        if part.get("done"):
            reason = part.get("done_reason")
            told = replace(
                told,
                reason="tool_calls" if told.calls and reason == "stop" else reason,
                usage=(part.get("prompt_eval_count") or 0, part.get("eval_count") or 0),
            )
    return told


def _add(block: dict[str, Any], delta: Json, inputs: dict[int, str], index: int) -> None:
    match delta["type"]:
        case "text_delta":
            block["text"] += delta["text"]
        case "thinking_delta":
            block["thinking"] += delta["thinking"]
        case "input_json_delta":
            inputs[index] = inputs.get(index, "") + delta["partial_json"]


def _calls(message: Json) -> Iterable[Json]:
    return message.get("tool_calls") or ()


def _thought(message: Json) -> str:
    for name in ("reasoning_content", "reasoning", "thinking"):
        if message.get(name):
            thought: str = message[name]
            return thought
    return "".join(detail.get("text", "") for detail in message.get("reasoning_details") or ())


def _decoded(arguments: str) -> Any:
    """Return arguments as a mapping; of a stream that broke off they may be half there."""
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return arguments


def _anthropic_usage(usage: Json) -> tuple[int, int]:
    """Return the tokens of the whole prompt, of which the protocol counts the cached ones apart."""
    kinds = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return sum(usage.get(kind) or 0 for kind in kinds), usage.get("output_tokens") or 0


def _openai_usage(usage: Json | None) -> tuple[int, int] | None:
    return (usage["prompt_tokens"], usage["completion_tokens"]) if usage else None
