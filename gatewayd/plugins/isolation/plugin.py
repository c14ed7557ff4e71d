"""A plugin in a process of its own, called like one in the gateway, and started again when it ends."""

import asyncio
import logging
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import orjson

from gatewayd.json_encoder import EncodedJson
from gatewayd.plugins.isolation.call_results import read_outcome
from gatewayd.plugins.isolation.calls import METADATA, OpenCall, render_call, take_metadata
from gatewayd.plugins.isolation.host_calls import PluginQuestions
from gatewayd.plugins.isolation.messages import PipeData
from gatewayd.plugins.isolation.process import MALFORMED_ERRORS, PluginProcess, make_failure
from gatewayd.plugins.isolation.streams import open_stream
from gatewayd.plugins.isolation.supervisor import IsolationParts, ProcessKeeper, read_line
from gatewayd.plugins.records import Plugin, log_fields
from gatewayd.plugins.runtime.arguments import MethodParameters
from gatewayd.plugins.runtime.context import CallScope
from gatewayd.plugins.runtime.invoke import PluginError
from gatewayd.plugins.runtime.iterators import PluginIterator
from gatewayd.plugins.runtime.open_calls import OpenCalls
from gatewayd.plugins.runtime.repeated_calls import Arguments, RepeatedCall, Result
from gatewayd.plugins.runtime.runner import ProblemRecorder

log = logging.getLogger(__name__)


