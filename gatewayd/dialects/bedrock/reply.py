"""Converts answers of the Converse protocol to OpenAI completions and chunks; pure.

Thoughts are in `reasoning_content`, with their signatures in `thinking_blocks`, as of the messages protocol.
"""

import base64
from collections.abc import Mapping
from typing import Any, Final

import orjson

from gatewayd.completions.json_access import as_count, as_mapping, as_sequence, as_text
from gatewayd.completions.limits import MAX_STREAM_BYTES, AnswerSizeError, check_calls
from gatewayd.completions.records import Body

FINISH_REASONS: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
}

PLAIN_REASONS: Final = frozenset({"end_turn", "stop_sequence", "tool_use", "max_tokens"})
"""Reasons that `finish_reason` expresses fully."""


class ConverseDecoder:
    """Converts the events of one stream, in order, to chat.completion.chunk objects.

    `is_complete` is set by a stop reason. The usage comes after it.
    """

    def __init__(self, answer_id: str, created: int, model: str, *, include_usage: bool) -> None:
        self._head: Body = {"id": answer_id, "created": created, "model": model}
        self._include_usage = include_usage
        self._calls: dict[int, int] = {}
        self._with_input: set[int] = set()
        self._thoughts: dict[int, tuple[list[str], list[str]]] = {}
        self._size = 0
        self.is_complete = False

    def decode(self, event: Mapping[str, Any]) -> list[Body]:
        """Return the chunks for one event; unknown events give none."""
        if "messageStart" in event:
            return [self._chunk({"role": "assistant", "content": ""})]
        if "contentBlockStart" in event:
            return self._start(as_mapping(event["contentBlockStart"]))
        if "contentBlockDelta" in event:
            self._count(event)
            given = as_mapping(event["contentBlockDelta"])
            return self._delta(as_count(given.get("contentBlockIndex")), as_mapping(given.get("delta")))
        if "contentBlockStop" in event:
            return self._stop(as_count(as_mapping(event["contentBlockStop"]).get("contentBlockIndex")))
        if "messageStop" in event:
            self.is_complete = True
            last = self._chunk({})
            last["choices"][0].update(finish_fields(as_mapping(event["messageStop"]).get("stopReason")))
            return [last]
        usage = as_mapping(as_mapping(event.get("metadata")).get("usage"))
        if usage and self._include_usage:
            return [{**self._chunk({}), "choices": [], "usage": to_usage(usage)}]
        return []

    def _count(self, event: Mapping[str, Any]) -> None:
        """Raise AnswerSizeError for a stream that is too long; nothing else counts its bytes."""
        self._size += len(str(event))
        if self._size > MAX_STREAM_BYTES:
            raise AnswerSizeError(f"it is over {MAX_STREAM_BYTES} bytes")

    def _start(self, given: Mapping[str, Any]) -> list[Body]:
        use = as_mapping(as_mapping(given.get("start")).get("toolUse"))
        if not use:
            return []
        number = self._calls[as_count(given.get("contentBlockIndex"))] = len(self._calls)
        check_calls(len(self._calls))
        function = {"name": use.get("name"), "arguments": ""}
        call = {"index": number, "id": use.get("toolUseId"), "type": "function", "function": function}
        return [self._chunk({"tool_calls": [call]})]

    def _delta(self, index: int, delta: Mapping[str, Any]) -> list[Body]:
        if isinstance(delta.get("text"), str):
            return [self._chunk({"content": delta["text"]})] if delta["text"] else []
        part = as_text(as_mapping(delta.get("toolUse")).get("input"))
        if part and index in self._calls:
            self._with_input.add(index)
            return [self._arguments(index, part)]
        reasoning = as_mapping(delta.get("reasoningContent"))
        if not reasoning:
            return []
        if isinstance(reasoning.get("redactedContent"), bytes):
            return [self._chunk({"thinking_blocks": [_redacted(reasoning["redactedContent"])]})]
        texts, signatures = self._thoughts.setdefault(index, ([], []))
        text = as_text(reasoning.get("text"))
        texts.append(text)
        signatures.append(as_text(reasoning.get("signature")))
        return [self._chunk({"reasoning_content": text})] if text else []

    def _stop(self, index: int) -> list[Body]:
        if index in self._calls and index not in self._with_input:
            # A call without arguments sent no text, but callers expect JSON.
            return [self._arguments(index, "{}")]
        texts, signatures = self._thoughts.pop(index, ([], []))
        if not any(signatures):
            return []
        block = {"type": "thinking", "thinking": "".join(texts), "signature": "".join(signatures)}
        return [self._chunk({"thinking_blocks": [block]})]

    def _arguments(self, index: int, part: str) -> Body:
        call = {"index": self._calls[index], "function": {"arguments": part}}
        return self._chunk({"tool_calls": [call]})

    def _chunk(self, delta: Body) -> Body:
        return {
            **self._head,
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}],
        }


