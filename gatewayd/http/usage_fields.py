"""Questions for usage in query parameters, and the fields of its answers."""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any, Final

from gatewayd.errors import GatewayError, invalid
from gatewayd.metering.usage_records import UsageDimension, UsageLine, UsageQuery

NANO_DOLLARS: Final = 1_000_000_000
MAX_LINES: Final = 1_000_000
DEFAULT_LINES: Final = 1000
DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
MAX_REF_CHARACTERS: Final = 2048


def read_query(query: Mapping[str, str], *, most: int = MAX_LINES, **ids: str | None) -> UsageQuery:
    """Return the question of `by`, `since`, `until`, `model`, `provider` and `limit`; `ids` are known ones.

    Raises invalid_request naming the parameter.
    """
    words = list(dict.fromkeys(query.get("by", UsageDimension.MODEL).split(",")))
    known = {each.value for each in UsageDimension}
    if not known.issuperset(words):
        raise _bad("by", f"expected some of {', '.join(UsageDimension)}, separated by commas")
    limit = query.get("limit", str(min(DEFAULT_LINES, most)))
    if not re.fullmatch(r"[1-9][0-9]{0,6}", limit, re.ASCII) or int(limit) > most:
        raise _bad("limit", f"expected a whole number from 1 to {most}")
    for name in ("model", "provider"):
        if len(query.get(name, "")) > MAX_REF_CHARACTERS:
            raise _bad(name, f"it has over {MAX_REF_CHARACTERS} characters")
    return UsageQuery(
        tuple(map(UsageDimension, words)),
        since=_day(query, "since"),
        until=_day(query, "until"),
        model=query.get("model") or None,
        provider=query.get("provider") or None,
        limit=int(limit),
        **ids,
    )


def shown_line(query: UsageQuery, line: UsageLine) -> dict[str, Any]:
    """Return the fields of a line: ids and names of what it is summed up by, and the sums."""
    fields: dict[str, Any] = {}
    for dimension, own_id, name in zip(query.by, line.ids, line.names, strict=True):
        if dimension in (UsageDimension.USER, UsageDimension.GROUP, UsageDimension.KEY):
            fields[f"{dimension}_id"] = own_id
        fields[dimension.value] = name
    sums = line.sums
    is_known = sums.cost > 0 or not sums.unpriced
    return {
        **fields,
        "requests": sums.requests,
        "failures": sums.failures,
        "prompt_tokens": sums.prompt,
        "cached_tokens": sums.cached,
        "cache_written_tokens": sums.cache_written,
        "completion_tokens": sums.completion,
        "reasoning_tokens": sums.reasoning,
        "total_tokens": sums.prompt + sums.completion,
        "cost": sums.cost / NANO_DOLLARS if is_known else None,
        "unpriced": sums.unpriced,
        "estimated": sums.estimated,
        "seconds": sums.milliseconds / 1000,
        "first_seconds": sums.first_milliseconds / 1000 / sums.timed if sums.timed else None,
    }


def _day(query: Mapping[str, str], name: str) -> str:
    text = query.get(name, "")
    if not text:
        return ""
    try:
        if not DAY.fullmatch(text):
            raise ValueError
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise _bad(name, "expected a day such as 2026-11-24") from None


def _bad(name: str, reason: str) -> GatewayError:
    return invalid(f"cannot accept {name}: {reason}", param=name)
