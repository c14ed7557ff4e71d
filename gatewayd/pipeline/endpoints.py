"""Helpers for the requests of all endpoints: model names, field names, sources and call contexts."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatewayd.accounts.records import Actor
from gatewayd.catalog.failover import MISSING_ENDPOINT_CODE, UNSUPPORTED_ENDPOINT_CODE, Candidate
from gatewayd.catalog.interfaces import AnswerWatch, CallContext, ModelSource
from gatewayd.completions.json_access import as_text
from gatewayd.completions.refusal_reasons import RefusalReason, reason_of
from gatewayd.errors import NO_HEADERS, ErrorKind, GatewayError, invalid, not_found

_CHECKED_FIELDS: Final = frozenset(
    {
        *("model", "messages", "prompt", "suffix", "input", "instructions", "system"),
        *("previous_response_id", "conversation", "tools"),
    }
)
_COMMON_FIELDS: Final = frozenset(
    {
        *("model", "messages", "prompt", "input", "tools"),
        *("stream", "stream_options", "temperature", "top_p", "max_tokens", "stop"),
    }
)
"""The fields that most requests are limited to."""


def model_of(value: Mapping[str, Any]) -> str:
    """Return the model id of a request; raise invalid_request if there is none."""
    model = value.get("model")
    if not isinstance(model, str) or not model:
        raise invalid("cannot accept model: expected the id of a model as text", param="model")
    return model


def check_names(value: Mapping[str, Any]) -> None:
    """Raise invalid_request for a field whose name differs only in case from one that the gateway acts on.

    Some providers compare field names case-insensitively: `Model` would override the checked `model`.
    """
    if _COMMON_FIELDS.issuperset(value):
        return
    for name in value:
        if not (name.islower() and name.isascii()) and name.casefold() in _CHECKED_FIELDS:
            meant = name.casefold()
            raise invalid(
                f"cannot accept {name}: the field {meant} must be written in lower case", param=meant
            )


def select_source(
    candidates: Sequence[Candidate[ModelSource]], source: str
) -> Sequence[Candidate[ModelSource]]:
    """Return the candidates of one source; raise not_found if the source lacks the model."""
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
    client_headers: Mapping[str, str] = NO_HEADERS,
    watch: AnswerWatch | None = None,
) -> CallContext:
    """Return the facts of a call for its source; `chat_id` is taken from the request unchecked."""
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
        client_headers=client_headers,
        watch=watch,
    )


def endpoint_not_found(endpoint: str, model_id: str, reason: str) -> GatewayError:
    """Return the error for a model whose source lacks an endpoint, such as `/responses`."""
    return _lacking(endpoint, model_id, reason, MISSING_ENDPOINT_CODE)


def endpoint_not_supported(endpoint: str, model_id: str, reason: str) -> GatewayError:
    """Return the error for a model whose source lacks an endpoint of images, audio or documents."""
    return _lacking(endpoint, model_id, reason, UNSUPPORTED_ENDPOINT_CODE)


def _lacking(endpoint: str, model_id: str, reason: str, code: str) -> GatewayError:
    return GatewayError(
        ErrorKind.NOT_FOUND,
        f"cannot use {endpoint} with model {model_id!r}: {reason}",
        param="model",
        code=code,
    )


def lacks_endpoint(error: GatewayError) -> bool:
    """Return whether a source's 404 means that it lacks the endpoint, and not only the model."""
    is_model = reason_of(error.provider_code) is RefusalReason.UNKNOWN_MODEL
    return error.kind is ErrorKind.NOT_FOUND and not is_model
