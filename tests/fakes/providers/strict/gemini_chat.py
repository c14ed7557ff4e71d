"""Gemini by the OpenAI protocol: unknown members of messages, and thought signatures of calls."""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

import orjson

from tests.fakes.providers.strict.base import Body, StrictRefusalError
from tests.fakes.providers.strict.histories import CALL_MEMBERS, PLAIN_MEMBERS, only_members

SKIPPED = "skip_thought_signature_validator"
"""The documented word for calls of other models."""


def sign(call: Mapping[str, Any]) -> str:
    """The signature of a call, whose arguments are values; any change of the call or of it shows."""
    function = call["function"]
    arguments = orjson.dumps(orjson.loads(function["arguments"]), option=orjson.OPT_SORT_KEYS)
    return hmac.new(b"gemini", function["name"].encode() + b":" + arguments, hashlib.sha256).hexdigest()


def signed_call(call: Mapping[str, Any]) -> dict[str, Any]:
    """A call as the original answers it."""
    return {**call, "extra_content": {"google": {"thought_signature": sign(call)}}}


def signatures(body: Body) -> None:
    """Refuse a message whose first call has no signature of this model."""
    for index, message in enumerate(body["messages"]):
        for call in (message.get("tool_calls") or ())[:1]:
            google = (call.get("extra_content") or {}).get("google") or {}
            if google.get("thought_signature") not in (sign(call), SKIPPED):
                name = call["function"]["name"]
                raise _refused(
                    "Function call is missing a thought_signature in functionCall parts. This is required "
                    f"for tools to work correctly. Function call `{name}`, position {index}."
                )


members = only_members(
    PLAIN_MEMBERS | {"extra_content"},
    lambda index, name: _refused(
        f"Invalid JSON payload received. Unknown name \"{name}\" at 'messages[{index}]': Cannot find field."
    ),
    CALL_MEMBERS | {"extra_content"},
)
"""Refuse a member that the path does not know."""


def _refused(message: str) -> StrictRefusalError:
    return StrictRefusalError(
        400, [{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}]
    )
