"""Mistral: its own records of messages, its validators for old and new models, and the order of its API."""

from typing import Any

from mistral_common.exceptions import MistralCommonException
from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.protocol.instruct.validator import ValidationMode, get_validator
from mistral_common.tokens.tokenizers.base import TokenizerVersion
from pydantic import ValidationError

from tests.fakes.providers.strict.base import Body, Check, StrictRefusalError

OLD, NEW = TokenizerVersion.v3, TokenizerVersion.v13


def messages(version: TokenizerVersion) -> Check:
    """Refuse messages that the validator for a version of the tokenizer refuses."""
    validator = get_validator(version, ValidationMode.serving)

    def check(body: Body) -> None:
        asked = {"model": body["model"], "messages": [_as_record(message) for message in body["messages"]]}
        try:
            validator.validate_request(ChatCompletionRequest.model_validate(asked))
        except ValidationError as error:
            detail = [{"type": each["type"], "loc": ["body", *each["loc"]]} for each in error.errors()]
            raise StrictRefusalError(422, {"object": "error", "detail": detail}) from error
        except MistralCommonException as error:
            raise _refused(str(error)) from error
        _order(body)

    return check


def _order(body: Body) -> None:
    """Refuse what the API refuses, but not the validator of each version."""
    before = None
    for message in body["messages"]:
        role = message["role"]
        if (before, role) == ("tool", "user"):
            raise _refused("Unexpected role 'user' after role 'tool'")
        if role == "system" and before not in (None, "system"):
            raise _refused(f"Unexpected role 'system' after role '{before}'")
        before = role


def _as_record(message: Body) -> Body:
    """The API has thinking as a list of texts, the record as one text."""
    content: Any = message.get("content")
    if isinstance(content, list):
        content = [
            {**part, "thinking": "".join(text["text"] for text in part["thinking"])}
            if part.get("type") == "thinking"
            else part
            for part in content
        ]
    return {**message, "content": content}


def _refused(message: str) -> StrictRefusalError:
    body = {"object": "error", "message": message, "type": "invalid_request_message_order", "code": "3230"}
    return StrictRefusalError(400, body)
