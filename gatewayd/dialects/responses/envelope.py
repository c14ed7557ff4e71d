"""The objects of the Responses protocol: responses, their ids, usage, and errors; pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatewayd.completions.json_access import as_count, as_mapping
from gatewayd.completions.records import Body
from gatewayd.completions.refusal_reasons import RefusalReason, reason_of, told_code
from gatewayd.dialects.token_estimate import length_tokens
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ids import NewId

RESPONSE_PREFIX: Final = "resp_"

ITEM_PREFIXES: Final = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "compaction": "cmp",
}
_OTHER_PREFIX: Final = "item"

_RESPONSE_ID: Final = re.compile(r"resp_([0-9a-f]{32})")
_ITEM_ID: Final = re.compile(r"[a-z]{2,4}_([0-9a-f]{32})_(?:in)?[0-9]{1,6}")

INCOMPLETE_REASONS: Final = {
    "length": "max_output_tokens",
    "max_tokens": "max_output_tokens",
    "content_filter": "content_filter",
    "refusal": "content_filter",
}
"""Reason of an incomplete response for each finish reason; all others complete it."""

_KIND_CODES: Final = {
    ErrorKind.RATE_LIMITED: "rate_limit_exceeded",
    ErrorKind.UPSTREAM_UNREACHABLE: "server_is_overloaded",
    ErrorKind.UNAVAILABLE: "server_is_overloaded",
    ErrorKind.INVALID_REQUEST: "invalid_prompt",
    ErrorKind.TOO_LARGE: "invalid_prompt",
    ErrorKind.FORBIDDEN: "invalid_prompt",
    ErrorKind.NOT_FOUND: "invalid_prompt",
    ErrorKind.NOT_CONFIGURED: "invalid_prompt",
}
"""Code of each kind of failure; all others are server_error, after which clients try again."""


def new_response_id(new_id: NewId) -> str:
    """Return a new id of a response."""
    return RESPONSE_PREFIX + new_id().replace("-", "")


def item_id(response_id: str, kind: str, index: int) -> str:
    """Return the id of an output item, which tells its response."""
    prefix = ITEM_PREFIXES.get(kind, _OTHER_PREFIX)
    return f"{prefix}_{response_id.removeprefix(RESPONSE_PREFIX)}_{index}"


def input_item_id(response_id: str, kind: str, index: int) -> str:
    """Return the id of an input item that has none."""
    prefix = ITEM_PREFIXES.get(kind, _OTHER_PREFIX)
    return f"{prefix}_{response_id.removeprefix(RESPONSE_PREFIX)}_in{index}"


def is_own_response_id(response_id: str) -> bool:
    """Return True if an id has the form of the gateway's own."""
    return _RESPONSE_ID.fullmatch(response_id) is not None


def response_id_of(of_item: object) -> str | None:
    """Return the id of the response that an item belongs to; None for an item of a provider."""
    found = _ITEM_ID.fullmatch(of_item) if isinstance(of_item, str) else None
    return None if found is None else RESPONSE_PREFIX + found.group(1)


def response_object(
    response_id: str, created_at: int, model: str, echo: Mapping[str, Any], status: str = "in_progress"
) -> Body:
    """Return a response without output, which all its events repeat."""
    return {
        "id": response_id,
        "object": "response",
        "created_at": created_at,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": model,
        "output": [],
        "usage": None,
        "completed_at": None,
        **echo,
    }


def render_usage(usage: Mapping[str, Any], input_tokens: int, characters: int) -> Body:
    """Return OpenAI chat usage in the terms of this protocol, with all details.

    Missing counts are estimated: the input by `input_tokens`, the output by the answer's `characters`.
    """
    details = as_mapping(usage.get("prompt_tokens_details"))
    read = (
        as_count(details.get("cached_tokens"))
        or as_count(usage.get("cache_read_input_tokens"))
        or as_count(usage.get("prompt_cache_hit_tokens"))
    )
    written = as_count(details.get("cache_write_tokens")) or as_count(
        usage.get("cache_creation_input_tokens")
    )
    given = as_count(usage.get("prompt_tokens")) or as_count(usage.get("input_tokens")) or input_tokens
    answer = (
        as_count(usage.get("completion_tokens"))
        or as_count(usage.get("output_tokens"))
        or length_tokens(characters)
    )
    thoughts = as_count(as_mapping(usage.get("completion_tokens_details")).get("reasoning_tokens"))
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
        "output_tokens": answer,
        "output_tokens_details": {"reasoning_tokens": thoughts},
        "total_tokens": given + answer,
    }


def failure_of(error: GatewayError) -> Body:
    """Return the `error` of a failed response; clients decide by its code whether to try again."""
    given = error.provider_code or error.code
    reason = reason_of(given)
    if reason is RefusalReason.NO_CREDIT:
        code = reason.value
    elif reason is None or reason is RefusalReason.KEY:
        code = _KIND_CODES.get(error.kind, "server_error")
    else:
        code = told_code(reason, given)
    message = error.message
    if error.retry_after is not None and code == RefusalReason.RATE_LIMITED:
        message = f"{message} (try again in {error.retry_after}s)"
    return {"code": code, "message": message}


def list_object(data: Sequence[Body], *, has_more: bool) -> Body:
    """Return a page of items."""
    return {
        "object": "list",
        "data": list(data),
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
        "has_more": has_more,
    }
