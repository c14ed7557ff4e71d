"""Converts the options and tools of an Ollama request to OpenAI fields; pure.

`think` becomes `reasoning_effort`, the inverse of Ollama's own OpenAI routes: false is "none", true is
"medium" (the default effort), and a level stays as it is.
"""

from collections.abc import Mapping
from typing import Any, Final

from gatewayd.completions.records import Body
from gatewayd.dialects.fields import read_list
from gatewayd.errors import invalid

_NUMBERS: Final = (
    "temperature",
    "top_p",
    "min_p",
    "typical_p",
    "presence_penalty",
    "frequency_penalty",
    "repeat_penalty",
)

_WHOLE_NUMBERS: Final = ("top_k", "seed")

_EFFORTS: Final = ("low", "medium", "high", "max")

_SCHEMA_NAME: Final = "response"
"""Schema name in `response_format`, which OpenAI requires and this dialect lacks."""


def to_fields(value: Mapping[str, Any], warnings: list[str], *, is_local: bool = False) -> Body:
    """Return the OpenAI fields for the options of a chat or generate request.

    With `is_local` a runtime answers: its own fields go unchanged into `options` and `think`. Adds a sentence
    to `warnings` for each unsupported option. Raises invalid_request with the name of a field whose value is
    invalid in this dialect.
    """
    fields = _options(value.get("options"), warnings, is_local=is_local)
    form = _response_format(value.get("format"))
    if form is not None:
        fields["response_format"] = form
    effort = _effort(value.get("think"))
    if effort is not None and is_local:
        fields["think"] = value["think"]
    elif effort is not None:
        fields["reasoning_effort"] = effort
    if value.get("logprobs") is not None:
        fields["logprobs"] = _flag(value, "logprobs")
    if fields.get("logprobs") and value.get("top_logprobs") is not None:
        fields["top_logprobs"] = _whole(value["top_logprobs"], "top_logprobs")
    return fields


def to_tools(value: Mapping[str, Any]) -> list[Body]:
    """Return the tools, which have the same format in both dialects; a missing `type` becomes "function"."""
    return [_tool(tool, f"tools[{index}]") for index, tool in enumerate(read_list(value, "tools"))]


def is_streamed(value: Mapping[str, Any]) -> bool:
    """Return the value of `stream`; the default of this dialect is true."""
    return value.get("stream") is None or _flag(value, "stream")


def _options(options: Any, warnings: list[str], *, is_local: bool) -> Body:
    if options is None:
        return {}
    if not isinstance(options, dict):
        raise invalid("cannot read options: it is not an object", param="options")
    fields: Body = {}
    native: Body = {}
    for name, value in options.items():
        if value is None:
            continue
        where = f"options.{name}"
        if name in _NUMBERS:
            fields[name] = _number(value, where)
        elif name in _WHOLE_NUMBERS:
            fields[name] = _whole(value, where)
        elif name == "num_predict" and not is_local:
            _add_limit(fields, _whole(value, where))
        elif name == "stop":
            _add_stop(fields, value)
        elif is_local:
            native[name] = value
        else:
            warnings.append(f"cannot use {where}: this model does not run on a local runtime of that dialect")
    return {**fields, "options": native} if native else fields


def _add_limit(fields: Body, tokens: int) -> None:
    """Add the maximum number of tokens; zero and less mean no limit, or the rest of the context."""
    if tokens > 0:
        fields["max_tokens"] = tokens


def _add_stop(fields: Body, stop: Any) -> None:
    texts = [stop] if isinstance(stop, str) else stop
    if not isinstance(texts, list) or not all(isinstance(item, str) for item in texts):
        raise invalid("cannot read options.stop: it is not a list of texts", param="options.stop")
    if texts:
        fields["stop"] = texts


def _response_format(form: Any) -> Body | None:
    match form:
        case None | "":
            return None
        case "json":
            return {"type": "json_object"}
        case dict():
            return {"type": "json_schema", "json_schema": {"name": _SCHEMA_NAME, "schema": form}}
        case _:
            raise invalid('cannot read format: it is neither "json" nor a JSON schema', param="format")


def _effort(think: Any) -> str | None:
    if think is None:
        return None
    if isinstance(think, bool):
        return "medium" if think else "none"
    if think not in _EFFORTS:
        raise invalid(f"cannot read think: it is none of true, false, {', '.join(_EFFORTS)}", param="think")
    return str(think)


def _tool(tool: Any, where: str) -> Body:
    if not isinstance(tool, dict):
        raise invalid(f"cannot read {where}: it is not an object", param=where)
    function = tool.get("function")
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise invalid(f"cannot read {where}.function: it has no name", param=f"{where}.function")
    named = {key: value for key, value in function.items() if value is not None}
    return {"type": tool.get("type") or "function", "function": named}


def _flag(value: Mapping[str, Any], name: str) -> bool:
    flag = value[name]
    if not isinstance(flag, bool):
        raise invalid(f"cannot read {name}: it is neither true nor false", param=name)
    return flag


def _number(value: Any, where: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise invalid(f"cannot read {where}: it is not a number", param=where)
    return value


def _whole(value: Any, where: str) -> int:
    """Return a whole number; 3.0 is accepted, because clients in untyped languages send it."""
    number = _number(value, where)
    if isinstance(number, float) and not number.is_integer():
        raise invalid(f"cannot read {where}: it is not a whole number", param=where)
    return int(number)
