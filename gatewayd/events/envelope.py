"""Reads what plugins emit."""

import logging
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from gatewayd.events.json_values import to_json

log = logging.getLogger(__name__)

Envelope = dict[str, Any]
"""An event as JSON: `type` is a text that is not empty, `data` is there; further members are kept."""


def parse_event(value: Any) -> Envelope | None:
    """Return an emitted value as an envelope of its own, None when it is no event: nonsense is never raised.

    An event without `data` gets an empty object (`chat:tasks:cancel` is sent so).
    """
    if not isinstance(value, dict | MappingProxyType | BaseModel):
        log.debug("event dropped: it is no object", extra={"found": type(value).__name__})
        return None
    try:
        event = to_json(value)
    except ValueError as error:
        log.debug("event dropped: %s", error)
        return None
    if not isinstance(event, dict) or not isinstance(event.get("type"), str) or not event["type"]:
        log.debug("event dropped: it has no type")
        return None
    event.setdefault("data", {})
    return event
