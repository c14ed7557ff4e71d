"""Reasoning items of the Responses protocol, kept in `reasoning_details` of chat messages; pure.

An item is kept as one detail, in the form that routers of providers use:

    {"type": "reasoning.encrypted", "format": "openai-responses-v1", "id": "rs_...", "data": "...",
     "index": 0, "calls": 0, "origin": "NAME"}

`calls` counts the calls of the message that came before it, `origin` is the source that can decrypt `data`.
Callers that send it back, and the memory of the gateway, return it with the next turn.
"""

from collections.abc import Mapping
from typing import Any, Final

from gatewayd.completions.json_access import as_count, as_mapping, as_sequence, as_text
from gatewayd.completions.records import Body

ENCRYPTED: Final = "reasoning.encrypted_content"
"""The value of `include` that asks for encrypted reasoning."""

FORMAT: Final = "openai-responses-v1"

PARAGRAPH: Final = "\n\n"
"""Text between two parts of a summary, and between two messages of one answer."""


def detail_of(item: Mapping[str, Any], origin: str, number: int, calls: int) -> Body | None:
    """Return the detail for a reasoning item, None for one that is not encrypted."""
    data = as_text(item.get("encrypted_content"))
    if not data:
        return None
    kept: Body = {"type": "reasoning.encrypted", "format": FORMAT, "data": data}
    if as_text(item.get("id")):
        kept["id"] = item["id"]
    return {**kept, "index": number, "calls": calls, "origin": origin}


def held_items(details: object, origin: str) -> list[tuple[int, Body]]:
    """Return the reasoning items of a message that `origin` can decrypt, with the number of calls before
    each. One without an origin passed through another gateway and counts as this one's."""
    found = []
    for detail in map(as_mapping, as_sequence(details)):
        data = as_text(detail.get("data"))
        if detail.get("type") != "reasoning.encrypted" or detail.get("format") != FORMAT or not data:
            continue
        if detail.get("origin") not in (None, origin):
            continue
        item: Body = {"type": "reasoning", "summary": [], "encrypted_content": data}
        if as_text(detail.get("id")):
            item["id"] = detail["id"]
        found.append((as_count(detail.get("calls")), item))
    return found


def text_of_item(item: Mapping[str, Any]) -> str:
    """Return the text of a reasoning item: its own, as open models give it, or its summary."""
    for name in ("content", "summary"):
        texts = [as_text(as_mapping(part).get("text")) for part in as_sequence(item.get(name))]
        if any(texts):
            return PARAGRAPH.join(filter(None, texts))
    return ""
