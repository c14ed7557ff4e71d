"""Schemas of the providers that administrators manage, and of the status of the gateway."""

from typing import Any

from gatewayd.http.schemas import (
    BOOLEAN,
    INTEGER,
    INTEGER_OR_NULL,
    NUMBER,
    OBJECT_OR_NULL,
    SECONDS,
    TEXT,
    TEXT_OR_NULL,
    choice,
    listed,
    mapped,
    record,
)


def provider_options() -> dict[str, Any]:
    """Return the schema of the options of one provider."""
    return record(
        {"key": TEXT},
        id=TEXT,
        name=TEXT,
        enable=BOOLEAN,
        prefix_id=TEXT,
        prefix=TEXT,
        model_ids=listed(TEXT),
        connection_type=TEXT,
        provider=TEXT,
        auth_type=TEXT,
        origin=choice("settings", "database"),
        locked_by=TEXT_OR_NULL,
        models=INTEGER,
        problem=TEXT_OR_NULL,
        keys=listed(TEXT),
        headers={"type": "object", "additionalProperties": TEXT},
        api_version=TEXT,
        upstream=TEXT,
        families={"type": "object", "additionalProperties": TEXT},
    )


def openai_form() -> dict[str, Any]:
    """Return the schema of the hosted providers."""
    return record(
        ENABLE_OPENAI_API=BOOLEAN,
        OPENAI_API_BASE_URLS=listed(TEXT),
        OPENAI_API_KEYS=listed(TEXT),
        OPENAI_API_CONFIGS=mapped(provider_options),
        revision=INTEGER,
    )


def ollama_form() -> dict[str, Any]:
    """Return the schema of the runtimes."""
    return record(
        ENABLE_OLLAMA_API=BOOLEAN,
        OLLAMA_BASE_URLS=listed(TEXT),
        OLLAMA_API_CONFIGS=mapped(provider_options),
        revision=INTEGER,
    )


def provider_offer() -> dict[str, Any]:
    """Return the schema of the result of a test of a provider."""
    model = record(id=TEXT, object=TEXT, owned_by=TEXT)
    return record({"version": TEXT}, object=choice("list"), data=listed(model))


def gateway_status() -> dict[str, Any]:
    """Return the schema of the status of the gateway."""
    number_or_null = {"type": ["number", "null"]}
    return record(
        status=choice("pass", "warn", "fail"),
        version=TEXT,
        started_at=SECONDS,
        uptime_seconds=INTEGER,
        database=BOOLEAN,
        database_problem=TEXT_OR_NULL,
        degraded=listed(TEXT),
        sources=listed(record(name=TEXT, models=INTEGER, problem=TEXT_OR_NULL)),
        extraction_sandbox=TEXT_OR_NULL,
        vector_index=TEXT_OR_NULL,
        vector_recall=number_or_null,
        vector_ef_search=INTEGER_OR_NULL,
        vector_cache=OBJECT_OR_NULL,
        stalls=INTEGER,
        longest_stall_ms=NUMBER,
    )


def scim_request() -> dict[str, Any]:
    """Return the schema of a request of an identity provider; null for none."""
    known = record(
        at=SECONDS, method=TEXT, path=TEXT, status=INTEGER, address=TEXT, request_id=TEXT, detail=TEXT
    )
    return {**known, "type": ["object", "null"]}


def scim_status() -> dict[str, Any]:
    """Return the schema of the status of provisioning."""
    return record(
        enabled=BOOLEAN,
        provider=TEXT,
        token_origin=TEXT,
        token_fingerprints=listed(TEXT),
        token_written_at=INTEGER_OR_NULL,
        token_stale=BOOLEAN,
        users=INTEGER,
        active_users=INTEGER,
        provisioned_users=INTEGER,
        groups=INTEGER,
        provisioned_groups=INTEGER,
        memberships=INTEGER,
        last_request=scim_request,
        last_refused=scim_request,
        requests=listed(scim_request),
    )
