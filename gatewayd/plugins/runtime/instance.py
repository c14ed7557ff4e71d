"""Loaded plugin in the gateway: its instance, attributes, calls, hooks and valves."""

import asyncio
import linecache
import logging
import sys
import types
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import FunctionType
from typing import Any, Final

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins import tool_schema, valves
from gatewayd.plugins.inline.methods import InlineMethod, make_inline
from gatewayd.plugins.records import Plugin, PluginKind, log_fields
from gatewayd.plugins.runtime.arguments import (
    ARGUMENT_MAKERS,
    CallServices,
    MethodParameters,
    find_token,
    read_parameters,
    reserved_arguments,
)
from gatewayd.plugins.runtime.call_context import CallInfo, plugin_context
from gatewayd.plugins.runtime.context import CallScope
from gatewayd.plugins.runtime.event_loop_thread import PluginLoop
from gatewayd.plugins.runtime.invoke import FailureDetails, PluginError, run_guarded
from gatewayd.plugins.runtime.iterators import PluginIterator
from gatewayd.plugins.runtime.repeated_calls import BoundMethod, MethodCalls, RepeatedCall, RepeatedMethod
from gatewayd.plugins.runtime.runner import ACCESSOR_SECONDS, PluginRunner, ProblemRecorder
from gatewayd.plugins.runtime.static_attributes import find_stored, is_computed, is_plain

log = logging.getLogger(__name__)

ATTRIBUTES: Final = ("actions", "citation", "file_handler", "icon", "icon_url", "toggle")
"""Attributes that the gateway reads from instances; other computed attributes are never evaluated."""

STREAM_METHOD: Final = "stream"
"""The filter method for the events of an answer."""

STREAM_PARAMETER: Final = "event"
"""The parameter of the event."""

INLINE_PARAMETERS: Final = {STREAM_METHOD: STREAM_PARAMETER, "inlet": "body"}
"""Methods that may run inline, in the thread of the daemon, with the parameter whose value they return."""

_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class InstanceParts:
    """Result of loading; `path` is the file name in tracebacks."""

    kind: PluginKind
    instance: Any
    module: types.ModuleType
    path: str
    specs: list[dict[str, Any]]
    missing: tuple[str, ...]


@dataclass(slots=True)
class _Snapshot:
    """Values read from the instance in the thread of the plugin."""

    priority: int = 0
    computed: dict[str, Any] = field(default_factory=dict)
    """Values of descriptors such as properties, and methods made by descriptors."""
    truths: dict[str, Any] = field(default_factory=dict)
    """Truth values of attributes whose classes belong to the plugin."""
    is_usable: bool = True
    """Whether the valves are valid, so that methods can be called."""
    valves: Any = None
    """An instance of the valves that the plugin cannot change."""


