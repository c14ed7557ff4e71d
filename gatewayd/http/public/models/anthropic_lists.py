"""Model lists in the messages dialect, for requests with the header `anthropic-version`."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from aiohttp import web

from gatewayd.errors import invalid
from gatewayd.http.routes import ANTHROPIC_VERSION

MAX_PAGE_SIZE: Final = 1000

MODEL_FIELDS: Final = ("capabilities", "lifecycle", "max_input_tokens", "max_tokens")
"""Fields of a model for such clients, present when the provider sends them."""


def is_wanted(request: web.Request) -> bool:
    """Return whether the caller expects the messages dialect."""
    return ANTHROPIC_VERSION in request.headers


def add_dialect_fields(listed: Mapping[str, Any]) -> dict[str, Any]:
    """Return an element of the model list with the additional fields of the dialect."""
    provided = listed.get("openai")
    known = (
        {name: provided[name] for name in MODEL_FIELDS if name in provided}
        if isinstance(provided, dict)
        else {}
    )
    sizes = {"max_input_tokens": "context_length", "max_tokens": "max_completion_tokens"}
    facts = {name: listed.get(general) for name, general in sizes.items()}
    created = datetime.fromtimestamp(listed["created"], UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        **listed,
        "lifecycle": "active",
        **{name: value for name, value in facts.items() if value is not None},
        **known,
        "type": "model",
        "display_name": listed["name"],
        "created_at": created,
    }


def aliased(models: Sequence[Mapping[str, Any]], alias_of: Callable[[str], str]) -> list[dict[str, Any]]:
    """Return the elements with the aliases of their models as ids."""
    return [{**model, "id": alias_of(model["id"])} for model in models]


def model_page(models: Sequence[Mapping[str, Any]], query: Mapping[str, str]) -> dict[str, Any]:
    """Return `{"data", "has_more", "first_id", "last_id"}`: all models, or the page of the query.

    `limit` (1 to 1000) is the page size, `after_id` the model before the page, `before_id` the model after
    it. `has_more` is whether more models follow in that direction. Raises invalid_request.
    """
    start, end = 0, len(models)
    limit = _limit(query)
    before = query.get("before_id")
    if query.get("after_id"):
        start = _place(models, query["after_id"], "after_id") + 1
    if before:
        end = _place(models, before, "before_id")
    has_more = limit is not None and end - start > limit
    if limit is not None and has_more:
        start, end = (end - limit, end) if before else (start, start + limit)
    data = [add_dialect_fields(model) for model in models[start:end]]
    ends = {"first_id": data[0]["id"], "last_id": data[-1]["id"]} if data else {}
    return {"object": "list", "data": data, "has_more": has_more, "first_id": None, "last_id": None, **ends}


def _limit(query: Mapping[str, str]) -> int | None:
    given = query.get("limit")
    if given is None:
        return None
    if not (given.isascii() and given.isdecimal() and len(given) < 9 and 1 <= int(given) <= MAX_PAGE_SIZE):
        raise invalid(
            f"cannot accept limit: expected a whole number from 1 to {MAX_PAGE_SIZE}", param="limit"
        )
    return int(given)


def _place(models: Sequence[Mapping[str, Any]], model_id: str, name: str) -> int:
    for index, model in enumerate(models):
        if model["id"] == model_id:
            return index
    raise invalid(f"cannot accept {name}: there is no model with this id", param=name)
