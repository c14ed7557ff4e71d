"""Kimi: messages with calls must have their reasoning, and none may be empty."""

from tests.fakes.providers.strict.base import Body, StrictRefusalError, openai_error
from tests.fakes.providers.strict.histories import has_calls


def demands_reasoning(body: Body) -> None:
    """Refuse a message with calls and without `reasoning_content`, and an empty message."""
    for index, message in enumerate(body["messages"]):
        if has_calls(message):
            if not isinstance(message.get("reasoning_content"), str):
                raise _refused(
                    "thinking is enabled but reasoning_content is missing in assistant tool call message at "
                    f"index {index}"
                )
        elif not message.get("content") and message["role"] != "tool":
            raise _refused(f"Invalid request: the message at position {index} must not be empty")


def _refused(message: str) -> StrictRefusalError:
    return StrictRefusalError(400, openai_error(message))
