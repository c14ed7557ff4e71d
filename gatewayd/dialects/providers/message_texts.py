"""Texts of messages: joined, marked, without empty ones, and those that replace tool calls; pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatewayd.completions.deltas import text_of
from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.records import Body

SYSTEM_HEAD: Final = "[Message of the system]"
"""First line of an instruction that a maker takes as a text of the user only."""

MISSING_RESULT: Final = "no result"
"""Result of a call that the history has none for."""

PREFILL_HEAD: Final = "Continue from here, without repeating it:"
"""First line of a beginning of the answer that a maker takes as a text of the user only."""

GAP: Final = "\n\n"


def join_contents(contents: Sequence[Any]) -> Any:
    """Return one content of several: texts with an empty line between them, or the parts of all."""
    filled = [content for content in contents if content]
    if all(isinstance(content, str) for content in filled):
        return GAP.join(filled)
    parts: list[Any] = []
    for content in filled:
        parts += [{"type": "text", "text": content}] if isinstance(content, str) else as_sequence(content)
    return parts


def merge_messages(messages: Sequence[Body]) -> Body:
    """Return one message of several of one role: their texts, and the calls of all."""
    merged: Body = {}
    calls: list[Any] = []
    for message in messages:
        merged.update(message)
        calls += as_sequence(message.get("tool_calls"))
    merged["content"] = join_contents([message.get("content") for message in messages])
    if calls:
        merged["tool_calls"] = calls
        merged["content"] = merged["content"] or None
    return merged


def headed_content(head: str, content: Any) -> Any:
    """Return a content with a line before it."""
    if isinstance(content, list):
        return [{"type": "text", "text": head}, *content]
    return f"{head}\n{as_text(content)}"


def is_empty(content: object) -> bool:
    """Return True for a content without a word, a picture or any other part."""
    if isinstance(content, list):
        return all(_is_empty_part(part) for part in content)
    return content is None or (isinstance(content, str) and not content.strip())


def without_empty(message: Body) -> Body | None:
    """Return a message without empty texts, itself if it has none, None if nothing is left.

    A result keeps an empty text: it answers its call.
    """
    content = message.get("content")
    if isinstance(content, list) and any(map(_is_empty_part, content)):
        kept = [part for part in content if not _is_empty_part(part)]
        if not kept and message.get("tool_calls"):
            return {**message, "content": None}
        if not kept and message.get("role") != "tool":
            return None
        return {**message, "content": kept or ""}
    if not is_empty(content) or message.get("role") == "tool":
        return message
    if not message.get("tool_calls"):
        return None
    return message if content is None else {**message, "content": None}


def call_text(call: Mapping[str, Any]) -> str:
    """Return the text that replaces a call."""
    function = as_mapping(call.get("function"))
    return f"[Called {as_text(function.get('name'))} with {as_text(function.get('arguments'))}]"


def result_content(name: str, content: Any) -> Any:
    """Return the content of the user that replaces a result; `name` is the tool, "" if unknown."""
    return headed_content(f"[Result of {name}]" if name else "[Result of a tool call]", content)


def plain_text(message: Mapping[str, Any]) -> str | None:
    """Return the text of a message, None if it has parts that are no texts."""
    content = message.get("content")
    if isinstance(content, list) and not all(
        isinstance(part, str) or as_text(as_mapping(part).get("type")) in ("text", "thinking")
        for part in content
    ):
        return None
    return text_of(message)


def _is_empty_part(part: object) -> bool:
    if isinstance(part, str):
        return not part.strip()
    found = as_mapping(part)
    text = found.get("text")
    return found.get("type") == "text" and (text is None or (isinstance(text, str) and not text.strip()))
