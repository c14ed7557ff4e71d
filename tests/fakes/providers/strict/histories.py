"""What several makers refuse in the messages of a request: unknown members, and calls without a result."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tests.fakes.providers.strict.base import Body, Check, StrictRefusalError, openai_error

PLAIN_MEMBERS = frozenset({"role", "content", "name", "tool_calls", "tool_call_id"})
CALL_MEMBERS = frozenset({"id", "type", "function"})


def only_members(
    known: Iterable[str],
    refusal: Callable[[int, str], StrictRefusalError],
    calls: Iterable[str] = CALL_MEMBERS,
) -> Check:
    """Refuse a member of a message, or of one of its calls, that is not known."""
    known_members, known_calls = frozenset(known), frozenset(calls)

    def check(body: Body) -> None:
        for index, message in enumerate(body["messages"]):
            for name in message.keys() - known_members:
                raise refusal(index, name)
            for call in message.get("tool_calls") or ():
                for name in call.keys() - known_calls:
                    raise refusal(index, f"tool_calls.{name}")

    return check


def paired(body: Body) -> None:
    """Refuse results that do not directly follow their calls, and calls without results."""
    open_ids: set[str] = set()
    for index, message in enumerate(body["messages"]):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in open_ids:
                raise _refused(
                    f"Invalid parameter: messages with role 'tool' must be a response to a preceding message "
                    f"with 'tool_calls'. (messages.[{index}].role)"
                )
            open_ids.remove(message["tool_call_id"])
            continue
        _answered(open_ids)
        ids = [call["id"] for call in message.get("tool_calls") or ()]
        if len(set(ids)) < len(ids):
            raise _refused("duplicate tool_call_id")
        open_ids = set(ids)
    _answered(open_ids)


def short_ids(body: Body) -> None:
    """Refuse ids of over 40 characters, as OpenAI does."""
    for index, message in enumerate(body["messages"]):
        for call in message.get("tool_calls") or ():
            if len(call["id"]) > 40:
                where = f"messages[{index}].tool_calls[0].id"
                raise _refused(
                    f"Invalid '{where}': string too long. Expected a string with maximum length 40"
                )


def has_calls(message: Mapping[str, Any]) -> bool:
    """Return True for a message of the assistant with calls."""
    return message["role"] == "assistant" and bool(message.get("tool_calls"))


def _answered(open_ids: set[str]) -> None:
    if open_ids:
        raise _refused(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {sorted(open_ids)}"
        )


def _refused(message: str) -> StrictRefusalError:
    return StrictRefusalError(400, openai_error(message, param="messages"))
