"""Converts finish reasons, usage and ids of OpenAI completions to the messages protocol; pure."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from gatewayd.completions.json_access import as_count, as_mapping, as_text
from gatewayd.completions.records import Body
from gatewayd.dialects.token_estimate import length_tokens
from gatewayd.ids import NewId

STOP_REASONS: Final = {
    "stop": "end_turn",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "content_filter": "refusal",
    "refusal": "refusal",
    "stop_sequence": "stop_sequence",
}
"""Stop reason for each finish reason; all others become end_turn.

content_filter becomes refusal: in both cases a classifier, not the model, ended the answer.
"""

NATIVE_REASONS: Final = frozenset({"pause_turn", "compaction", "model_context_window_exceeded", "refusal"})
"""Stop reasons without an OpenAI finish reason; sources keep them in `native_finish_reason`."""

_SAME_USAGE: Final = {
    "cache_creation": dict,
    "server_tool_use": dict,
    "service_tier": str,
    "inference_geo": str,
    "iterations": list,
    "speed": str,
    "fallback_credit": dict,
}
"""Fields of usage that only sources of this protocol give, with their types."""

_NATURAL: Final = frozenset({"stop", "eos", "end_turn", "eos_token", "length", "tool_calls"})
"""Values in a provider's stop fields that name a reason instead of a stop sequence."""


def stop_reason_of(
    choice: Mapping[str, Any], has_calls: bool, stop_sequences: Collection[str] | None
) -> tuple[str, str | None]:
    """Return stop reason and stop sequence of a choice.

    A normal end of an answer with calls becomes tool_use, whatever reason the provider gives. A stop sequence
    is known only if the provider names it in `stop_reason`, `matched_stop` or `stop_sequence`.
    """
    reason = as_text(choice.get("native_finish_reason"))
    if reason not in NATIVE_REASONS:
        reason = STOP_REASONS.get(as_text(choice.get("finish_reason")), "end_turn")
    if has_calls and reason in ("end_turn", "stop_sequence"):
        return "tool_use", None
    if reason not in ("end_turn", "stop_sequence"):
        return reason, None
    for name in ("stop_reason", "matched_stop", "stop_sequence"):
        matched = as_text(choice.get(name))
        if matched and (matched not in _NATURAL if stop_sequences is None else matched in stop_sequences):
            return "stop_sequence", matched
    return reason, None


def render_usage(usage: object, input_tokens: int = 0, characters: int = 0) -> Body:
    """Return OpenAI usage in the terms of the protocol, which counts cached tokens separately.

    Missing counts are estimated: the input by `input_tokens`, the output by the answer's `characters`.
    """
    given = as_mapping(usage)
    prompt_details = as_mapping(given.get("prompt_tokens_details"))
    read = (
        as_count(given.get("cache_read_input_tokens"))
        or as_count(prompt_details.get("cached_tokens"))
        or as_count(given.get("prompt_cache_hit_tokens"))
    )
    written = as_count(given.get("cache_creation_input_tokens")) or as_count(
        prompt_details.get("cache_write_tokens")
    )
    prompt = as_count(given.get("prompt_tokens"))
    fresh = max(0, prompt - read - written) if prompt else as_count(given.get("input_tokens"))
    if not (fresh or read or written):
        fresh = input_tokens
    answer = as_count(given.get("completion_tokens")) or as_count(given.get("output_tokens"))
    converted: Body = {
        "input_tokens": fresh,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": answer or length_tokens(characters),
    }
    thinking = as_count(as_mapping(given.get("completion_tokens_details")).get("reasoning_tokens"))
    if thinking:
        converted["output_tokens_details"] = {"thinking_tokens": thinking}
    for name, expected in _SAME_USAGE.items():
        if isinstance(given.get(name), expected):
            converted[name] = given[name]
    return converted


def message_id(given: object, new_id: NewId) -> str:
    """Return the source's id if it is the id of a message, else a new one."""
    if isinstance(given, str) and given.startswith("msg_"):
        return given
    return f"msg_{new_id().replace('-', '')}"
