"""Perplexity: no tools, and the user and the assistant take turns."""

from tests.fakes.providers.strict.base import Body, StrictRefusalError, openai_error
from tests.fakes.providers.strict.histories import has_calls


def alternation(body: Body) -> None:
    """Refuse messages in another order than system, user, assistant, user."""
    talk = list(body["messages"])
    while talk and talk[0]["role"] == "system":
        talk.pop(0)
    for message in talk:
        if message["role"] not in ("user", "assistant") or has_calls(message):
            raise _refused("messages with tools are not supported")
        if not message["content"]:
            raise _refused("message content must not be empty")
    expected = [("user", "assistant")[index % 2] for index in range(len(talk))]
    if [message["role"] for message in talk] != expected:
        raise _refused(
            "After the (optional) system message(s), user and assistant roles should be alternating."
        )
    if not talk or talk[-1]["role"] != "user":
        raise _refused("Last message must have role `user`.")


def _refused(message: str) -> StrictRefusalError:
    return StrictRefusalError(400, openai_error(message))
