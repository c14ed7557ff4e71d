"""Changes the harmless fields of a request that a provider refused; pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.completions.json_access import as_mapping, as_sequence
from gatewayd.dialects.providers.quotes import quoted

LIMITS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""Fields of the longest answer, which are clamped or renamed but never left out."""

NESTED: Final = frozenset({"strict", "cache_control"})
"""Harmless fields of tools and parts, left out wherever they stand."""

HELD: Final = frozenset({"effort", "summary"})
"""Harmless fields in an object of `EFFORT_HOLDERS`."""

HARMLESS: Final = frozenset(
    {"temperature", "top_p", "top_k", "min_p", "typical_p", "presence_penalty", "frequency_penalty"}
    | {
        "repetition_penalty",
        "repeat_penalty",
        "logit_bias",
        "logprobs",
        "top_logprobs",
        "seed",
        "random_seed",
    }
    | {"reasoning_effort", "verbosity", "store", "metadata", "user", "service_tier"}
    | {"parallel_tool_calls", "stream_options", "safety_identifier", "prompt_cache_key"}
    | {"prompt_cache_options", "prompt_cache_retention", "betas", "enable_thinking", "thinking_budget"}
    | {"chat_template_kwargs", "truncation", "think", "client_metadata", "include"}
    | NESTED
    | HELD
)
"""Fields that a request may lose."""

EFFORT_HOLDERS: Final = ("output_config", "reasoning")
"""Objects with a word of effort, in the Anthropic and in the Responses protocol."""


@dataclass(frozen=True, slots=True)
class RefusedField:
    """A field to change before the request is sent again.

    `value` is the refused value as text, None for any. `rename` is the field's other name, `limit` its
    maximum, `replacement` the value to send, with `beside_tools` in every request that has tools; without any
    of them the field is left out. With `beside` only a request that has that other field changes.
    """

    name: str
    value: str | None = None
    rename: str = ""
    limit: int = 0
    replacement: str = ""
    beside_tools: bool = False
    beside: str = ""


def has_field(body: Mapping[str, Any], name: str) -> bool:
    """Return whether a request has a field that may change."""
    if name in LIMITS:
        return body.get(name) is not None
    if name not in HARMLESS:
        return False
    if name in NESTED:
        return _has_nested(body, name)
    if name in HELD:
        return any(name in as_mapping(body.get(holder)) for holder in EFFORT_HOLDERS)
    return name in body


def change_field(body: dict[str, Any], field: RefusedField) -> bool:
    """Change one field of a request, a copy; return whether it was changed."""
    name = field.name
    if field.beside_tools:
        is_wanted = bool(body.get("tools")) and body.get(name) != field.replacement
        body.update({name: field.replacement} if is_wanted else {})
        return is_wanted
    if not has_field(body, name) or (field.beside and field.beside not in body):
        return False
    if field.value is not None and value_key(value_of(body, name)) != field.value:
        return False
    if field.limit:
        is_over = type(body[name]) is int and body[name] > field.limit
        body[name] = field.limit if is_over else body[name]
        return is_over
    if field.rename:
        value = body.pop(name)
        body.setdefault(field.rename, value)
    elif field.replacement:
        body[name] = field.replacement
    else:
        _drop(body, name)
    return True


def value_of(body: Mapping[str, Any], name: str) -> object:
    """Return the value of a field that is not nested, of effort and summary the word in its object."""
    if name in HELD:
        holders = (as_mapping(body.get(holder)) for holder in EFFORT_HOLDERS)
        return next((holder[name] for holder in holders if name in holder), None)
    return body.get(name)


def values_of(body: Mapping[str, Any]) -> Iterator[object]:
    """Yield the values of all fields that a request may lose."""
    yield from (value for name, value in body.items() if name in HARMLESS)
    yield from (value_of(body, name) for name in HELD)
    yield from (holder.get(name) for holder in _holders(body) for name in NESTED)


def value_key(value: object) -> str:
    """Return a short text for a value; the same one for equal texts of at most 100 characters and numbers."""
    return repr(value[:100]) if isinstance(value, str) else quoted(value)


def _drop(body: dict[str, Any], name: str) -> None:
    if name in NESTED:
        _drop_nested(body, name)
    elif name in HELD:
        for holder in EFFORT_HOLDERS:
            if name in as_mapping(body.get(holder)):
                body[holder] = _without(body[holder], name)
    else:
        del body[name]


def _has_nested(body: Mapping[str, Any], name: str) -> bool:
    return any(name in holder for holder in _holders(body))


def _holders(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a request that may have one of the nested fields."""
    for tool in as_sequence(body.get("tools")):
        yield as_mapping(tool)
        yield as_mapping(as_mapping(tool).get("function"))
    for block in as_sequence(body.get("system")):
        yield as_mapping(block)
    for message in as_sequence(body.get("messages")):
        for part in as_sequence(as_mapping(message).get("content")):
            yield as_mapping(part)


def _drop_nested(body: dict[str, Any], name: str) -> None:
    if isinstance(body.get("tools"), list):
        body["tools"] = [_without_nested(tool, name) for tool in body["tools"]]
    if isinstance(body.get("system"), list):
        body["system"] = [_without(block, name) for block in body["system"]]
    if isinstance(body.get("messages"), list) and name == "cache_control":
        body["messages"] = [_without_marks(message, name) for message in body["messages"]]


def _without_marks(message: Any, name: str) -> Any:
    content = as_mapping(message).get("content")
    return (
        {**message, "content": [_without(part, name) for part in content]}
        if isinstance(content, list)
        else message
    )


def _without_nested(tool: Any, name: str) -> Any:
    tool = _without(tool, name)
    function = as_mapping(as_mapping(tool).get("function"))
    return {**tool, "function": _without(function, name)} if function else tool


def _without(value: Any, name: str) -> Any:
    if not isinstance(value, dict) or name not in value:
        return value
    return {key: member for key, member in value.items() if key != name}
