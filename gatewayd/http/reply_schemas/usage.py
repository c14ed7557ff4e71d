"""Schemas of the usage of models."""

from typing import Any

from gatewayd.http.schemas import INTEGER, NUMBER, NUMBER_OR_NULL, TEXT, listed, record


def usage_report() -> dict[str, Any]:
    """Return the schema of a report; the ids and names are those that it is summed up by."""
    named = ("day", "user_id", "user", "group_id", "group", "key_id", "key", "model", "provider", "endpoint")
    counts = ("requests", "failures", "prompt_tokens", "cached_tokens", "cache_written_tokens")
    more = ("completion_tokens", "reasoning_tokens", "total_tokens", "unpriced", "estimated")
    line = record(
        dict.fromkeys(named, TEXT),
        **dict.fromkeys((*counts, *more), INTEGER),
        cost=NUMBER_OR_NULL,
        seconds=NUMBER,
        first_seconds=NUMBER_OR_NULL,
    )
    return record(usage=listed(line))
