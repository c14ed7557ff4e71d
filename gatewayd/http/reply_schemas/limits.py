"""Schemas of limits of model calls."""

from typing import Any

from gatewayd.http.schemas import INTEGER, INTEGER_OR_NULL, TEXT, choice, listed, record


def limit() -> dict[str, Any]:
    """Return the schema of a limit; `uses` is only where its use is asked for."""
    use = record(what=TEXT, used=TEXT, reserved=TEXT, left=TEXT, resets_at=INTEGER_OR_NULL)
    return record(
        {"uses": listed(use)},
        id=TEXT,
        subject=choice("key", "user", "group", "member", "default", "total"),
        subject_id=TEXT,
        name=TEXT,
        model=TEXT,
        requests_per_minute=INTEGER_OR_NULL,
        tokens_per_minute=INTEGER_OR_NULL,
        parallel=INTEGER_OR_NULL,
        budgets=listed(TEXT),
        warn_percent=INTEGER_OR_NULL,
        storage_bytes=INTEGER_OR_NULL,
        created_at=INTEGER,
        updated_at=INTEGER,
    )


def limit_list() -> dict[str, Any]:
    """Return the schema of limits."""
    return record(limits=listed(limit()))