def to_completion(answer: Mapping[str, Any], answer_id: str, created: int, model: str) -> Body:
    """Return the completion of a whole answer; `created` is in epoch seconds."""
    texts: list[str] = []
    calls: list[Body] = []
    thoughts: list[Body] = []
    reasoning: list[str] = []
    message = as_mapping(as_mapping(answer.get("output")).get("message"))
    for block in map(as_mapping, as_sequence(message.get("content"))):
        texts.append(as_text(block.get("text")))
        if isinstance(block.get("toolUse"), dict):
            calls.append(_call(block["toolUse"]))
            check_calls(len(calls))
        thought = as_mapping(block.get("reasoningContent"))
        if thought:
            reasoning.append(as_text(as_mapping(thought.get("reasoningText")).get("text")))
            thoughts += _thinking_blocks(thought)
    text = "".join(texts)
    kept = {"reasoning_content": "".join(reasoning), "thinking_blocks": thoughts, "tool_calls": calls}
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text if text or not calls else None}
        | {name: value for name, value in kept.items() if value},
        "logprobs": None,
        **finish_fields(answer.get("stopReason")),
    }
    usage = to_usage(as_mapping(answer.get("usage")))
    head = {"id": answer_id, "object": "chat.completion", "created": created, "model": model}
    return {**head, "choices": [choice], "usage": usage}


def finish_fields(stop_reason: object) -> Body:
    """Return the fields of a choice that state why it ended."""
    reason = as_text(stop_reason)
    fields: Body = {"finish_reason": FINISH_REASONS.get(reason, "stop")}
    return fields if reason in PLAIN_REASONS or not reason else {**fields, "native_finish_reason": reason}


def to_usage(usage: Mapping[str, Any]) -> Body:
    """Return OpenAI usage; cached tokens, read and written, count as part of the prompt."""
    read, written = as_count(usage.get("cacheReadInputTokens")), as_count(usage.get("cacheWriteInputTokens"))
    prompt = as_count(usage.get("inputTokens")) + read + written
    completion = as_count(usage.get("outputTokens"))
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def _call(use: Mapping[str, Any]) -> Body:
    arguments = orjson.dumps(as_mapping(use.get("input"))).decode()
    function = {"name": use.get("name"), "arguments": arguments}
    return {"id": use.get("toolUseId"), "type": "function", "function": function}


def _thinking_blocks(thought: Mapping[str, Any]) -> list[Body]:
    if isinstance(thought.get("redactedContent"), bytes):
        return [_redacted(thought["redactedContent"])]
    given = as_mapping(thought.get("reasoningText"))
    signature = as_text(given.get("signature"))
    if not signature:
        return []
    return [{"type": "thinking", "thinking": as_text(given.get("text")), "signature": signature}]


def _redacted(data: bytes) -> Body:
    return {"type": "redacted_thinking", "data": base64.b64encode(data).decode()}
