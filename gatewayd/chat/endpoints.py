"""What the requests of every endpoint have in common."""

from collections.abc import Mapping
from typing import Any

from gatewayd.accounts.records import Actor
from gatewayd.catalog.failover import LACKING
from gatewayd.catalog.interfaces import CallContext
from gatewayd.completions.foreign import text
from gatewayd.errors import GatewayError, Kind, invalid


def model_of(value: Mapping[str, Any]) -> str:
    """Return the id of the model that a request names; invalid_request when it names none."""
    model = value.get("model")
    if not isinstance(model, str) or not model:
        raise invalid("cannot accept model: expected the id of a model as text", param="model")
    return model


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
        chat_id=text(chat_id),
    )


def endpoint_not_found(endpoint: str, model_id: str, reason: str) -> GatewayError:
    """Return the error for a model whose source does not have the endpoint, for example `/responses`."""
    return GatewayError(
        Kind.NOT_FOUND,
        f"cannot use {endpoint} with model {model_id!r}: {reason}",
        param="model",
        code=LACKING,
    )
