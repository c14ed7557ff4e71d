"""What the requests of every endpoint have in common."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatewayd.accounts.records import Actor
from gatewayd.catalog.failover import MISSING_ENDPOINT_CODE, Candidate
from gatewayd.catalog.interfaces import CallContext, ModelSource
from gatewayd.completions.json_access import as_text
from gatewayd.errors import ErrorKind, GatewayError, invalid, not_found

_ACTED_UPON: Final = frozenset(
    {
        *("model", "messages", "prompt", "suffix", "input", "instructions", "system"),
        *("previous_response_id", "conversation", "tools"),
    }
)
_USUAL: Final = frozenset(
    {
        *("model", "messages", "prompt", "input", "tools"),
        *("stream", "stream_options", "temperature", "top_p", "max_tokens", "stop"),
    }
)
"""The fields that nearly all requests do with."""


def model_of(value: Mapping[str, Any]) -> str:
    """Return the id of the model that a request names; invalid_request when it names none."""
    model = value.get("model")
    if not isinstance(model, str) or not model:
        raise invalid("cannot accept model: expected the id of a model as text", param="model")
    return model


def check_names(value: Mapping[str, Any]) -> None:
    """Raise invalid_request for a field that some providers take for one that the gateway acts upon.

    They read names of fields whatever their case: a second `Model` would be the model that they ask.
    """
    if _USUAL.issuperset(value):
        return
    for name in value:
        if not (name.islower() and name.isascii()) and name.casefold() in _ACTED_UPON:
            meant = name.casefold()
            raise invalid(f"cannot accept {name}: the field {meant} is written in lower case", param=meant)


def select_source(
    candidates: Sequence[Candidate[ModelSource]], source: str
) -> Sequence[Candidate[ModelSource]]:
    """Return the candidates of one source; not_found when the model is not there."""
    found = [candidate for candidate in candidates if candidate.source.name == source]
    if not found:
        raise not_found("model", candidates[0].model.id)
    return found


def context_of(
    actor: Actor,
    request_id: str,
    *,
    is_converted: bool = False,
    scope: object | None = None,
    chat_id: object = "",
) -> CallContext:
    """Return what a source may know about a call; `chat_id` is as the request has it."""
    user = actor.user
    return CallContext(
        request_id=request_id,
        user_id=user.id,
        user_name=user.name,
        user_email=user.email,
        user_role=user.role.value,
        is_converted=is_converted,
        scope=scope,
        chat_id=as_text(chat_id),
    )


def endpoint_not_found(endpoint: str, model_id: str, reason: str) -> GatewayError:
    """Return the error for a model whose source does not have the endpoint, for example `/responses`."""
    return GatewayError(
        ErrorKind.NOT_FOUND,
        f"cannot use {endpoint} with model {model_id!r}: {reason}",
        param="model",
        code=MISSING_ENDPOINT_CODE,
    )
