"""The ids in requests and answers of the Responses protocol under which a provider keeps things; pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.completions.json_access import as_mapping, as_sequence
from gatewayd.completions.records import Body
from gatewayd.errors import invalid

MAX_REFERENCES: Final = 10_000
"""Ids of one request, and of one answer."""

_OUTPUT: Final = "_output"
"""How the types of results of tools end."""

_WRITTEN: Final = frozenset({"message", "function_call", "custom_tool_call", "mcp_approval_response"})
"""The types of items that a client writes itself: their content is read, whatever their id."""


_READ: Final = frozenset({"id", "type", "role", "encrypted_content", "container_id", "container"})


@dataclass(frozen=True, slots=True)
class ResponseReference:
    """An id, the field of the request that it stands in, and what it is the id of."""

    id: str
    param: str
    noun: str


def references_in(body: Body) -> Iterator[ResponseReference]:
    """Yield what a request names of what its provider keeps: responses, conversations, items, containers.

    Raises invalid_request for a field that some providers take for one of those.
    """
    yield from _reference(body.get("previous_response_id"), "previous_response_id", "response")
    conversation = body.get("conversation")
    yield from _reference(_exact(conversation, "conversation").get("id"), "conversation", "conversation")
    yield from _reference(conversation, "conversation", "conversation")
    for item in as_sequence(body.get("input")):
        known = _exact(item, "input")
        if _is_looked_up(known):
            yield from _reference(known.get("id"), "input", "item")
        yield from _reference(known.get("container_id"), "input", "container")
    for tool in as_sequence(body.get("tools")):
        yield from _reference(_exact(tool, "tools").get("container"), "tools", "container")


def ids_in(event: Mapping[str, Any]) -> Iterator[str]:
    """Yield the ids that an answer, or an event of one, gives to its caller."""
    response = as_mapping(event.get("response"))
    if not response and "type" not in event:
        response = event
    yield from _texts(response.get("id"))
    for item in (*as_sequence(response.get("output")), event.get("item")):
        known = as_mapping(item)
        yield from _texts(known.get("id"))
        yield from _texts(known.get("container_id"))


def _exact(value: object, param: str) -> Mapping[str, Any]:
    """Return an object whose names are written as they are read here: some providers ignore their case."""
    known = as_mapping(value)
    for name in known:
        if not (name.islower() and name.isascii()) and name.casefold() in _READ:
            meant = name.casefold()
            raise invalid(f"cannot accept {name} in {param}: {meant} is written in lower case", param=param)
    return known


def _is_looked_up(item: Mapping[str, Any]) -> bool:
    """Tell whether a provider may read an item under its id, and not from the request alone."""
    kind = item.get("type")
    if not isinstance(kind, str) or not kind:
        return not isinstance(item.get("role"), str)
    if kind == "reasoning" and item.get("encrypted_content"):
        return False
    return kind not in _WRITTEN and not kind.endswith(_OUTPUT)


def _reference(value: object, param: str, noun: str) -> Iterator[ResponseReference]:
    for each in _texts(value):
        yield ResponseReference(each, param, noun)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str) and value:
        yield value
