"""Handle of a plugin in a process, with the interface of a plugin in the gateway."""

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
from gatewayd.plugins.isolation.supervisor import IsolationParts, ProcessSupervisor, read_line
from gatewayd.plugins.records import Plugin, log_fields
from gatewayd.plugins.runtime.arguments import MethodParameters, find_token
from gatewayd.plugins.runtime.context import CallScope
from gatewayd.plugins.runtime.invoke import PluginError
from gatewayd.plugins.runtime.iterators import PluginIterator
from gatewayd.plugins.runtime.open_calls import OpenCalls
from gatewayd.plugins.runtime.repeated_calls import Arguments, RepeatedCall, Result
from gatewayd.plugins.runtime.runner import ProblemRecorder

log = logging.getLogger(__name__)


class IsolatedPlugin:
    """A `runtime.handles.PluginHandle` over a process, which is restarted on demand.

    `runtime.instance.PluginInstance` has the full contracts of the methods.
    """

    def __init__(
        self, plugin: Plugin, parts: IsolationParts, recorder: ProblemRecorder, not_installed: str = ""
    ) -> None:
        self._supervisor = ProcessSupervisor(plugin, parts, recorder, self._begin_again, not_installed)
        self._parts = parts
        self._calls = OpenCalls()
        self._has_startup = False
        self._counted = parts.answering.services.counted.at(plugin.family.value)

    @property
    def plugin(self) -> Plugin:
        """The record of the plugin, with detected kind, specs and missing names."""
        return self._supervisor.plugin

    @property
    def supervisor(self) -> ProcessSupervisor:
        """The supervisor of its process."""
        return self._supervisor

    @property
    def left_behind(self) -> int:
        """Number of synchronous calls that still run after they were stopped."""
        return self._supervisor.facts.left_behind if self._supervisor.is_alive else 0

    async def start(self) -> None:
        """Start the process and load the plugin in it; PluginError when that fails."""
        await self._supervisor.start()

    def has(self, method: str) -> bool:
        """Whether the plugin has a method of that name."""
        return method in self._supervisor.facts.methods

    def value(self, name: str, default: Any = None) -> Any:
        """Return an attribute, from the facts that the process last sent."""
        if name in self._supervisor.facts.methods:
            return partial(self.call, name)
        return self._supervisor.facts.values.get(name, default)

    async def read(self, name: str) -> Any:
        """Return the current value of an attribute; a coroutine function for a method."""
        if name in self._supervisor.facts.methods:
            return partial(self.call, name)
        process = await self._supervisor.ready()
        return self._outcome(process, await process.ask({"do": "read", "name": name}))

    def flag(self, name: str, default: bool = False) -> bool:
        """Return the truth value of an attribute."""
        return (
            True
            if name in self._supervisor.facts.methods
            else self._supervisor.facts.flags.get(name, default)
        )

    def priority(self) -> int:
        """Return the valve `priority`; 0 without."""
        return self._supervisor.facts.priority

    def methods(self) -> list[str]:
        """Return the names of the public methods, sorted."""
        return list(self._supervisor.facts.public)

    def parameters(self, method: str) -> MethodParameters:
        """Return the parameters of a method."""
        return self._supervisor.facts.parameters(method)

    async def call(self, method: str, scope: CallScope, arguments: Mapping[str, Any]) -> Any:
        """Call a method with the arguments that it names.

        An iterator or generator is returned as a PluginIterator; other results must be JSON. Raises
        PluginError for every exception of the plugin, and when its process ends. A cancellation stops the
        code as in a thread.
        """
        self._counted.value += 1
        with self._calls.busy():
            served = await self._serve("call", method, scope, arguments, {})
            try:
                return self._read_result(served, arguments)
            finally:
                served.end()

    def repeated(self, method: str, name: str, scope: CallScope) -> RepeatedCall:
        """Return a method for repeated calls in one request; each value is passed as parameter `name`."""
        return _ProcessCalls(partial(self._repeat, method, name, scope))

    def is_idle(self, method: str) -> bool:
        """Whether a method is known to return its argument unchanged."""
        return method in self._supervisor.facts.idle

    def keep_for(self, owner: object) -> None:
        """Count `owner`, which makes further calls, as an open call until it is garbage-collected."""
        self._calls.keep_for(owner)

    def items(self, source: AsyncIterable[Any]) -> PluginIterator:
        """Return the items of the body of a response."""
        if not isinstance(source, PluginIterator):
            raise TypeError("expected a stream of its process")
        return source

    async def run_hook(self, name: str) -> None:
        """Run a hook such as `on_startup` if the plugin has it; exceptions are recorded and logged."""
        self._has_startup = self._has_startup or name == "on_startup"
        if not self.has(name):
            return
        try:
            process = await self._supervisor.ready()
            await process.ask({"do": "hook", "name": name})
        except PluginError as failure:
            log.warning(
                "plugin hook failed", extra={**log_fields(self.plugin.family, self.plugin.id), "hook": name}
            )
            self._supervisor.note(name, failure.message)

    async def refresh(self) -> None:
        """Do nothing: the process sends the facts that depend on the valves."""

    async def take(self, plugin: Plugin) -> bool:
        """Use another record with the same source; return whether its valves differ."""
        has_new_valves = plugin.valves != self.plugin.valves
        known = replace(plugin, kind=self.plugin.kind)
        if has_new_valves:
            await self._supervisor.take(known)
        else:
            self._supervisor.plugin = known
        return has_new_valves

    async def valves_schema(self, user: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """Return the JSON schema of the valves; None without valves."""
        return await self._schema(user, of_user=False)

    async def user_valves_schema(self, user: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """Return the JSON schema of the user valves; None without them."""
        return await self._schema(user, of_user=True)

    def has_user_valves(self) -> bool:
        """Whether the plugin has user valves."""
        return self._supervisor.facts.has_user_valves

    async def changed_valves(
        self, stored: Mapping[str, Any], values: Mapping[str, Any], *, of_user: bool = False
    ) -> dict[str, Any]:
        """Return the stored valves with `values` merged in, without storing them."""
        message = {"stored": dict(stored), "values": dict(values), "of_user": of_user}
        process = await self._supervisor.ready()
        answer = await process.ask({"do": "valves"}, PipeData(message))
        if not isinstance(answer.value, dict):
            raise process.spoil(ValueError("valves must be an object"))
        return answer.value

    async def retire(self, timeout: float) -> None:  # noqa: ASYNC109 - a bound of the end
        """Wait until no call is open, and end the process."""
        await self._calls.wait_idle()
        await self.end(timeout)

    async def end(self, timeout: float) -> None:  # noqa: ASYNC109 - a bound of the end
        """Run `on_shutdown`, and end the process with all that runs in it."""
        await self._supervisor.end(timeout)

    async def _begin_again(self) -> None:
        if self._has_startup:
            await self.run_hook("on_startup")

    async def _user_settings(self, names: frozenset[str], scope: CallScope) -> Mapping[str, Any]:
        services = self._parts.answering.services
        await find_token(names, scope, services)
        if "__user__" not in names or not self.has_user_valves():
            return {}
        user_id, plugin = scope.actor.user_id, self.plugin
        return await services.user_valves.find(user_id, plugin.family, plugin.id) or {}

    async def _schema(self, user: Mapping[str, Any] | None, *, of_user: bool) -> dict[str, Any] | None:
        process = await self._supervisor.ready()
        message = {"user": None if user is None else dict(user), "of_user": of_user}
        answer = await process.ask({"do": "schema"}, PipeData(message))
        if not isinstance(answer.value, dict | None):
            raise process.spoil(ValueError("a schema must be an object"))
        return answer.value

    async def _serve(
        self,
        how: str,
        method: str,
        scope: CallScope,
        arguments: Mapping[str, Any],
        more: Mapping[str, Any],
    ) -> "_Served":
        """Call a method in the process, and apply its changes to the metadata of the request."""
        process = await self._supervisor.ready()
        if not self.has(method):
            raise make_failure(self.plugin, f"it has no method {method!r}")
        names = self._supervisor.facts.parameters(method).names
        settings = await self._user_settings(names, scope)
        questions = self._supervisor.questions
        call = questions.begin(scope)
        served = None
        try:
            message = {**render_call(call, names, arguments, settings), **more}
            header = {"do": how, "method": method, "call": call.number}
            answer = await process.ask(header, PipeData(message))
            if "metadata" in answer.value:
                take_metadata(scope.metadata, answer.value["metadata"])
            served = _Served(process, questions, call, answer)
            return served
        except PluginError as failure:
            if not process.is_alive:
                self._supervisor.note(method, failure.message)
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
            message = served.answer.value["results"]
            return [_result(one, value) for one, value in zip(message, values, strict=True)]
        except MALFORMED_ERRORS as error:
            raise served.process.spoil(error) from error

    def _read_result(self, served: "_Served", arguments: Mapping[str, Any]) -> Any:
        """Return the result of a call, after its changes are applied to the body."""
        message, process = served.answer.value, served.process
        try:
            if "body" in message:
                _replace_body(arguments["body"], message["body"])
            outcome = PipeData(message["outcome"], served.answer.attachment)
            value = read_outcome(outcome, partial(self._open, process, served))
            if message["is_shared"]:
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
        """Open a stream; a stream of a call keeps the call open."""

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
    """A call that a process has answered; its holder calls `end`."""

    process: PluginProcess
    questions: PluginQuestions
    call: OpenCall
    answer: PipeData

    def end(self) -> None:
        """Count the end of the answer or of a stream."""
        self.questions.end(self.call)


@dataclass(frozen=True, slots=True)
class _ProcessCalls:
    """A `runtime.repeated_calls.RepeatedCall` of a method in a process."""

    repeat: Callable[[Sequence[bytes], Arguments], Awaitable[Sequence[Result]]]

    async def run(self, values: Sequence[bytes], arguments: Arguments) -> Sequence[Result]:
        return await self.repeat(values, arguments)


def _result(message: Any, value: bytes) -> Result:
    """Return the result for a value: the value itself for None, a changed object, or an error sentence."""
    if message is None:
        return value
    if "problem" in message:
        return read_line(message["problem"])
    if not isinstance(message["value"], dict):
        raise ValueError("an event must be an object")
    return orjson.dumps(message["value"])


def _replace_body(body: dict[str, Any], changed: Any) -> None:
    """Replace the content of a body in place, except its metadata."""
    if not isinstance(changed, dict):
        raise ValueError("a body must be an object")
    shared = {METADATA: body[METADATA]} if METADATA in body else {}
    body.clear()
    body.update({**changed, **shared})
