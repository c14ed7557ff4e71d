"""Placeholders such as `{{USER_NAME}}` in system prompts of records and in system messages of callers.

Inserted values are not expanded themselves: every text is scanned once (gatewayd-dialects(7), PLACEHOLDERS).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from gatewayd import ids
from gatewayd.accounts.records import Actor
from gatewayd.completions.records import Body
from gatewayd.errors import invalid
from gatewayd.pipeline.documents.prompt_context import SYSTEM_ROLES
from gatewayd.pipeline.records import ChatRequest

MAX_PLACEHOLDERS: Final = 100_000
"""Maximum number of opening braces `{{` in the system messages of a request."""

MAX_INSERTED_CHARACTERS: Final = 4 * 1024 * 1024
"""Maximum number of characters inserted into a request, as a text may name a long value often."""

_BEGIN: Final = "{{"
_TIME: Final = "{{CURRENT_"
"""Begin of the placeholders of the date and the time."""

_PLACEHOLDER: Final = re.compile(r"\{\{[A-Za-z0-9_ ]{1,100}\}\}")


def local_time() -> datetime:
    """Return the local time with its time zone."""
    return datetime.fromtimestamp(ids.now(), UTC).astimezone()


def prompt_variables(actor: Actor, now: datetime, sent: Any) -> Mapping[str, str]:
    """Return the values of prompt placeholders; values of the caller override the gateway's own."""
    known = {
        "{{USER_NAME}}": actor.user.name,
        "{{USER_EMAIL}}": actor.user.email,
        "{{USER_ID}}": actor.user.id,
        "{{USER_ROLE}}": actor.user.role.value,
        "{{CURRENT_DATE}}": now.strftime("%Y-%m-%d"),
        "{{CURRENT_TIME}}": now.strftime("%H:%M:%S"),
        "{{CURRENT_DATETIME}}": now.strftime("%Y-%m-%d %H:%M:%S"),
        "{{CURRENT_WEEKDAY}}": now.strftime("%A"),
        "{{CURRENT_TIMEZONE}}": now.tzname() or "UTC",
    }
    if isinstance(sent, dict):
        known |= {name: value for name, value in sent.items() if isinstance(value, str)}
    return known


def fill_placeholders(text: str, values: Mapping[str, str]) -> str:
    """Return the text with its placeholders replaced; the values are inserted unescaped.

    Raises invalid_request naming `variables` for over MAX_INSERTED_CHARACTERS of values.
    """
    return PlaceholderFill(values).fill(text)


class PlaceholderFill:
    """Fills the placeholders of the texts of one request, up to MAX_INSERTED_CHARACTERS of values."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self._left = MAX_INSERTED_CHARACTERS

    def fill(self, text: str) -> str:
        """Return a text with its known placeholders replaced; raises as `fill_placeholders` does."""
        return _PLACEHOLDER.sub(self._value, text)

    def _value(self, found: re.Match[str]) -> str:
        value = self._values.get(found[0])
        if value is None:
            return found[0]
        self._left -= len(value)
        if self._left < 0:
            raise invalid(
                "cannot fill the placeholders of the system messages:"
                f" their values have over {MAX_INSERTED_CHARACTERS} characters together",
                param="variables",
            )
        return value


def fill_system_messages(
    request: ChatRequest, actor: Actor, clock: Callable[[], datetime] = local_time
) -> None:
    """Fill the placeholders of the caller's system messages, in the native form of the request too.

    A request without placeholders stays as it is. Raises invalid_request naming `messages` for over
    MAX_PLACEHOLDERS, and as `fill_placeholders` does.
    """
    messages = request.body.get("messages") or ()
    count = 0
    for message in messages:
        if message.get("role") in SYSTEM_ROLES:
            content = message.get("content")
            count += content.count(_BEGIN) if isinstance(content, str) else _count(content or ())
    if not count:
        return
    _check_count(count)
    values = prompt_variables(actor, clock(), request.options.get("variables"))
    request.body["messages"] = _filled_messages(messages, PlaceholderFill(values))
    if request.native is not None:
        request.native = _filled_native(request.native, PlaceholderFill(values))


def names_time(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the texts of system messages have a placeholder whose value changes with time."""
    contents = (message.get("content") for message in messages if message.get("role") in SYSTEM_ROLES)
    return any(
        _TIME in content
        if isinstance(content, str)
        else any(_TIME in part["text"] for part in content or () if _is_text(part))
        for content in contents
    )


def fill_message_request(body: Body, actor: Actor, clock: Callable[[], datetime] = local_time) -> Body:
    """Return a messages request whose system messages have their placeholders filled, as for an answer.

    The body itself if it has none; it is never modified. Raises as `fill_system_messages` does.
    """
    messages = body.get("messages")
    contents = [
        body.get("system"),
        *(
            message.get("content")
            for message in (messages if isinstance(messages, list) else ())
            if isinstance(message, dict) and _may_have_placeholders(message)
        ),
    ]
    count = sum(
        content.count(_BEGIN) if isinstance(content, str) else _count(content)
        for content in contents
        if isinstance(content, str | list)
    )
    if not count:
        return body
    _check_count(count)
    return _filled_native(body, PlaceholderFill(prompt_variables(actor, clock(), body.get("variables"))))


def _check_count(count: int) -> None:
    if count > MAX_PLACEHOLDERS:
        raise invalid(
            f"cannot fill the placeholders of messages: their system messages have over {MAX_PLACEHOLDERS}",
            param="messages",
        )


def _may_have_placeholders(message: Any) -> bool:
    role = message.get("role")
    return isinstance(role, str) and role in SYSTEM_ROLES and bool(message.get("content"))


def _filled_native(native: Mapping[str, Any], fill: PlaceholderFill) -> dict[str, Any]:
    filled = dict(native)
    if filled.get("system"):
        filled["system"] = _filled(filled["system"], fill)
    if isinstance(filled.get("messages"), list):
        filled["messages"] = _filled_messages(filled["messages"], fill)
    return filled


def _filled_messages(messages: Sequence[Any], fill: PlaceholderFill) -> list[Any]:
    return [
        {**message, "content": _filled(message["content"], fill)}
        if isinstance(message, dict) and _may_have_placeholders(message)
        else message
        for message in messages
    ]


def _count(content: Any) -> int:
    return sum(part["text"].count(_BEGIN) for part in content if _is_text(part))


def _filled(content: Any, fill: PlaceholderFill) -> Any:
    if isinstance(content, str):
        return fill.fill(content)
    if not isinstance(content, list):
        return content
    return [{**part, "text": fill.fill(part["text"])} if _is_text(part) else part for part in content]


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
