"""What clients send about functions and tools (1.11, 1.12)."""

from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from gatewayd.http.public.knowledge.bodies import AccessBody
from gatewayd.plugins.function_sync import WantedFunction
from gatewayd.plugins.service import NewPlugin, PluginChange


class MetaBody(BaseModel):
    """`meta` of a plugin; its `manifest` is read from the source instead."""

    model_config = ConfigDict(extra="allow")

    description: str | None = None

    def rest(self) -> dict[str, Any]:
        """Return what clients keep there themselves."""
        return dict(self.model_extra or {})


class FunctionBody(BaseModel):
    """A function to install; an empty name or description is taken from the header of the source."""

    model_config = ConfigDict(extra="ignore")

    id: str
    name: str = ""
    content: str
    meta: MetaBody = Field(default_factory=MetaBody)

    def new(self) -> NewPlugin:
        """Return what to install."""
        return NewPlugin(self.id, self.content, self.name, self.meta.description or "", meta=self.meta.rest())


class ToolBody(FunctionBody, AccessBody):
    """A tool to install; private unless an access list says otherwise."""

    def new(self) -> NewPlugin:
        """Return what to install."""
        return replace(super().new(), grants=self.grants() or ())


class FunctionChangeBody(BaseModel):
    """What to change in a function; what is absent or null stays, and so does the id."""

    model_config = ConfigDict(extra="ignore")

    name: str | None = None
    content: str | None = None
    meta: MetaBody | None = None

    def change(self) -> PluginChange:
        """Return what to change."""
        found = PluginChange(self.content, self.name)
        if self.meta is None:
            return found
        return replace(found, description=self.meta.description, meta=self.meta.rest())


class ToolChangeBody(FunctionChangeBody, AccessBody):
    """What to change in a tool."""

    def change(self) -> PluginChange:
        """Return what to change."""
        return replace(super().change(), grants=self.grants())


class SyncedBody(FunctionBody):
    """A function as it is to be; without `valves` those that are set stay."""

    is_active: bool = False
    is_global: bool = False
    valves: dict[str, Any] | None = None

    def wanted(self) -> WantedFunction:
        """Return the function as it is to be."""
        return WantedFunction(self.new(), self.is_active, self.is_global, self.valves)


class SyncBody(BaseModel):
    """All functions that are to be there."""

    model_config = ConfigDict(extra="ignore")

    functions: list[SyncedBody]
