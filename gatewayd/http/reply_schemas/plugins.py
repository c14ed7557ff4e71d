"""Schemas of functions, tools, valves and tool servers."""

from typing import Any

from gatewayd.http.reply_schemas.documents import owner
from gatewayd.http.reply_schemas.models import grant
from gatewayd.http.schemas import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    OBJECT,
    OBJECT_OR_NULL,
    SECONDS,
    TEXT,
    TEXT_OR_NULL,
    TRUE,
    Schema,
    choice,
    either,
    extended,
    listed,
    mapped,
    record,
)


def plugin_problem() -> dict[str, Any]:
    """Return the schema of the last problem of a plugin; null for none."""
    known = record(at=INTEGER, doing=TEXT, message=TEXT)
    return {**known, "type": ["object", "null"]}


def function() -> dict[str, Any]:
    """Return the schema of a function; `content` is its source, in replies that include it."""
    meta = record(
        {"toggle": TRUE},
        description=TEXT,
        manifest=mapped(TEXT),
    )
    return record(
        _more(valves=OBJECT_OR_NULL),
        id=TEXT,
        user_id=TEXT,
        name=TEXT,
        meta={**meta, "additionalProperties": True},
        updated_at=SECONDS,
        created_at=SECONDS,
        type=choice("pipe", "filter", "action"),
        is_active=BOOLEAN,
        is_global=BOOLEAN,
        origin=TEXT,
        loaded=BOOLEAN,
    )


def owned_function() -> dict[str, Any]:
    """Return the schema of a function with its owner."""
    return extended(function, user=owner)


def tool() -> dict[str, Any]:
    """Return the schema of a tool; `content` is its source, in replies that include it."""
    meta = record(description=TEXT, manifest=mapped(TEXT), has_user_valves=BOOLEAN)
    return record(
        _more(),
        id=TEXT,
        user_id=TEXT,
        name=TEXT,
        meta={**meta, "additionalProperties": True},
        updated_at=SECONDS,
        created_at=SECONDS,
        specs=listed(OBJECT),
        access_grants=listed(grant),
        origin=TEXT,
        loaded=BOOLEAN,
        is_active=BOOLEAN,
        has_user_valves=BOOLEAN,
        write_access=BOOLEAN,
    )


def owned_tool() -> dict[str, Any]:
    """Return the schema of a tool with its owner."""
    return extended(tool, user=owner)


def listed_server() -> dict[str, Any]:
    """Return the schema of a tool server in the list of tools."""
    return record(
        id=TEXT,
        user_id=TEXT,
        name=TEXT,
        meta=record(description=TEXT),
        access_grants=listed(grant),
        updated_at=SECONDS,
        created_at=SECONDS,
        has_user_valves={"const": False},
        write_access={"const": False},
    )


def tools() -> dict[str, Any]:
    """Return the schema of the tools and tool servers of the caller."""
    return dict(listed(either(tool, listed_server)))


def tool_connection() -> dict[str, Any]:
    """Return the schema of a tool server for administrators, with masked secrets."""
    config = record(
        {"timeout": NUMBER},
        enable=BOOLEAN,
        access_grants=listed(grant),
        function_name_filter_list=listed(TEXT),
    )
    return record(
        url=TEXT,
        path=TEXT,
        type=choice("openapi", "mcp"),
        auth_type=choice("bearer", "none"),
        key=TEXT,
        headers=mapped(TEXT),
        config=config,
        info=record(id=TEXT, name=TEXT, description=TEXT),
        spec_type=choice("url", "json"),
        spec=TEXT,
        origin=TEXT,
    )


def tool_connections() -> dict[str, Any]:
    """Return the schema of all tool servers, and of the problems of those of the settings."""
    return record(TOOL_SERVER_CONNECTIONS=listed(tool_connection), problems=listed(TEXT))


def server_offer() -> dict[str, Any]:
    """Return the schema of the result of a tool server test."""
    return record(status=TRUE, info=record(title=TEXT, version=TEXT), specs=listed(OBJECT))


def _more(**others: Schema) -> dict[str, Schema]:
    """Return the members of a plugin for actors with write access, and its source."""
    return {
        "content": TEXT,
        "revision": TEXT,
        "path": TEXT_OR_NULL,
        "error": plugin_problem,
        "missing": listed(TEXT),
        "left_behind": INTEGER,
        **others,
    }
