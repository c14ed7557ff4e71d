"""A model as listings and plugins show it (2.4), with what an administrator keeps about it; pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatewayd.catalog.access_grants import render_grant
from gatewayd.catalog.records import Model, ModelRecord
from gatewayd.completions.json_access import as_mapping, as_sequence

PUBLIC_RECORD_FIELDS: Final = ("id", "name", "is_active", "updated_at", "created_at")
"""Members of a record that everybody reads who may use its model.

The others are for administrators: owner, base model, parameters with the system prompt, access list.
"""

PUBLIC_META_FIELDS: Final = frozenset(
    {
        "builtinTools",
        "capabilities",
        "defaultFeatureIds",
        "defaultFilterIds",
        "description",
        "hidden",
        "profile_image_url",
        "suggestion_prompts",
        "tags",
        "tts",
    }
)
"""Members of a record's `meta` that everybody reads who may use its model: what a client shows and offers.

The others are for administrators: documents, tools, filters and actions, which the gateway itself adds to
requests, and members that it does not know.
"""

PUBLIC_DETAIL_FIELDS: Final = ("preset", "pipe", "has_user_valves")
"""Members beside `openai` that tell everybody about a model on top of another one."""

PUBLIC_PROVIDER_FIELDS: Final = frozenset(
    {
        "capabilities",
        "context_length",
        "context_window",
        "lifecycle",
        "max_input_tokens",
        "max_model_len",
        "max_output_tokens",
        "max_tokens",
    }
)
"""What everybody reads of the provider's words about the base of a model: none of it names the base."""


def describe_model(model: Model, record: ModelRecord | None) -> dict[str, Any]:
    """Return an element of the model list, made anew for each call; `info` is the whole record."""
    return _element(model, model.detail, record, None if record is None else render_record(record))


def render_model(model: Model, record: ModelRecord | None, *, is_whole: bool) -> dict[str, Any]:
    """Return an element of the model list, whole for administrators.

    Others get what a client needs: not how the model is prompted, nor what it stands on.
    """
    if is_whole:
        return describe_model(model, record)
    return _element(model, _shown_detail(model), record, None if record is None else _shown_record(record))


def render_record(record: ModelRecord) -> dict[str, Any]:
    """Return a record in the shape of 1.5."""
    return {
        "id": record.id,
        "user_id": record.user_id,
        "base_model_id": record.base_model_id,
        "name": record.name,
        "params": record.params,
        "meta": record.meta,
        "access_grants": [render_grant(grant) for grant in record.grants],
        "is_active": record.is_active,
        "updated_at": record.updated_at,
        "created_at": record.created_at,
    }


def assigned_ids(record: ModelRecord | None, name: str) -> Sequence[str]:
    """Return the ids in a list of a record's `meta`, for example `filterIds`, in their order."""
    if record is None or not record.meta:
        return []
    return [item for item in as_sequence(record.meta.get(name)) if isinstance(item, str)]


def _element(
    model: Model, detail: Mapping[str, Any], record: ModelRecord | None, info: dict[str, Any] | None
) -> dict[str, Any]:
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
        **detail,
    }
    if record is not None:
        described["name"] = record.name or model.name
        described["info"] = info
    return described


def _shown_record(record: ModelRecord) -> dict[str, Any]:
    """Return what everybody reads of a record who may use its model."""
    meta = {name: value for name, value in as_mapping(record.meta).items() if name in PUBLIC_META_FIELDS}
    return {**{name: getattr(record, name) for name in PUBLIC_RECORD_FIELDS}, "meta": meta}


def _shown_detail(model: Model) -> Mapping[str, Any]:
    """Return what everybody may know of a model beside its name: its source's words, but for a base's."""
    if not model.detail.get("preset"):
        return model.detail
    kept = {name: model.detail[name] for name in PUBLIC_DETAIL_FIELDS if name in model.detail}
    told = as_mapping(model.detail.get("openai"))
    sizes = {name: value for name, value in told.items() if name in PUBLIC_PROVIDER_FIELDS}
    return {**kept, "openai": sizes} if sizes else kept
