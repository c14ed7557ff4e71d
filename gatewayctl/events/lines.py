"""One-line format of events."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from gatewayctl.events.follower import GAP, Happening
from gatewayctl.sanitize import begun

MAX_LINE_CHARS: Final = 200
"""Maximum number of characters of a text in a line."""

Texts = Callable[[Mapping[str, Any]], str]


def line_of(event: Happening, at: str) -> str:
    """Return the line of an event: time, user, chat, type and content."""
    if event.type == GAP:
        return f"{at} events may be lost: they are kept for a while, and not over a restart of the daemon"
    place = "/".join(part for part in (event.chat_id, event.message_id) if part)
    line = " ".join(part for part in (at, event.user, place, f"{event.type}:", text_of(event)) if part)
    if event.call_id is None:
        return line
    return f"{line}  (gatewayctl event answer {event.call_id})"


def text_of(event: Happening) -> str:
    """Return the content of an event in short."""
    if isinstance(event.data, str):
        return begun(event.data, MAX_LINE_CHARS)
    if isinstance(event.data, dict) and event.type in TEXTS:
        summary = TEXTS[event.type](event.data)
        if summary:
            return summary
    return begun(json.dumps(event.data, ensure_ascii=False), MAX_LINE_CHARS)


def question_of(data: Any) -> str:
    """Return the question of a call: its title and its message."""
    if not isinstance(data, Mapping):
        return ""
    summary = [value for name in ("title", "message") if isinstance(value := data.get(name), str) and value]
    return ": ".join(summary) or _text("code")(data)


def _text(*names: str) -> Texts:
    """Return a function that reads the first of these members that is a text."""

    def read(data: Mapping[str, Any]) -> str:
        found = (data.get(name) for name in names)
        return begun(next((value for value in found if isinstance(value, str)), ""), MAX_LINE_CHARS)

    return read


def _count(name: str) -> Texts:
    """Return a function that formats the length of a list."""

    def read(data: Mapping[str, Any]) -> str:
        value = data.get(name)
        return f"{len(value)} {name}" if isinstance(value, list) else ""

    return read


def _status(data: Mapping[str, Any]) -> str:
    summary = _text("description", "action")(data)
    return f"{summary} (done)" if summary and data.get("done") is True else summary


def _notification(data: Mapping[str, Any]) -> str:
    summary, kind = _text("content")(data), data.get("type")
    return f"{kind}: {summary}" if summary and isinstance(kind, str) else summary


def _completion(data: Mapping[str, Any]) -> str:
    """Return the end of the answer so far, because each such event contains the whole answer."""
    content = data.get("content")
    line = " ".join(content.split()) if isinstance(content, str) else ""
    summary = line if len(line) <= MAX_LINE_CHARS else f"... {line[-MAX_LINE_CHARS:]}"
    return f"{summary} (done)".strip() if data.get("done") is True else summary


def _source(data: Mapping[str, Any]) -> str:
    source = data.get("source")
    return _text("name", "id", "url")(source) if isinstance(source, Mapping) else _text("name")(data)


TEXTS: Final[Mapping[str, Texts]] = {
    "status": _status,
    "chat:completion": _completion,
    "chat:message:delta": _text("content"),
    "message": _text("content"),
    "chat:message": _text("content"),
    "replace": _text("content"),
    "chat:message:files": _count("files"),
    "files": _count("files"),
    "chat:message:embeds": _count("embeds"),
    "embeds": _count("embeds"),
    "chat:title": _text("title"),
    "source": _source,
    "citation": _source,
    "notification": _notification,
    "confirmation": question_of,
    "input": question_of,
    "execute": _text("code"),
}
"""Types with a short form; others are shown as JSON."""
