"""A model as listings and plugins show it (2.4), with what an administrator keeps about it; pure."""

from collections.abc import Sequence
from typing import Any

from gatewayd.catalog.grants import show_grant
from gatewayd.catalog.records import Model, ModelRecord
from gatewayd.completions.foreign import sequence


def describe_model(model: Model, record: ModelRecord | None) -> dict[str, Any]:
    """Return an element of the model list, made anew for each call; `info` is the whole record."""
    described: dict[str, Any] = {
        "id": model.id,
        "name": model.name,
        "object": "model",
        "created": model.created,
        "owned_by": model.owned_by,
        "connection_type": model.connection_type,
        "tags": [],
        "actions": [],
        "filters": [],
        **model.detail,
    }
    if record is not None:
        described["name"] = record.name or model.name
        described["info"] = render_record(record)
    return described


def show_model(model: Model, record: ModelRecord | None, *, is_whole: bool) -> dict[str, Any]:
    """Return an element of the model list; how the model is prompted is for those who keep it."""
    described = describe_model(model, record)
    if "info" in described and not is_whole:
        del described["info"]["params"]
    return described


def render_record(record: ModelRecord) -> dict[str, Any]:
    """Return a record in the shape of 1.5."""
    return {
        "id": record.id,
        "user_id": record.user_id,
        "base_model_id": record.base_model_id,
        "name": record.name,
        "params": record.params,
        "meta": record.meta,
        "access_grants": [show_grant(grant) for grant in record.grants],
        "is_active": record.is_active,
        "updated_at": record.updated_at,
        "created_at": record.created_at,
    }


def assigned(record: ModelRecord | None, name: str) -> Sequence[str]:
    """Return the ids in a list of a record's `meta`, for example `filterIds`, in their order."""
    if record is None or not record.meta:
        return []
    return [item for item in sequence(record.meta.get(name)) if isinstance(item, str)]
