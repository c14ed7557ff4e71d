"""Schemas of models and model records."""

from typing import Any

from gatewayd.http.schemas import (
    ANYTHING,
    BOOLEAN,
    INTEGER,
    OBJECT,
    SECONDS,
    TEXT,
    TEXT_OR_NULL,
    choice,
    either,
    extended,
    listed,
    record,
)


def grant() -> dict[str, Any]:
    """Return the schema of a grant of an access list."""
    return record(
        principal_type=choice("user", "group"), principal_id=TEXT, permission=choice("read", "write")
    )


def model_record() -> dict[str, Any]:
    """Return the schema of a model record."""
    return record(
        id=TEXT,
        user_id=TEXT,
        base_model_id=TEXT_OR_NULL,
        name=TEXT,
        params=OBJECT,
        meta=OBJECT,
        access_grants=listed(grant),
        is_active=BOOLEAN,
        updated_at=SECONDS,
        created_at=SECONDS,
    )


def shown_record() -> dict[str, Any]:
    """Return the schema of a model record with `write_access` of the caller."""
    return extended(model_record, write_access=BOOLEAN)


def model_records() -> dict[str, Any]:
    """Return the schema of all model records."""
    return record(items=listed(model_record), total=INTEGER)


def model_info() -> dict[str, Any]:
    """Return the schema of the part of a model record that users of the model may read."""
    return record(id=TEXT, name=TEXT, is_active=BOOLEAN, updated_at=SECONDS, created_at=SECONDS, meta=OBJECT)


def model_button() -> dict[str, Any]:
    """Return the schema of an action or a switchable filter of a model."""
    return record({"has_user_valves": BOOLEAN}, id=TEXT, name=TEXT, description=TEXT, icon=TEXT_OR_NULL)


def model() -> dict[str, Any]:
    """Return the schema of a model; `info` is its record, whole for administrators.

    The member named after the source has the fields of the provider. Clients of the messages dialect also get
    `type`, `display_name` and `created_at`.
    """
    known = record(
        {"info": either(model_record, model_info), "display_name": TEXT, "created_at": TEXT},
        id=TEXT,
        name=TEXT,
        object={"const": "model"},
        created=INTEGER,
        owned_by=TEXT,
        connection_type=TEXT,
        tags=listed(ANYTHING),
        actions=listed(model_button),
        filters=listed(model_button),
    )
    return {**known, "additionalProperties": True}


def models() -> dict[str, Any]:
    """Return the schema of a list of models; clients of the messages dialect get it in pages."""
    paging = {"has_more": BOOLEAN, "first_id": TEXT_OR_NULL, "last_id": TEXT_OR_NULL}
    return record(paging, object={"const": "list"}, data=listed(model))
