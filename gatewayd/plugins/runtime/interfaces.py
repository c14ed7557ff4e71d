"""Interfaces of a loaded plugin and of the loader of isolated plugins."""

from collections.abc import AsyncIterable, Mapping
from typing import Any, Protocol

from gatewayd.plugins.records import Plugin
from gatewayd.plugins.runtime.arguments import MethodParameters
from gatewayd.plugins.runtime.context import CallScope
from gatewayd.plugins.runtime.iterators import PluginIterator
from gatewayd.plugins.runtime.repeated_calls import RepeatedCall
from gatewayd.plugins.runtime.runner import ProblemRecorder


class PluginHandle(Protocol):
    """One instance of a plugin, shared by all users and calls.

    `instance.PluginInstance` runs it in the gateway and documents the contracts;
    `isolation.plugin.IsolatedPlugin` runs it in a process.
    """

    @property
    def plugin(self) -> Plugin: ...  # noqa: D102
    @property
    def left_behind(self) -> int: ...  # noqa: D102
    def has(self, method: str) -> bool: ...  # noqa: D102
    def value(self, name: str, default: Any = None) -> Any: ...  # noqa: D102
    async def read(self, name: str) -> Any: ...  # noqa: D102
    def flag(self, name: str, default: bool = False) -> bool: ...  # noqa: D102
    def priority(self) -> int: ...  # noqa: D102
    def methods(self) -> list[str]: ...  # noqa: D102
    def parameters(self, method: str) -> MethodParameters: ...  # noqa: D102
    async def call(self, method: str, scope: CallScope, arguments: Mapping[str, Any]) -> Any: ...  # noqa: D102
    def repeated(self, method: str, name: str, scope: CallScope) -> RepeatedCall: ...  # noqa: D102
    def is_idle(self, method: str) -> bool: ...  # noqa: D102
    def keep_for(self, owner: object) -> None: ...  # noqa: D102
    def items(self, source: AsyncIterable[Any]) -> PluginIterator: ...  # noqa: D102
    async def run_hook(self, name: str) -> None: ...  # noqa: D102
    async def refresh(self) -> None: ...  # noqa: D102
    async def take(self, plugin: Plugin) -> bool: ...  # noqa: D102
    async def valves_schema(self, user: Mapping[str, Any] | None = None) -> dict[str, Any] | None: ...  # noqa: D102
    async def user_valves_schema(  # noqa: D102
        self, user: Mapping[str, Any] | None = None
    ) -> dict[str, Any] | None: ...
    def has_user_valves(self) -> bool: ...  # noqa: D102
    async def changed_valves(  # noqa: D102
        self, stored: Mapping[str, Any], values: Mapping[str, Any], *, of_user: bool = False
    ) -> dict[str, Any]: ...
    async def retire(self, timeout: float) -> None: ...  # noqa: ASYNC109, D102
    async def end(self, timeout: float) -> None: ...  # noqa: ASYNC109, D102


class PluginIsolation(Protocol):
    """Loads plugins in processes of their own."""

    def applies_to(self, plugin: Plugin) -> bool:
        """Whether a plugin runs in a process of its own; PluginError when its header is invalid."""
        ...

    async def load(self, plugin: Plugin, recorder: ProblemRecorder, not_installed: str) -> PluginHandle:
        """Load a plugin in its process and return it; PluginError with the error sentence.

        `not_installed` is the reason why required packages were not installed, empty when they were.
        """
        ...
