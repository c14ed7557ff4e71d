"""Models of the request bodies for functions and tools."""

from dataclasses import replace
from typing import Any

from pydantic import ConfigDict, Field

from gatewayd.http.body import RequestBody
from gatewayd.http.public.knowledge.bodies import AccessBody
from gatewayd.plugins.function_sync import WantedFunction
from gatewayd.plugins.service import NewPlugin, PluginChange


class MetaBody(RequestBody):
    """`meta` of a plugin. Its `manifest` is ignored, as the source has it."""

    model_config = ConfigDict(extra="allow")

    description: str | None = None

    def rest(self) -> dict[str, Any]:
        """Return the members that clients store themselves."""
        return dict(self.model_extra or {})


class FunctionBody(RequestBody):
    """A function to install; the header of the source replaces an empty name or description."""

    id: str
    name: str = ""
    content: str
    meta: MetaBody = Field(default_factory=MetaBody)

    def new(self) -> NewPlugin:
        """Return the plugin to install."""
        return NewPlugin(self.id, self.content, self.name, self.meta.description or "", meta=self.meta.rest())


class ToolBody(FunctionBody, AccessBody):
    """A tool to install; private without an access list."""

    def new(self) -> NewPlugin:
        """Return the plugin to install."""
        return replace(super().new(), grants=self.grants() or ())


class FunctionChangeBody(RequestBody):
    """A change of a function. Absent and null fields keep their values; the id never changes.

    With the `revision` of a reply, the change is refused if the function has another one now.
    """

    name: str | None = None
    content: str | None = None
    meta: MetaBody | None = None
    revision: str | None = None

    def change(self) -> PluginChange:
        """Return the change."""
        found = PluginChange(self.content, self.name, revision=self.revision)
        if self.meta is None:
            return found
        return replace(found, description=self.meta.description, meta=self.meta.rest())


class ToolChangeBody(FunctionChangeBody, AccessBody):
    """A change of a tool."""

    def change(self) -> PluginChange:
        """Return the change."""
        return replace(super().change(), grants=self.grants())


class SyncedBody(FunctionBody):
    """The wanted state of a function; without `valves` the stored ones stay."""

    is_active: bool = False
    is_global: bool = False
    valves: dict[str, Any] | None = None

    def wanted(self) -> WantedFunction:
        """Return the wanted state of the function."""
        return WantedFunction(self.new(), self.is_active, self.is_global, self.valves)


class SyncBody(RequestBody):
    """The wanted state of all functions."""

    functions: list[SyncedBody]
