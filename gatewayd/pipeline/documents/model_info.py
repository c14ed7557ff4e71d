"""Renders models for listings and plugins, with their records; pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatewayd.catalog.access_grants import render_grant
from gatewayd.catalog.model_facts import facts_of
from gatewayd.catalog.records import Model, ModelRecord
from gatewayd.completions.json_access import as_mapping, as_sequence

PUBLIC_RECORD_FIELDS: Final = ("id", "name", "is_active", "updated_at", "created_at")
"""Members of a record for every user of its model.

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
"""Members of a record's `meta` for every user of its model: what a client displays and offers.

The others are for administrators: documents, tools, filters and actions, which the gateway adds to requests,
and unknown members.
"""

PUBLIC_DETAIL_FIELDS: Final = ("preset", "pipe", "has_user_valves")
"""Members of a custom model's details, besides `openai`, for every user of the model."""

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
"""Provider data about the base of a custom model for every user; none of it names the base."""


def describe_model(model: Model, record: ModelRecord | None) -> dict[str, Any]:
    """Return a new element of the model list; `info` is the whole record."""
    return _element(model, model.detail, record, None if record is None else render_record(record))


def render_model(model: Model, record: ModelRecord | None, *, is_whole: bool) -> dict[str, Any]:
    """Return an element of the model list; administrators get all of it.

    Other users do not get the prompt or the base of the model.
    """
    if is_whole:
        return describe_model(model, record)
    return _element(model, _public_detail(model), record, None if record is None else _public_record(record))


def render_record(record: ModelRecord) -> dict[str, Any]:
    """Render a model record in the format of Open WebUI."""
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
    """Return the ids in a list of a record's `meta`, such as `filterIds`, in order."""
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
        **facts_of(model.detail),
        **detail,
    }
    if record is not None:
        described["name"] = record.name or model.name
        described["info"] = info
    return described


def _public_record(record: ModelRecord) -> dict[str, Any]:
    """Return the part of a record for every user of its model."""
    meta = {name: value for name, value in as_mapping(record.meta).items() if name in PUBLIC_META_FIELDS}
    return {**{name: getattr(record, name) for name in PUBLIC_RECORD_FIELDS}, "meta": meta}


def _public_detail(model: Model) -> Mapping[str, Any]:
    """Return the details of a model for every user, without data that reveal the base of a custom model."""
    if not model.detail.get("preset"):
        return model.detail
    kept = {name: model.detail[name] for name in PUBLIC_DETAIL_FIELDS if name in model.detail}
    provider_data = as_mapping(model.detail.get("openai"))
    sizes = {name: value for name, value in provider_data.items() if name in PUBLIC_PROVIDER_FIELDS}
    return {**kept, "openai": sizes} if sizes else kept
