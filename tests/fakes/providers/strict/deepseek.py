"""DeepSeek: messages with calls must have their reasoning."""

from tests.fakes.providers.strict.base import Body, StrictRefusalError, openai_error
from tests.fakes.providers.strict.histories import has_calls


def demands_reasoning(body: Body) -> None:
    """Refuse a message with calls and without `reasoning_content`."""
    for message in body["messages"]:
        if has_calls(message) and not isinstance(message.get("reasoning_content"), str):
            raise StrictRefusalError(
                400,
                openai_error("The `reasoning_content` in the thinking mode must be passed back to the API."),
            )
