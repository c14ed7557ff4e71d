"""A plugin that has run: its instance, and the way to call it."""

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
    read_parameters,
    reserved_arguments,
)
from gatewayd.plugins.runtime.attributes import find_stored, is_computed, is_plain
from gatewayd.plugins.runtime.call_context import CallInfo, plugin_context
from gatewayd.plugins.runtime.context import CallScope
from gatewayd.plugins.runtime.event_loop_thread import PluginLoop
from gatewayd.plugins.runtime.invoke import FailureDetails, PluginError, run_guarded
from gatewayd.plugins.runtime.iterators import PluginIterator
from gatewayd.plugins.runtime.repeated_calls import BoundMethod, MethodCalls, RepeatedCall, RepeatedMethod
from gatewayd.plugins.runtime.runner import ACCESSOR_SECONDS, PluginRunner, ProblemRecorder

log = logging.getLogger(__name__)

ATTRIBUTES: Final = ("actions", "citation", "file_handler", "icon", "icon_url", "toggle")
"""What the gateway reads of instances without calling them; of other computed attributes no code runs."""

STREAM_METHOD: Final = "stream"
"""The method of a filter for the events of an answer."""

STREAM_PARAMETER: Final = "event"
"""The parameter under which it gets one."""

INLINE_PARAMETERS: Final = {STREAM_METHOD: STREAM_PARAMETER, "inlet": "body"}
"""Methods that may run without a crossing, and the parameter of the value that each returns."""

_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class InstanceParts:
    """What loading made; `path` is the file name in tracebacks."""

    kind: PluginKind
    instance: Any
    module: types.ModuleType
    path: str
    specs: list[dict[str, Any]]
    missing: tuple[str, ...]


@dataclass(slots=True)
class _Snapshot:
    """What was read off the instance in its home."""

    priority: int = 0
    computed: dict[str, Any] = field(default_factory=dict)
    """Values of descriptors, such as properties, and methods that descriptors make."""
    truths: dict[str, Any] = field(default_factory=dict)
    """Whether objects of the plugin's own classes count as true."""
    is_usable: bool = True
    """Whether the valves are such that methods can be called."""
    valves: Any = None
    """Valves that are as they were set, whatever the plugin does with its own."""


