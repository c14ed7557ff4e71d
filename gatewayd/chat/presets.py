"""What an administrator's record of a model adds to the requests for it (1.5): prompt, parameters, documents.

Parameters of the record win over those of the request (peer-compatible), as the record says how its model is
to be run.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from gatewayd import ids
from gatewayd.accounts.records import Actor
from gatewayd.catalog.records import ModelRecord
from gatewayd.chat.questions import before_system
from gatewayd.chat.records import ChatRequest

OWN_PARAMS: Final = frozenset(
    {
        "stream_response",
        "stream_delta_chunk_size",
        "function_calling",
        "reasoning_tags",
        "compact_token_threshold",
        "system",
        "note_id",
    }
)
"""Parameters that the gateway itself reads; a provider never sees them."""

_PLACEHOLDER: Final = re.compile(r"\{\{[A-Za-z0-9_ ]{1,100}\}\}")
_FIXED: Final = frozenset({"custom_params", "model", "messages", "stream"})


def local_time() -> datetime:
    """Return the time here, with its zone."""
    return datetime.fromtimestamp(ids.now(), UTC).astimezone()


def apply_record(
    request: ChatRequest, record: ModelRecord, actor: Actor, clock: Callable[[], datetime] = local_time
) -> None:
    """Put the record's system prompt, parameters and documents into a request."""
    if record.params:
        _apply_params(request, record.params, actor, clock)
    if record.meta and (references := documents(record.meta.get("knowledge"))):
        request.files = [*request.files, *(item for item in references if item not in request.files)]


def spread(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that go to the source; custom ones that hold JSON text hold what it says."""
    custom = params.get("custom_params")
    found = {name: value for name, value in params.items() if name not in OWN_PARAMS | _FIXED}
    if isinstance(custom, dict):
        found |= {name: _parsed(value) for name, value in custom.items() if name not in OWN_PARAMS | _FIXED}
    return {name: value for name, value in found.items() if value is not None}


def documents(knowledge: Any) -> Sequence[dict[str, Any]]:
    """Return the references (2.3) in a record's `meta.knowledge`: files, collections and older forms."""
    if not isinstance(knowledge, list):
        return []
    found: list[dict[str, Any]] = []
    for item in knowledge:
        if not isinstance(item, dict):
            continue
        names = item.get("collection_names")
        if isinstance(item.get("id"), str):
            found.append({"type": item.get("type") or "collection", "id": item["id"]})
        elif isinstance(item.get("collection_name"), str):
            found.append({"type": "collection", "id": item["collection_name"]})
        elif isinstance(names, list):
            found += [{"type": "collection", "id": name} for name in names if isinstance(name, str)]
    return found


def variables(actor: Actor, now: datetime, sent: Any) -> Mapping[str, str]:
    """Return what stands for the placeholders of a prompt: what the caller sent, else what is known here."""
    known = {
        "{{USER_NAME}}": actor.user.name,
        "{{USER_EMAIL}}": actor.user.email,
        "{{USER_ID}}": actor.user.id,
        "{{USER_ROLE}}": actor.user.role.value,
        "{{CURRENT_DATE}}": now.strftime("%Y-%m-%d"),
        "{{CURRENT_TIME}}": now.strftime("%H:%M:%S"),
        "{{CURRENT_DATETIME}}": now.strftime("%Y-%m-%d %H:%M:%S"),
        "{{CURRENT_WEEKDAY}}": now.strftime("%A"),
        "{{CURRENT_TIMEZONE}}": now.tzname() or "UTC",
    }
    if isinstance(sent, dict):
        known |= {name: value for name, value in sent.items() if isinstance(value, str)}
    return known


def fill(text: str, values: Mapping[str, str]) -> str:
    """Return the text with its placeholders replaced, each by its value as it is."""
    return _PLACEHOLDER.sub(lambda found: values.get(found[0], found[0]), text)


def _apply_params(
    request: ChatRequest, params: Mapping[str, Any], actor: Actor, clock: Callable[[], datetime]
) -> None:
    changes = spread(params)
    request.body.update(changes)
    system = params.get("system")
    if not isinstance(system, str) or not system.strip():
        system = ""
    if system:
        text = fill(system, variables(actor, clock(), request.options.get("variables")))
        request.body["messages"] = before_system(request.body.get("messages") or [], text)
    mode = params.get("function_calling")
    if isinstance(mode, str) and mode:
        sent = request.options.get("params")
        request.options["params"] = {"function_calling": mode, **(sent if isinstance(sent, dict) else {})}
    if changes or system:
        # What came in another dialect is no longer what is asked.
        request.native = None


def _parsed(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value
