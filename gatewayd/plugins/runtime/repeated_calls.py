"""Repeated calls of one method within a request, such as `stream` for the events of an answer.

Values and results are JSON bytes, so that later changes on one side stay invisible to the other. All values
that are ready go to the thread of the plugin together, since a thread switch costs more than most calls.
"""

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

import orjson

from gatewayd.plugins.inline.methods import InlineMethod
from gatewayd.plugins.runtime.event_loop_thread import StoppedError
from gatewayd.plugins.runtime.interrupts import Interrupted, is_stopped
from gatewayd.plugins.runtime.invoke import PluginError, PluginOutcome, run_guarded, run_guarded_async
from gatewayd.plugins.runtime.runner import PluginRunner, needs_plugin_loop

Result = bytes | str
"""Result for a value: JSON as bytes, or an error sentence as str."""

Arguments = Callable[[], Mapping[str, Any]]
"""Makes the arguments on demand."""

MAX_ABANDONED_RUNS: Final = 3
"""Consecutive inline attempts that a method may abandon before inline calls are no longer tried."""


class RepeatedCall(Protocol):
    """One method for repeated calls within one request."""

    async def run(self, values: Sequence[bytes], arguments: Arguments) -> Sequence[Result]:
        """Call the method for each value in order, and return the result of each.

        An unchanged value is returned as the same object. `arguments` makes the arguments other than the
        reserved ones. Raises PluginError when the method cannot be called. A cancellation stops the method,
        which is not called for the remaining values.
        """
        ...


@dataclass(slots=True)
class BoundMethod:
    """A method at one moment; `given` makes its arguments in the thread of the plugin."""

    function: Callable[..., Any]
    names: frozenset[str]
    given: Callable[[Mapping[str, Any]], dict[str, Any]]
    context: contextvars.Context


@dataclass(frozen=True, slots=True)
class RepeatedMethod:
    """The method, the parameter `name` of its values, and functions to bind it.

    `find_inline` returns its inline form, None when it has none.
    """

    method: str
    name: str
    bind: Callable[[Mapping[str, Any]], BoundMethod]
    find_settings: Callable[[], Awaitable[Mapping[str, Any]]]
    find_inline: Callable[[], InlineMethod | None]


class MethodCalls:
    """A RepeatedCall of a method in the gateway: inline where possible, else in the thread of its plugin.

    User valves are read once. Changed valves take effect at the next thread switch.
    """

    def __init__(self, runner: PluginRunner, repeated: RepeatedMethod) -> None:
        self._runner = runner
        self._repeated = repeated
        self._settings: Mapping[str, Any] | None = None
        self._abandoned_runs = 0

    async def run(self, values: Sequence[bytes], arguments: Arguments) -> Sequence[Result]:
        """Call the method for each value."""
        results = self._run_inline(values)
        if len(results) == len(values):
            return results
        rest = values[len(results) :]
        try:
            return [*results, *await self._run_in_plugin(rest, arguments())]
        except PluginError as failure:
            if not results:
                raise
            return [*results, *[failure.message] * len(rest)]

    def _run_inline(self, values: Sequence[bytes]) -> list[bytes]:
        """Return the results of the leading values that the method handles inline."""
        inline = self._repeated.find_inline() if self._abandoned_runs < MAX_ABANDONED_RUNS else None
        results = [] if inline is None else inline.run_all(values)
        if len(results) == len(values):
            self._abandoned_runs = 0
        else:
            self._abandoned_runs += 1
        return results

    async def _run_in_plugin(self, values: Sequence[bytes], arguments: Mapping[str, Any]) -> list[Result]:
        repeated = self._repeated
        if self._settings is None:
            self._settings = await repeated.find_settings()
        bound = repeated.bind(self._settings)
        name = repeated.name if repeated.name in bound.names else None
        batch = CallBatch(bound.function, name, partial(bound.given, arguments), values)
        begin = batch.run_awaited if needs_plugin_loop(bound.function) else batch.run
        try:
            await self._runner.run(repeated.method, bound.function, begin, bound.context)
            if batch.is_pending():
                await self._runner.run(repeated.method, batch.settle, batch.settle, bound.context.copy())
        finally:
            batch.stop()
        results = [self._result(outcome) for outcome in batch.outcomes]
        # A task that cancelled itself and caught that gets no further values.
        return results + [StoppedError().message] * (len(values) - len(results))

    def _result(self, outcome: PluginOutcome) -> Result:
        if outcome.error is not None:
            return self._runner.failure(self._repeated.method, outcome.error).message
        result: Result = outcome.value
        return result


class CallBatch:
    """The values of one thread switch; all methods but `stop` are called in the thread of the plugin.

    `given` makes the other arguments, once.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        name: str | None,
        given: Callable[[], dict[str, Any]],
        values: Sequence[bytes],
    ) -> None:
        self._function = function
        self._name = name
        self._given = given
        self._values = values
        self._is_stopped = False
        self.outcomes: list[PluginOutcome] = []

    def stop(self) -> None:
        """Prevent further calls of the method."""
        self._is_stopped = True

    def run(self) -> None:
        """Call a synchronous method for each value."""
        arguments = self._given()
        for value in self._values:
            if self._is_stopped or is_stopped():
                return
            outcome = run_guarded(lambda: self._call(arguments, value))  # noqa: B023 - called at once
            if isinstance(outcome.error, Interrupted):
                raise outcome.error
            self.outcomes.append(outcome if inspect.isawaitable(outcome.value) else _rendered(outcome))

    async def run_awaited(self) -> None:
        """Call and await an asynchronous method for each value."""
        arguments = self._given()
        for value in self._values:
            if self._is_stopped or _is_cancelled():
                return
            self.outcomes.append(await _awaited(run_guarded(lambda: self._call(arguments, value))))  # noqa: B023

    def is_pending(self) -> bool:
        """Whether a synchronous method returned an awaitable."""
        return any(inspect.isawaitable(outcome.value) for outcome in self.outcomes)

    async def settle(self) -> None:
        """Await the awaitables that a synchronous method returned."""
        for place, outcome in enumerate(self.outcomes):
            if self._is_stopped or _is_cancelled():
                return
            if inspect.isawaitable(outcome.value):
                self.outcomes[place] = await _awaited(outcome)

    def _call(self, arguments: dict[str, Any], value: bytes) -> Any:
        if self._name is None:
            return self._function(**arguments)
        return self._function(**arguments, **{self._name: orjson.loads(value)})


def _is_cancelled() -> bool:
    """Whether this task was cancelled, even if the plugin caught that."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _awaited(outcome: PluginOutcome) -> PluginOutcome:
    if outcome.error is None and inspect.isawaitable(outcome.value):
        outcome = await run_guarded_async(lambda: _same(outcome.value))
    return _rendered(outcome)


def _same(value: Awaitable[Any]) -> Awaitable[Any]:
    return value


def _rendered(outcome: PluginOutcome) -> PluginOutcome:
    """Return the outcome with its value as JSON bytes, or an error sentence as str."""
    if outcome.error is not None:
        return outcome
    value = outcome.value
    if value is None:
        return PluginOutcome("it returned nothing")
    if not isinstance(value, dict):
        return PluginOutcome(f"it returned a {type(value).__name__}")
    try:
        return PluginOutcome(orjson.dumps(value))
    except TypeError as error:
        return PluginOutcome(f"it returned a value that is not JSON: {error}")
