"""Finds the ids of objects stored at a provider in requests and replies of the Responses protocol; pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.completions.json_access import as_mapping, as_sequence
from gatewayd.completions.records import Body
from gatewayd.errors import invalid

MAX_REFERENCES: Final = 10_000
"""Maximum number of ids in one request, and in one reply."""

_OUTPUT: Final = "_output"
"""Suffix of the types of tool results."""

_CLIENT_ITEM_TYPES: Final = frozenset(
    {"message", "function_call", "custom_tool_call", "mcp_approval_response"}
)
"""Types of items that clients write themselves: the provider reads their content, whatever their id."""


_CHECKED_NAMES: Final = frozenset(
    {"id", "type", "role", "encrypted_content", "container_id", "container", "tools"}
)


@dataclass(frozen=True, slots=True)
class ResponseReference:
    """An id, the request field that holds it, and the kind of object that it names."""

    id: str
    param: str
    noun: str


def references_in(body: Body) -> Iterator[ResponseReference]:
    """Yield the stored objects that a request names: responses, conversations, items and containers.

    Raises invalid_request for a field name that some providers would read as one of those.
    """
    yield from _reference(body.get("previous_response_id"), "previous_response_id", "response")
    conversation = body.get("conversation")
    yield from _reference(_checked(conversation, "conversation").get("id"), "conversation", "conversation")
    yield from _reference(conversation, "conversation", "conversation")
    for item in as_sequence(body.get("input")):
        known = _checked(item, "input")
        if _is_looked_up(known):
            yield from _reference(known.get("id"), "input", "item")
        yield from _reference(known.get("container_id"), "input", "container")
        yield from _containers(known.get("tools"), "input")
    yield from _containers(body.get("tools"), "tools")


def ids_in(event: Mapping[str, Any]) -> Iterator[str]:
    """Yield the ids that a reply, or an event of a reply, gives to its caller."""
    response = as_mapping(event.get("response"))
    if not response and "type" not in event:
        response = event
    yield from _texts(response.get("id"))
    for item in (*as_sequence(response.get("output")), event.get("item")):
        known = as_mapping(item)
        yield from _texts(known.get("id"))
        yield from _texts(known.get("container_id"))


def _containers(tools: object, param: str) -> Iterator[ResponseReference]:
    """Yield the containers of tools, those of namespaces in each other included."""
    for tool in as_sequence(tools):
        known = _checked(tool, param)
        yield from _reference(known.get("container"), param, "container")
        yield from _containers(known.get("tools"), param)


def _checked(value: object, param: str) -> Mapping[str, Any]:
    """Return an object whose field names are in lower case, because some providers ignore the case."""
    known = as_mapping(value)
    for name in known:
        if not (name.islower() and name.isascii()) and name.casefold() in _CHECKED_NAMES:
            meant = name.casefold()
            raise invalid(
                f"cannot accept {name} in {param}: {meant} must be written in lower case", param=param
            )
    return known


def _is_looked_up(item: Mapping[str, Any]) -> bool:
    """Return True if a provider may load an item by its id instead of reading it from the request."""
    kind = item.get("type")
    if not isinstance(kind, str) or not kind:
        return not isinstance(item.get("role"), str)
    if kind == "reasoning" and item.get("encrypted_content"):
        return False
    if kind == "additional_tools" and isinstance(item.get("tools"), list):
        return False
    return kind not in _CLIENT_ITEM_TYPES and not kind.endswith(_OUTPUT)


def _reference(value: object, param: str, noun: str) -> Iterator[ResponseReference]:
    for each in _texts(value):
        yield ResponseReference(each, param, noun)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str) and value:
        yield value
