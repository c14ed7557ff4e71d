"""Reads the usage that providers tell, in the terms of all protocols; pure, and safe from hostile objects."""

from collections.abc import Mapping
from typing import Any, Final

from gatewayd.completions.deltas import event_characters, usage_of
from gatewayd.completions.records import CompletionChunk
from gatewayd.metering.records import MAX_TOKENS, MeteredCall, TokenUsage

COUNTS: Final = (
    *("prompt_tokens", "completion_tokens", "total_tokens", "input_tokens", "output_tokens"),
    *("prompt_tokens_details", "completion_tokens_details", "input_tokens_details", "output_tokens_details"),
    *("cache_read_input_tokens", "cache_creation_input_tokens", "prompt_cache_hit_tokens"),
    *("prompt_eval_count", "eval_count"),
)
"""Members of usage objects that are read."""

_PARTS: Final = frozenset(
    {"prompt_cache_hit_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"}
)

PLAIN_COUNTS: Final = frozenset({"prompt_tokens", "completion_tokens", "total_tokens"})
"""Members of the usage objects of most providers, which tell no parts."""

NOTHING: Final[Mapping[str, Any]] = {}


def read_usage(value: object) -> TokenUsage | None:
    """Return the tokens of a usage object of any protocol; None if it has no counts.

    OpenAI names (`prompt_tokens`, `input_tokens` of images and responses) have the cached tokens within the
    prompt, and those of the messages protocol (`cache_read_input_tokens` beside `input_tokens`) beside it.
    Ollama names are `prompt_eval_count` and `eval_count`. A count that is negative, no integer or absurd is
    0, and a part is at most its whole.
    """
    if type(value) is not dict:
        return None
    get = value.get
    prompt, completion = get("prompt_tokens"), get("completion_tokens")
    if type(prompt) is not int and type(completion) is not int:
        return _other_usage(value)
    if not (type(prompt) is type(completion) is int and 0 <= prompt <= MAX_TOKENS >= completion >= 0):
        prompt, completion = _count(prompt), _count(completion)
    if PLAIN_COUNTS.issuperset(value):
        return TokenUsage(prompt, 0, 0, completion, 0)
    cached = written = thought = 0
    details, given = get("prompt_tokens_details"), get("completion_tokens_details")
    if type(details) is dict:
        cached = _count(details.get("cached_tokens"))
        if "cache_write_tokens" in details:
            written = _count(details["cache_write_tokens"])
    if type(given) is dict:
        thought = _count(given.get("reasoning_tokens"))
    if not _PARTS.isdisjoint(value):
        cached = cached or _count(get("prompt_cache_hit_tokens")) or _count(get("cache_read_input_tokens"))
        written = _count(get("cache_creation_input_tokens")) or written
    if cached > prompt or written > prompt or thought > completion:
        cached, written, thought = min(cached, prompt), min(written, prompt), min(thought, completion)
    return TokenUsage(prompt, cached, written, completion, thought)


def answer_usage(answer: Mapping[str, Any]) -> TokenUsage | None:
    """Return the tokens of a whole answer: its usage, that in `meta` as of Cohere, or counts as of Ollama."""
    found = read_usage(answer.get("usage"))
    if found is not None:
        return found
    meta = answer.get("meta")
    if isinstance(meta, Mapping):
        for name in ("tokens", "billed_units"):
            found = found or read_usage(meta.get(name))
    if found is None and "prompt_eval_count" in answer:
        found = read_usage({"prompt_eval_count": answer["prompt_eval_count"]})
    return found


def _other_usage(value: Mapping[str, Any]) -> TokenUsage | None:
    if type(value.get("input_tokens")) is int or type(value.get("output_tokens")) is int:
        return _token_names(value)
    sent, received = value.get("prompt_eval_count"), value.get("eval_count")
    if type(sent) is int or type(received) is int:
        return TokenUsage(prompt=_count(sent), completion=_count(received))
    if type(value.get("total_tokens")) is int:
        return TokenUsage(prompt=_count(value["total_tokens"]))
    return None


def _token_names(value: Mapping[str, Any]) -> TokenUsage:
    """Return the usage with the names of the Responses and the messages protocol."""
    sent, received = _count(value.get("input_tokens")), _count(value.get("output_tokens"))
    details = _object(value.get("output_tokens_details"))
    thought = _count(details.get("reasoning_tokens")) or _count(details.get("thinking_tokens"))
    inner = value.get("input_tokens_details")
    if isinstance(inner, Mapping):
        cached, written = _count(inner.get("cached_tokens")), _count(inner.get("cache_write_tokens"))
        return TokenUsage(sent, min(sent, cached), min(sent, written), received, min(received, thought))
    cached = _count(value.get("cache_read_input_tokens"))
    written = _count(value.get("cache_creation_input_tokens"))
    return TokenUsage(
        min(MAX_TOKENS, sent + cached + written), cached, written, received, min(received, thought)
    )


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else NOTHING


def _count(value: object) -> int:
    if type(value) is int:
        return value if 0 <= value <= MAX_TOKENS else 0
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= MAX_TOKENS else 0


class StreamUsage:
    """The usage within the parts of one answer: what was told last of each count."""

    __slots__ = ("_told",)

    def __init__(self) -> None:
        self._told: dict[str, Any] | None = None

    def look(self, chunk: CompletionChunk, call: MeteredCall) -> bool:
        """Note the usage and the length of the texts of a chunk; return whether it has usage."""
        events = chunk.decoded
        if events is None:
            call.characters += chunk.characters
            if chunk.usage is None:
                return False
            self.add(chunk.usage)
            return True
        has_usage = False
        for event in events:
            usage = usage_of(event)
            if usage:
                self.add(usage)
                has_usage = True
            call.characters += event_characters(event)
        return has_usage

    def add(self, usage: object) -> None:
        """Note a usage object of any protocol; a count that it does not tell stays."""
        if isinstance(usage, Mapping) and usage:
            known = {name: usage[name] for name in COUNTS if usage.get(name) is not None}
            self._told = known if self._told is None else {**self._told, **known}

    def tokens(self) -> TokenUsage | None:
        """Return what was told, None if nothing was."""
        return read_usage(self._told)