class PluginInstance:
    """One instance in its home, shared by all users and calls."""

    def __init__(
        self,
        plugin: Plugin,
        home: PluginLoop,
        parts: InstanceParts,
        around: CallServices,
        noting: ProblemRecorder,
    ) -> None:
        self.plugin = plugin
        self._parts = parts
        self._around = around
        self._runner = PluginRunner(plugin, home, parts.path, around.context, noting)
        self._snapshot = _Snapshot()
        self._parameters: dict[str, MethodParameters] = {}
        self._inline: dict[str, InlineMethod] = {}

    @property
    def left_behind(self) -> int:
        """How many plain calls still run after they were stopped."""
        return self._runner.left_behind

    def has(self, method: str) -> bool:
        """Tell whether the plugin has a method of that name."""
        return type(self._static(method)) is FunctionType or callable(self.value(method))

    def value(self, name: str, default: Any = None) -> Any:
        """Return an attribute of the instance, its class, or else of the module.

        One that the plugin's own code fails to give is the default, as one that is not there. What a
        descriptor computes is what it was when the valves were last set, for a method and for a name among
        ATTRIBUTES; for any other it is the default.
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
        """Return an attribute as `value` does, a computed one as it is now; PluginError when that fails."""
        if not is_computed(self._static(name)):
            return self.value(name)
        return await self._runner.ask(name, partial(getattr, self._parts.instance, name), ACCESSOR_SECONDS)

    def flag(self, name: str, default: bool = False) -> bool:
        """Return whether an attribute counts as true; one that does not tell is the default.

        An object of another class than Python's own counts as it did when the valves were last set.
        """
        value = self.value(name, default)
        told = bool(value) if is_plain(value) else self._snapshot.truths.get(name, default)
        return default if told is _MISSING else told

    def priority(self) -> int:
        """Return the valve `priority`, as it was when the valves were last set; 0 without."""
        return self._snapshot.priority

    def methods(self) -> list[str]:
        """Return the names of the public methods, sorted."""
        return [name for name in tool_schema.methods(self._parts.instance) if self.has(name)]

    def parameters(self, method: str) -> MethodParameters:
        """Return the names that a method takes."""
        if method not in self._parameters:
            self._parameters[method] = read_parameters(self._method(method))
        return self._parameters[method]

    async def call(self, method: str, scope: CallScope, arguments: Mapping[str, Any]) -> Any:
        """Call a method with those arguments, given and reserved, that it names.

        An iterator or generator of either kind comes back as Items, everything else as it is. Raises
        PluginError for whatever the plugin raises. Cancelling reaches asynchronous code, and plain code
        unless it is blocked: then it is left behind in its thread.
        """
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
        """Return a method to be called for many values, which it gets under a name, within one request."""
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
        """Tell whether a method surely does nothing but return what it gets."""
        inline = self._find_inline(method)
        return inline is not None and inline.is_idle

    def keep_for(self, owner: object) -> None:
        """Do not end, when another takes its place, as long as an object is there: it makes further calls."""
        self._runner.calls.keep_for(owner)

    def items(self, source: AsyncIterable[Any]) -> PluginIterator:
        """Return what an asynchronous iterable of the plugin gives, such as the body of a response."""
        context = plugin_context(CallInfo(self.plugin.family, self.plugin.id))
        return self._runner.items(_iterated(source), "items", context)

    async def run_hook(self, name: str) -> None:
        """Run a hook such as `on_startup` if the plugin has it; what it raises is noted and logged."""
        if self.has(name):
            await self._runner.hook(name, self._method(name))

    async def refresh(self) -> None:
        """Read anew what hangs on the valves: the priority, and what descriptors compute."""
        known = dict.fromkeys([*ATTRIBUTES, *tool_schema.methods(self._parts.instance)])
        names = [name for name in known if is_computed(self._static(name))]
        read, *values = await asyncio.gather(
            self._runner.ask("load", self._read_valves),
            *(self._asked(partial(getattr, self._parts.instance, name)) for name in names),
        )
        self._snapshot = replace(read, computed=dict(zip(names, values, strict=True)))
        unclear = {name: value for name in ATTRIBUTES if not is_plain(value := self.value(name))}
        truths = await asyncio.gather(*(self._asked(partial(bool, value)) for value in unclear.values()))
        self._snapshot.truths = dict(zip(unclear, truths, strict=True))
        if self._parts.kind is PluginKind.FILTER and not self._inline:
            self._inline = await self._runner.ask("load", self._translated)
        for inline in self._inline.values():
            inline.use_valves(self._snapshot.valves)

    async def take(self, plugin: Plugin) -> bool:
        """Go on with another record of the same source; tell whether its valves are new."""
        has_new_valves = plugin.valves != self.plugin.valves
        self.plugin = replace(plugin, kind=self._parts.kind)
        if has_new_valves:
            await self.refresh()
        return has_new_valves

    async def valves_schema(self, user: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """Return the JSON schema of the valves, options of choices included; None without valves."""
        return await self._schema(valves.VALVES, user)

    async def user_valves_schema(self, user: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """Return the JSON schema of the valves that each user sets; None without such."""
        return await self._schema(valves.USER_VALVES, user)

    def has_user_valves(self) -> bool:
        """Tell whether users can set something for themselves."""
        return valves.find_class(self._parts.instance, valves.USER_VALVES) is not None

    async def changed_valves(
        self, stored: Mapping[str, Any], values: Mapping[str, Any], *, of_user: bool = False
    ) -> dict[str, Any]:
        """Return valves once `values` are merged into them, None taking one away; nothing is stored.

        Raises invalid_request naming the field, also when the plugin has no valves.
        """
        cls = valves.find_class(self._parts.instance, valves.USER_VALVES if of_user else valves.VALVES)
        if cls is None:
            raise valves.no_valves_error(self.plugin.id)
        changed: dict[str, Any] = await self._runner.ask(
            "valves", partial(valves.merge_valves, cls, stored, values)
        )
        return changed

    async def retire(self, timeout: float) -> None:  # noqa: ASYNC109 - a bound of the thread's end
        """Wait until every call is over, run `on_shutdown`, and end the home."""
        await self._runner.calls.wait_idle()
        await self.end(timeout)

    async def end(self, timeout: float) -> None:  # noqa: ASYNC109 - a bound of the thread's end
        """Run `on_shutdown`, and end the home whatever runs in it."""
        try:
            async with asyncio.timeout(timeout):
                await self.run_hook("on_shutdown")
        except TimeoutError:
            log.warning("on_shutdown takes too long", extra=log_fields(self.plugin.family, self.plugin.id))
        if not await self._runner.stop(timeout):
            log.warning("a plugin does not end", extra=log_fields(self.plugin.family, self.plugin.id))
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
        if "__user__" not in self.parameters(method).names or not self.has_user_valves():
            return {}
        user_id, plugin = scope.actor.user_id, self.plugin
        return await self._around.user_valves.find(user_id, plugin.family, plugin.id) or {}

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
        """Return all arguments of a method, and set the valves; runs in the plugin's thread."""
        self._assign_valves()
        arguments = reserved_arguments(names, self.plugin.id, scope, self._around)
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
        made, left = await self._runner.ask("valves", describe, ACCESSOR_SECONDS)
        if left:
            await self._runner.ask("valves", partial(valves.fill_options, left), ACCESSOR_SECONDS)
        return made

    def _find_inline(self, method: str) -> InlineMethod | None:
        # A method with valves that cannot be used fails, in its thread.
        inline = self._inline.get(method) if self._snapshot.is_usable else None
        return inline if inline is not None and inline.is_of(self.value(method)) else None

    def _translated(self) -> dict[str, InlineMethod]:
        """Return what runs without a crossing; runs in a thread."""
        instance = self._parts.instance
        cls = valves.find_class(instance, valves.VALVES)
        source = self.plugin.content
        made = {
            method: run_guarded(partial(make_inline, instance, method, name, source, cls)).value
            for method, name in INLINE_PARAMETERS.items()
            if self.has(method) and self._is_given(method, name)
        }
        return {method: one for method, one in made.items() if one is not None}

    def _is_given(self, method: str, name: str) -> bool:
        """Tell whether a method takes a value under a name, and gets all else that it requires."""
        parameters = self.parameters(method)
        given = {name, "__valves__", *ARGUMENT_MAKERS}
        return name in parameters.names and parameters.names - parameters.with_defaults <= given

    def _read_valves(self) -> _Snapshot:
        """Return what there is to know of the valves as they are set now; runs in a thread."""
        if run_guarded(self._assign_valves).error is not None:
            return _Snapshot(is_usable=False)
        number = run_guarded(lambda: getattr(self._parts.instance.valves, "priority", 0)).value
        cls = valves.find_class(self._parts.instance, valves.VALVES)
        fresh = None if cls is None else run_guarded(partial(valves.make, cls, self.plugin.valves)).value
        return _Snapshot(number if isinstance(number, int) else 0, valves=fresh)

    def _static(self, name: str) -> Any:
        """Return what the instance or its class has under a name, _MISSING for nothing; no code runs."""
        return find_stored(self._parts.instance, name, _MISSING)

    async def _asked(self, work: Callable[[], Any]) -> Any:
        """Return what work of the plugin gives; _MISSING when it fails or takes long."""
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
