"""Decides which requests of the Responses protocol their source answers itself; all others are converted."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from gatewayd.accounts.records import Actor
from gatewayd.catalog.interfaces import ResponsesSource, ResponsesSupport
from gatewayd.catalog.service import Catalog
from gatewayd.completions.json_access import as_mapping, as_sequence
from gatewayd.pipeline.documents.plugin_context import OWN_FIELDS
from gatewayd.pipeline.documents.presets import documents_of
from gatewayd.pipeline.endpoints import model_of

MISSING_SECONDS: Final = 3600.0
"""How long a source is not asked again for an endpoint that it lacks."""

MAX_MISSING: Final = 1000
"""Maximum number of remembered endpoints."""

OFFER: Final = "additional_tools"
"""Type of an input item that offers tools."""

NEWER_TOOLS: Final = frozenset({"custom", "namespace"})
"""Types of tools that some sources ignore or refuse, so that the model would lack them."""


class MissingEndpoints:
    """The endpoints that sources were found to lack, for an hour."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: dict[tuple[str, str], float] = {}

    def add(self, source: str, path: str) -> None:
        """Remember that a source lacks an endpoint."""
        now = self._clock()
        if len(self._until) >= MAX_MISSING:
            self._until = {key: until for key, until in self._until.items() if until > now}
        if len(self._until) < MAX_MISSING:
            self._until[source, path] = now + MISSING_SECONDS

    def has(self, source: str, path: str) -> bool:
        """Return True if a source was found to lack an endpoint."""
        return self._until.get((source, path), 0.0) > self._clock()


class ResponseRouter:
    """Chooses between forwarding and conversion."""

    def __init__(self, catalog: Catalog, missing: MissingEndpoints) -> None:
        self._catalog = catalog
        self._missing = missing

    async def is_native(self, body: Mapping[str, Any], actor: Actor, path: str) -> bool:
        """Return True if the first source of the model may answer a request to `path` itself.

        A request is converted if it has fields of the gateway, if the record of its model adds documents or
        tools, and if it has tools that the source may not know. Raises not_found for a model that the actor
        may not use.
        """
        first = (await self._catalog.candidates(model_of(body), actor))[0]
        if not isinstance(first.source, ResponsesSource) or self._missing.has(first.source.name, path):
            return False
        if not OWN_FIELDS.isdisjoint(body) or self._adds_content(first.model.id):
            return False
        return first.source.responses_support is ResponsesSupport.FULL or not _has_newer_tools(body)

    def _adds_content(self, model_id: str) -> bool:
        record = self._catalog.find_record(model_id)
        return record is not None and bool(documents_of(record) or as_mapping(record.meta).get("toolIds"))


def _has_newer_tools(body: Mapping[str, Any]) -> bool:
    """Return True for newer tools, and for input items that offer tools, which is as new."""
    kinds = (as_mapping(tool).get("type") for tool in as_sequence(body.get("tools")))
    if any(isinstance(kind, str) and kind in NEWER_TOOLS for kind in kinds):
        return True
    return any(as_mapping(item).get("type") == OFFER for item in as_sequence(body.get("input")))