class PluginInstance:
    """A `handles.PluginHandle` over an instance in the gateway, with an event loop thread of its own."""

    def __init__(
        self,
        plugin: Plugin,
        plugin_loop: PluginLoop,
        parts: InstanceParts,
        services: CallServices,
        recorder: ProblemRecorder,
    ) -> None:
        self.plugin = plugin
        self._parts = parts
        self._services = replace(services, family=plugin.family)
        self._runner = PluginRunner(plugin, plugin_loop, parts.path, services.context, recorder)
        self._snapshot = _Snapshot()
        self._parameters: dict[str, MethodParameters] = {}
        self._inline: dict[str, InlineMethod] = {}
        self._counted = services.counted.at(plugin.family.value)

    @property
    def left_behind(self) -> int:
        """Number of synchronous calls that still run after they were stopped."""
        return self._runner.left_behind

    def has(self, method: str) -> bool:
        """Whether the plugin has a method of that name."""
        return type(self._static(method)) is FunctionType or callable(self.value(method))

    def value(self, name: str, default: Any = None) -> Any:
        """Return an attribute of the instance, its class, or else of the module; `default` when absent.

        `default` as well when code of the plugin raises. A computed attribute among the methods and
        ATTRIBUTES has its value from the last change of the valves; any other is the default.
        """
        found = self._static(name)
        if found is _MISSING:
            return vars(self._parts.module).get(name, default)
        if is_computed(found):
            known = self._snapshot.computed.get(name, _MISSING)
            return default if known is _MISSING else known
        read = run_guarded(partial(getattr, self._parts.instance, name, default))
        return default if read.error is not None else read.value

    async def read(self, name: str) -> Any:
        """Return an attribute as `value` does, but evaluate a computed one now, or raise PluginError."""
        if not is_computed(self._static(name)):
            return self.value(name)
        return await self._runner.ask(name, partial(getattr, self._parts.instance, name), ACCESSOR_SECONDS)

    def flag(self, name: str, default: bool = False) -> bool:
        """Return the truth value of an attribute; `default` when it is absent or raises.

        An object that is not of a built-in type has its truth value from the last change of the valves.
        """
        value = self.value(name, default)
        truth = bool(value) if is_plain(value) else self._snapshot.truths.get(name, default)
        return default if truth is _MISSING else truth

    def priority(self) -> int:
        """Return the valve `priority`, read at the last change of the valves; 0 without one."""
        return self._snapshot.priority

    def methods(self) -> list[str]:
        """Return the names of the public methods, sorted."""
        return [name for name in tool_schema.methods(self._parts.instance) if self.has(name)]

    def parameters(self, method: str) -> MethodParameters:
        """Return the parameters of a method."""
        if method not in self._parameters:
            self._parameters[method] = read_parameters(self._method(method))
        return self._parameters[method]

    async def call(self, method: str, scope: CallScope, arguments: Mapping[str, Any]) -> Any:
        """Call a method with the given and reserved arguments that it names.

        An iterator or generator of either kind is returned as a PluginIterator, any other value as it is.
        Raises PluginError for every exception of the plugin. A cancellation stops asynchronous code, and
        synchronous code unless it is blocked: such a call is left behind in its thread.
        """
        self._counted.value += 1
        inline = self._find_inline(method)
        if inline is not None:
            value = arguments.get(inline.name)
            if inline.change(value):
                return value
        with self._runner.calls.busy():
            bound = self._bind(method, scope, await self._user_settings(method, scope))
            begin = partial(_call, bound, arguments)
            return await self._runner.run(method, bound.function, begin, bound.context)

    def repeated(self, method: str, name: str, scope: CallScope) -> RepeatedCall:
        """Return a method for repeated calls in one request; each value is passed as parameter `name`."""
        return MethodCalls(
            self._runner,
            RepeatedMethod(
                method,
                name,
                partial(self._bind, method, scope),
                partial(self._user_settings, method, scope),
                partial(self._find_inline, method),
            ),
        )

    def is_idle(self, method: str) -> bool:
        """Whether a method is known to return its argument unchanged."""
        inline = self._find_inline(method)
        return inline is not None and inline.is_idle

    def keep_for(self, owner: object) -> None:
        """Count `owner`, which makes further calls, as an open call until it is garbage-collected."""
        self._runner.calls.keep_for(owner)

    def items(self, source: AsyncIterable[Any]) -> PluginIterator:
        """Return the items of an asynchronous iterable of the plugin, such as the body of a response."""
        context = plugin_context(CallInfo(self.plugin.family, self.plugin.id))
        return self._runner.items(_iterated(source), "items", context)

    async def run_hook(self, name: str) -> None:
        """Run a hook such as `on_startup` if the plugin has it; exceptions are recorded and logged."""
        if self.has(name):
            await self._runner.hook(name, self._method(name))

    async def refresh(self) -> None:
        """Read again the values that depend on the valves: the priority and computed attributes."""
        known = dict.fromkeys([*ATTRIBUTES, *tool_schema.methods(self._parts.instance)])
        names = [name for name in known if is_computed(self._static(name))]
        read, *values = await asyncio.gather(
            self._runner.ask("load", self._read_valves),
            *(self._try_read(partial(getattr, self._parts.instance, name)) for name in names),
        )
        self._snapshot = replace(read, computed=dict(zip(names, values, strict=True)))
        unclear = {name: value for name in ATTRIBUTES if not is_plain(value := self.value(name))}
        truths = await asyncio.gather(*(self._try_read(partial(bool, value)) for value in unclear.values()))
        self._snapshot.truths = dict(zip(unclear, truths, strict=True))
        if self._parts.kind is PluginKind.FILTER and not self._inline:
            self._inline = await self._runner.ask("load", self._make_inline_methods)
        for inline in self._inline.values():
            inline.use_valves(self._snapshot.valves)

    async def take(self, plugin: Plugin) -> bool:
        """Use another record with the same source; return whether its valves differ."""
        has_new_valves = plugin.valves != self.plugin.valves
        self.plugin = replace(plugin, kind=self._parts.kind)
        if has_new_valves:
            await self.refresh()
        return has_new_valves

    async def valves_schema(self, user: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """Return the JSON schema of the valves with the options of select inputs; None without valves."""
        return await self._schema(valves.VALVES, user)

    async def user_valves_schema(self, user: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """Return the JSON schema of the user valves; None without them."""
        return await self._schema(valves.USER_VALVES, user)

    def has_user_valves(self) -> bool:
        """Whether the plugin has user valves."""
        return valves.find_class(self._parts.instance, valves.USER_VALVES) is not None

    async def changed_valves(
        self, stored: Mapping[str, Any], values: Mapping[str, Any], *, of_user: bool = False
    ) -> dict[str, Any]:
        """Return the stored valves with `values` merged in, without storing them; None removes a value.

        Raises invalid_request that names the faulty field, or when the plugin has no valves.
        """
        cls = valves.find_class(self._parts.instance, valves.USER_VALVES if of_user else valves.VALVES)
        if cls is None:
            raise valves.no_valves_error(self.plugin.id)
        changed: dict[str, Any] = await self._runner.ask(
            "valves", partial(valves.merge_valves, cls, stored, values)
        )
        return changed

    async def retire(self, timeout: float) -> None:  # noqa: ASYNC109 - a bound of the thread's end
        """Wait until no call is open, run `on_shutdown`, and end the thread of the plugin."""
        await self._runner.calls.wait_idle()
        await self.end(timeout)

    async def end(self, timeout: float) -> None:  # noqa: ASYNC109 - a bound of the thread's end
        """Run `on_shutdown`, and end the thread of the plugin with all that runs in it."""
        try:
            async with asyncio.timeout(timeout):
                await self.run_hook("on_shutdown")
        except TimeoutError:
            log.warning(
                "on_shutdown of the plugin timed out", extra=log_fields(self.plugin.family, self.plugin.id)
            )
        if not await self._runner.stop(timeout):
            log.warning(
                "cannot end the thread of the plugin", extra=log_fields(self.plugin.family, self.plugin.id)
            )
        module = self._parts.module
        if sys.modules.get(module.__name__) is module:
            del sys.modules[module.__name__]
            linecache.cache.pop(self._parts.path, None)

    def _method(self, name: str) -> Callable[..., Any]:
        found = self.value(name)
        if not callable(found):
            raise PluginError(
                self.plugin.kind.value, self.plugin.id, FailureDetails(f"it has no method {name!r}")
            )
        function: Callable[..., Any] = found
        return function

    async def _user_settings(self, method: str, scope: CallScope) -> Mapping[str, Any]:
        await find_token(names := self.parameters(method).names, scope, self._services)
        if "__user__" not in names or not self.has_user_valves():
            return {}
        user_id, plugin = scope.actor.user_id, self.plugin
        return await self._services.user_valves.find(user_id, plugin.family, plugin.id) or {}

    def _bind(self, method: str, scope: CallScope, settings: Mapping[str, Any]) -> BoundMethod:
        names = self.parameters(method).names
        context = plugin_context(CallInfo(self.plugin.family, self.plugin.id, scope))
        return BoundMethod(
            self._method(method), names, partial(self._arguments, names, scope, settings), context
        )

    def _arguments(
        self,
        names: frozenset[str],
        scope: CallScope,
        settings: Mapping[str, Any],
        given: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Set the valves and return all arguments of a method; runs in the thread of the plugin."""
        self._assign_valves()
        arguments = reserved_arguments(names, self.plugin.id, scope, self._services)
        if "__user__" in arguments:
            cls = valves.find_class(self._parts.instance, valves.USER_VALVES)
            if cls is not None:
                arguments["__user__"]["valves"] = self._user_valves(cls, settings)
        if "__valves__" in names:
            arguments["__valves__"] = getattr(self._parts.instance, "valves", None)
        arguments.update({name: value for name, value in given.items() if name in names})
        return arguments

    def _assign_valves(self) -> None:
        instance = self._parts.instance
        cls = valves.find_class(instance, valves.VALVES)
        if cls is None or not hasattr(instance, "valves"):
            return
        made = run_guarded(partial(valves.make, cls, self.plugin.valves))
        if made.error is not None:
            raise _unusable("its valves", made.error) from made.error
        instance.valves = made.value

    def _user_valves(self, cls: type[Any], settings: Mapping[str, Any]) -> Any:
        made = run_guarded(partial(valves.make, cls, settings))
        if made.error is not None:
            made = run_guarded(cls)
        if made.error is not None:
            raise _unusable("the valves of the user", made.error) from made.error
        return made.value

    async def _schema(self, name: str, user: Mapping[str, Any] | None) -> dict[str, Any] | None:
        cls = valves.find_class(self._parts.instance, name)
        if cls is None:
            return None
        describe = partial(valves.schema, cls, user)
        made: dict[str, Any] | None
        made, pending = await self._runner.ask("valves", describe, ACCESSOR_SECONDS)
        if pending:
            await self._runner.ask("valves", partial(valves.fill_options, pending), ACCESSOR_SECONDS)
        return made

    def _find_inline(self, method: str) -> InlineMethod | None:
        # With invalid valves the method must fail, which it does in its thread.
        inline = self._inline.get(method) if self._snapshot.is_usable else None
        return inline if inline is not None and inline.is_of(self.value(method)) else None

    def _make_inline_methods(self) -> dict[str, InlineMethod]:
        """Return the methods that can run inline; runs in a thread."""
        instance = self._parts.instance
        cls = valves.find_class(instance, valves.VALVES)
        source = self.plugin.content
        made = {
            method: run_guarded(partial(make_inline, instance, method, name, source, cls)).value
            for method, name in INLINE_PARAMETERS.items()
            if self.has(method) and self._has_all_arguments(method, name)
        }
        return {method: one for method, one in made.items() if one is not None}

    def _has_all_arguments(self, method: str, name: str) -> bool:
        """Whether a method has the parameter, and all its other required parameters are reserved."""
        parameters = self.parameters(method)
        given = {name, "__valves__", *ARGUMENT_MAKERS}
        return name in parameters.names and parameters.names - parameters.with_defaults <= given

    def _read_valves(self) -> _Snapshot:
        """Set the valves and return a snapshot of them; runs in a thread."""
        if run_guarded(self._assign_valves).error is not None:
            return _Snapshot(is_usable=False)
        number = run_guarded(lambda: getattr(self._parts.instance.valves, "priority", 0)).value
        cls = valves.find_class(self._parts.instance, valves.VALVES)
        fresh = None if cls is None else run_guarded(partial(valves.make, cls, self.plugin.valves)).value
        return _Snapshot(number if isinstance(number, int) else 0, valves=fresh)

    def _static(self, name: str) -> Any:
        """Return the stored attribute of the instance or its class, _MISSING when absent; no code runs."""
        return find_stored(self._parts.instance, name, _MISSING)

    async def _try_read(self, work: Callable[[], Any]) -> Any:
        """Return the result of code of the plugin; _MISSING when it raises or times out."""
        try:
            return await self._runner.ask("load", work, ACCESSOR_SECONDS)
        except PluginError:
            return _MISSING


def _call(bound: BoundMethod, arguments: Mapping[str, Any]) -> Any:
    return bound.function(**bound.given(arguments))


def _unusable(what: str, error: BaseException) -> GatewayError:
    return GatewayError(ErrorKind.PLUGIN_FAILED, f"cannot use {what}: {valves.describe_fault(error)}")


async def _iterated(source: AsyncIterable[Any]) -> AsyncIterator[Any]:
    async for item in source:
        yield item
