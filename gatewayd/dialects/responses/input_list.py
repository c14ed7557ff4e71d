"""Input items as their owner reads them back: each with an id, a type, and parts; pure."""

from collections.abc import Iterator, Sequence
from typing import Any

from gatewayd.completions.json_access import as_mapping, as_text
from gatewayd.completions.records import Body
from gatewayd.dialects.responses.envelope import input_item_id


def with_ids(response_id: str, items: Sequence[Any]) -> Iterator[Body]:
    """Yield the input items of a response, each with an id and a type; the items were checked."""
    used: set[str] = set()
    for index, item in enumerate(items):
        known = as_mapping(item)
        kind = as_text(known.get("type")) or "message"
        given = known.get("id")
        if not isinstance(given, str) or not given or given in used:
            given = input_item_id(response_id, kind, index)
        used.add(given)
        yield {**known, "id": given, "type": kind}


def listed_item(item: Body) -> Body:
    """Return an item for a list of input items: the content of a message is a list of parts."""
    if item.get("type") != "message":
        return item
    content = item.get("content")
    if not isinstance(content, str):
        return {"status": "completed", **item}
    if item.get("role") == "assistant":
        part: Body = {"type": "output_text", "text": content, "annotations": []}
    else:
        part = {"type": "input_text", "text": content}
    return {"status": "completed", **item, "content": [part]}
