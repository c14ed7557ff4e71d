"""Tests for gatewayd.http.public.chats.bodies."""

import pytest
from pydantic import BaseModel, ValidationError

from gatewayd.http.public.chats.bodies import (
    ChatBody,
    ImportBody,
    MessageBody,
    NewChatBody,
    TagBody,
    TaggedBody,
)


@pytest.mark.parametrize("model", [ChatBody, NewChatBody, ImportBody, MessageBody, TagBody, TaggedBody])
def test_what_must_be_there(model: type[BaseModel]) -> None:
    with pytest.raises(ValidationError):
        model.model_validate({})


def test_a_message_keeps_every_member() -> None:
    sent = {"content": "x", "role": "user", "files": [1]}
    assert MessageBody.model_validate(sent).model_dump(exclude_unset=True) == sent


def test_pages_of_tags() -> None:
    read = TaggedBody.model_validate({"name": "x"})
    assert (read.skip, read.limit) == (0, 50)
