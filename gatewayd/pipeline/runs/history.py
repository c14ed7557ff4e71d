"""Converts stored messages to the messages of a model request; pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.records import Body

ROLES: Final = frozenset({"system", "user", "assistant"})

_DETAILS: Final = re.compile(r'<details type="(?:reasoning|tool_calls|code_interpreter)"')
_DETAILS_END: Final = "</details>"


def to_messages(stored: Sequence[Mapping[str, Any]]) -> list[Body]:
    """Return messages without their markup for readers: reasoning and tool calls.

    Images of a user message become parts of it. A message without content is omitted.
    """
    messages = [_to_message(message) for message in stored if message.get("role") in ROLES]
    return [message for message in messages if message["content"]]


def strip_details(content: str) -> str:
    """Return a content without the `<details>` elements of reasoning and tool calls."""
    kept, position = [], 0
    while found := _DETAILS.search(content, position):
        end = content.find(_DETAILS_END, found.end())
        if end < 0:
            break
        kept.append(content[position : found.start()])
        position = end + len(_DETAILS_END)
    return "".join([*kept, content[position:]]).strip()


def _to_message(stored: Mapping[str, Any]) -> Body:
    role, content = stored["role"], stored.get("content") or ""
    if role == "assistant" and isinstance(content, str):
        content = strip_details(content)
    images = _images(stored) if role == "user" else []
    if images:
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
        content = [*parts, *images]
    return {"role": role, "content": content}


def _images(stored: Mapping[str, Any]) -> Sequence[Body]:
    files = [as_mapping(item) for item in as_sequence(stored.get("files"))]
    urls = [as_text(item.get("url")) for item in files if _is_image(item)]
    return [
        {"type": "image_url", "image_url": {"url": url}}
        for url in urls
        if url.startswith(("data:", "http://", "https://"))
    ]


def _is_image(item: Mapping[str, Any]) -> bool:
    kind = as_text(item.get("content_type"))
    return item.get("type") == "image" or kind.startswith("image/")