class IsolatedPlugin:
    """A `plugins.handles.PluginHandle` over a process."""

    def __init__(
        self, plugin: Plugin, parts: IsolationParts, noting: ProblemRecorder, not_installed: str = ""
    ) -> None:
        self._keeper = ProcessKeeper(plugin, parts, noting, self._begin_again, not_installed)
        self._parts = parts
        self._calls = OpenCalls()
        self._has_startup = False

    @property
    def plugin(self) -> Plugin:
        """What is kept of it, with kind, specifications and missing names as they were found."""
        return self._keeper.plugin

    @property
    def keeper(self) -> ProcessKeeper:
        """Its process."""
        return self._keeper

    @property
    def left_behind(self) -> int:
        """How many plain calls still run after they were stopped."""
        return self._keeper.facts.left_behind if self._keeper.is_alive else 0

    async def start(self) -> None:
        """Start the process and load the plugin in it; PluginError when that fails."""
        await self._keeper.start()

    def has(self, method: str) -> bool:
        """Tell whether the plugin has a method of that name."""
        return method in self._keeper.facts.methods

    def value(self, name: str, default: Any = None) -> Any:
        """Return an attribute, as it was when the process last told."""
        if name in self._keeper.facts.methods:
            return partial(self.call, name)
        return self._keeper.facts.values.get(name, default)

    async def read(self, name: str) -> Any:
        """Return an attribute as it is now, for a method something that can be called."""
        if name in self._keeper.facts.methods:
            return partial(self.call, name)
        process = await self._keeper.ready()
        return self._outcome(process, await process.ask({"do": "read", "name": name}))

    def flag(self, name: str, default: bool = False) -> bool:
        """Return whether an attribute counts as true."""
        return True if name in self._keeper.facts.methods else self._keeper.facts.flags.get(name, default)

    def priority(self) -> int:
        """Return the valve `priority`; 0 without."""
        return self._keeper.facts.priority

    def methods(self) -> list[str]:
        """Return the names of the public methods, sorted."""
        return list(self._keeper.facts.public)

    def parameters(self, method: str) -> MethodParameters:
        """Return the names that a method takes."""
        return self._keeper.facts.parameters(method)

    async def call(self, method: str, scope: CallScope, arguments: Mapping[str, Any]) -> Any:
        """Call a method with those arguments that it names.

        An iterator or generator comes back as Items; what is no JSON does not come back. Raises PluginError
        for whatever the plugin raises, and when its process ends. Cancelling reaches the code as in a thread.
        """
        with self._calls.busy():
            served = await self._serve("call", method, scope, arguments, {})
            try:
                return self._taken(served, arguments)
            finally:
                served.end()

    def repeated(self, method: str, name: str, scope: CallScope) -> RepeatedCall:
        """Return a method to be called for many values, which it gets under a name, within one request."""
        return _ProcessCalls(partial(self._repeat, method, name, scope))

    def is_idle(self, method: str) -> bool:
        """Tell whether a method surely does nothing but return what it gets."""
        return method in self._keeper.facts.idle

    def keep_for(self, owner: object) -> None:
        """Do not end, when another takes its place, as long as an object is there: it makes further calls."""
        self._calls.keep_for(owner)

    def items(self, source: AsyncIterable[Any]) -> PluginIterator:
        """Return what the body of a response gives."""
        if not isinstance(source, PluginIterator):
            raise TypeError("only streams of its process are given")
        return source

    async def run_hook(self, name: str) -> None:
        """Run a hook such as `on_startup` if the plugin has it; what it raises is noted and logged."""
        self._has_startup = self._has_startup or name == "on_startup"
        if not self.has(name):
            return
        try:
            process = await self._keeper.ready()
            await process.ask({"do": "hook", "name": name})
        except PluginError as failure:
            log.warning(
                "a hook failed", extra={**log_fields(self.plugin.family, self.plugin.id), "hook": name}
            )
            self._keeper.note(name, failure.message)

    async def refresh(self) -> None:
        """Do nothing: the process tells what hangs on the valves."""

    async def take(self, plugin: Plugin) -> bool:
        """Go on with another record of the same source; tell whether its valves are new."""
        has_new_valves = plugin.valves != self.plugin.valves
        known = replace(plugin, kind=self.plugin.kind)
        if has_new_valves:
            await self._keeper.take(known)
        else:
            self._keeper.plugin = known
        return has_new_valves

    async def valves_schema(self, user: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """Return the JSON schema of the valves; None without valves."""
        return await self._schema(user, of_user=False)

    async def user_valves_schema(self, user: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """Return the JSON schema of the valves that each user sets; None without such."""
        return await self._schema(user, of_user=True)

    def has_user_valves(self) -> bool:
        """Tell whether users can set something for themselves."""
        return self._keeper.facts.has_user_valves

    async def changed_valves(
        self, stored: Mapping[str, Any], values: Mapping[str, Any], *, of_user: bool = False
    ) -> dict[str, Any]:
        """Return valves once `values` are merged into them; nothing is stored."""
        told = {"stored": dict(stored), "values": dict(values), "of_user": of_user}
        process = await self._keeper.ready()
        answer = await process.ask({"do": "valves"}, PipeData(told))
        if not isinstance(answer.value, dict):
            raise process.spoil(ValueError("valves are an object"))
        return answer.value

    async def retire(self, timeout: float) -> None:  # noqa: ASYNC109 - a bound of the end
        """Wait until every call is over, and end."""
        await self._calls.wait_idle()
        await self.end(timeout)

    async def end(self, timeout: float) -> None:  # noqa: ASYNC109 - a bound of the end
        """Run `on_shutdown`, and end the process whatever runs in it."""
        await self._keeper.end(timeout)

    async def _begin_again(self) -> None:
        if self._has_startup:
            await self.run_hook("on_startup")

    async def _user_settings(self, names: frozenset[str], scope: CallScope) -> Mapping[str, Any]:
        if "__user__" not in names or not self.has_user_valves():
            return {}
        user_id, plugin = scope.actor.user_id, self.plugin
        store = self._parts.answering.around.user_valves
        return await store.find(user_id, plugin.family, plugin.id) or {}

    async def _schema(self, user: Mapping[str, Any] | None, *, of_user: bool) -> dict[str, Any] | None:
        process = await self._keeper.ready()
        told = {"user": None if user is None else dict(user), "of_user": of_user}
        answer = await process.ask({"do": "schema"}, PipeData(told))
        if not isinstance(answer.value, dict | None):
            raise process.spoil(ValueError("a schema is an object"))
        return answer.value

    async def _serve(
        self,
        how: str,
        method: str,
        scope: CallScope,
        arguments: Mapping[str, Any],
        more: Mapping[str, Any],
    ) -> "_Served":
        """Have the process call a method; take what it changed in the metadata of the request."""
        process = await self._keeper.ready()
        if not self.has(method):
            raise make_failure(self.plugin, f"it has no method {method!r}")
        names = self._keeper.facts.parameters(method).names
        settings = await self._user_settings(names, scope)
        questions = self._keeper.questions
        call = questions.begin(scope)
        served = None
        try:
            told = {**render_call(call, names, arguments, settings), **more}
            header = {"do": how, "method": method, "call": call.number}
            answer = await process.ask(header, PipeData(told))
            if "metadata" in answer.value:
                take_metadata(scope.metadata, answer.value["metadata"])
            served = _Served(process, questions, call, answer)
            return served
        except PluginError as failure:
            if not process.is_alive:
                self._keeper.note(method, failure.message)
            raise
        except asyncio.CancelledError:
            process.tell_soon({"do": "cancel", "call": call.number})
            raise
        except MALFORMED_ERRORS as error:
            raise process.spoil(error) from error
        finally:
            if served is None:
                questions.end(call)

    async def _repeat(
        self,
        method: str,
        name: str,
        scope: CallScope,
        values: Sequence[bytes],
        arguments: Arguments,
    ) -> Sequence[Result]:
        with self._calls.busy():
            more = {"name": name, "values": [EncodedJson([value]) for value in values]}
            served = await self._serve("repeat", method, scope, arguments(), more)
            served.end()
        try:
            told = served.answer.value["results"]
            return [_result(one, value) for one, value in zip(told, values, strict=True)]
        except MALFORMED_ERRORS as error:
            raise served.process.spoil(error) from error

    def _taken(self, served: "_Served", arguments: Mapping[str, Any]) -> Any:
        """Return what a call gave, once the body is what the call made of it."""
        told, process = served.answer.value, served.process
        try:
            if "body" in told:
                _change(arguments["body"], told["body"])
            outcome = PipeData(told["outcome"], served.answer.attachment)
            value = read_outcome(outcome, partial(self._open, process, served))
            if told["is_shared"]:
                value = {**value, METADATA: served.call.scope.metadata}
        except MALFORMED_ERRORS as error:
            raise process.spoil(error) from error
        return value

    def _outcome(self, process: PluginProcess, answer: PipeData) -> Any:
        try:
            return read_outcome(answer, partial(self._open, process, None))
        except MALFORMED_ERRORS as error:
            raise process.spoil(error) from error

    def _open(self, process: PluginProcess, served: "_Served | None", stream: int) -> PluginIterator:
        """Return a stream, and that of a call as a part of it."""

        def leave() -> None:
            self._calls.leave_soon()
            if served is not None:
                served.end()

        self._calls.enter()
        if served is not None:
            served.questions.keep(served.call)
        return open_stream(process, stream, self._parts.tasks, leave)


@dataclass(frozen=True, slots=True)
class _Served:
    """A call that a process has answered; whoever has it ends it."""

    process: PluginProcess
    questions: PluginQuestions
    call: OpenCall
    answer: PipeData

    def end(self) -> None:
        """Take note that the answer was taken, or that a stream of it has ended."""
        self.questions.end(self.call)


@dataclass(frozen=True, slots=True)
class _ProcessCalls:
    """A `plugins.repeated_calls.RepeatedCall` of a method in a process."""

    repeat: Callable[[Sequence[bytes], Arguments], Awaitable[Sequence[Result]]]

    async def run(self, values: Sequence[bytes], arguments: Arguments) -> Sequence[Result]:
        return await self.repeat(values, arguments)


def _result(told: Any, value: bytes) -> Result:
    """Return what came of a value: itself for None, another object, or a problem."""
    if told is None:
        return value
    if "problem" in told:
        return read_line(told["problem"])
    if not isinstance(told["value"], dict):
        raise ValueError("a piece is an object")
    return orjson.dumps(told["value"])


def _change(body: dict[str, Any], changed: Any) -> None:
    """Make a body what the plugin made of it in place; the metadata are the request's own."""
    if not isinstance(changed, dict):
        raise ValueError("a body is an object")
    shared = {METADATA: body[METADATA]} if METADATA in body else {}
    body.clear()
    body.update({**changed, **shared})
