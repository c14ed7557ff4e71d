"""Parser of the events that plugins emit."""

import logging
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from gatewayd.events.json_values import to_json

log = logging.getLogger(__name__)

Envelope = dict[str, Any]
"""An event as JSON with a non-empty `type` and with `data`; further members stay."""


def parse_event(value: Any) -> Envelope | None:
    """Return a copy of an emitted value as an envelope, None for an invalid event; never raises.

    An event without `data` gets an empty object (`chat:tasks:cancel` has none).
    """
    if not isinstance(value, dict | MappingProxyType | BaseModel):
        log.debug("cannot send an event: it is not an object", extra={"found": type(value).__name__})
        return None
    try:
        event = to_json(value)
    except ValueError as error:
        log.debug("cannot send an event: %s", error)
        return None
    if not isinstance(event, dict) or not isinstance(event.get("type"), str) or not event["type"]:
        log.debug("cannot send an event: it has no type")
        return None
    event.setdefault("data", {})
    return event
