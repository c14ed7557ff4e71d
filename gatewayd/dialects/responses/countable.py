"""A chat request as counters of tokens read it: pictures and documents by their size, not as text; pure."""

from collections.abc import Mapping
from typing import Any, Final

from gatewayd.completions.json_access import as_mapping, as_text
from gatewayd.completions.records import Body

_MEDIA: Final = frozenset({"image_url", "file", "input_audio"})


def countable(body: Mapping[str, Any]) -> Body:
    """Return the messages and tools of a chat request, with media in the form of the messages dialect."""
    messages = [_message(message) for message in body.get("messages") or ()]
    return {"model": body.get("model"), "messages": messages, "tools": body.get("tools") or []}


def _message(message: Body) -> Body:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    return {**message, "content": [_part(part) for part in content]}


def _part(part: Any) -> Any:
    known = as_mapping(part)
    kind = as_text(known.get("type"))
    if kind not in _MEDIA:
        return part
    held = as_mapping(known.get(kind))
    if kind == "input_audio":
        # As long as a document of the same size; no counter knows recordings.
        return _source("document", as_text(held.get("data")))
    if kind == "file":
        return _source("document", as_text(held.get("file_data")).rpartition(",")[2])
    return _source("image", as_text(held.get("url")).rpartition(",")[2])


def _source(kind: str, data: str) -> Body:
    return {"type": kind, "source": {"type": "base64", "data": data}}
