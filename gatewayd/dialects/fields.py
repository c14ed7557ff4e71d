"""Parsers of request fields shared by dialects; each error names the bad field; pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from gatewayd.completions.embedded_json import MAX_VALUES, has_too_many_values
from gatewayd.completions.json_access import as_mapping, as_sequence
from gatewayd.completions.records import Body
from gatewayd.errors import invalid


def read_list(body: Mapping[str, Any], name: str, where: str = "") -> list[Any]:
    """Return a list field, empty if absent; raise invalid_request naming `where`, or `name`."""
    value = body.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise invalid(f"cannot read {where or name}: it is not a list", param=where or name)
    return value


def read_text(value: Mapping[str, Any], name: str, where: str) -> str:
    """Return a text field, empty if absent; raise invalid_request naming `where`."""
    given = value.get(name)
    if given is not None and not isinstance(given, str):
        raise invalid(f"cannot read {where}: it is not a text", param=where)
    return given or ""


def check_arguments(messages: Sequence[Any]) -> None:
    """Raise invalid_request if the arguments of all tool calls hold too many values to be decoded."""
    texts = [
        arguments
        for message in messages
        for call in as_sequence(as_mapping(message).get("tool_calls"))
        if isinstance(arguments := as_mapping(as_mapping(call).get("function")).get("arguments"), str)
    ]
    if has_too_many_values(*texts):
        raise invalid(
            f"cannot read messages: the arguments of their tool calls hold over {MAX_VALUES} values",
            param="messages",
        )


def parse_arguments(arguments: Any, where: str) -> Body:
    """Return a tool call's arguments as an object; raise invalid_request naming `where`."""
    refusal = f"cannot read {where}: it is not a JSON object"
    if arguments is None or arguments == "":
        return {}
    try:
        parsed = orjson.loads(arguments) if isinstance(arguments, str) else arguments
    except orjson.JSONDecodeError as error:
        raise invalid(refusal, param=where) from error
    if not isinstance(parsed, dict):
        raise invalid(refusal, param=where)
    return parsed


def parse_data_url(url: object, where: str) -> tuple[str, str]:
    """Return media type and base64 text of a `data:` URL; raise invalid_request naming `where`."""
    if isinstance(url, str) and url.startswith("data:"):
        head, comma, data = url[5:].partition(",")
        media_type, *parameters = head.split(";")
        if comma and "base64" in parameters:
            return media_type or "image/png", data
    raise invalid(f"cannot read {where}: it needs an http(s) URL or a base64 data URL", param=where)


def json_schema(response_format: object) -> Any:
    """Return the schema of an OpenAI `response_format`, or None."""
    if not isinstance(response_format, dict) or response_format.get("type") != "json_schema":
        return None
    wrapped = response_format.get("json_schema")
    return wrapped.get("schema") if isinstance(wrapped, dict) else None
