"""A method that is called for one value after the other, such as `stream` for the events of an answer.

Values and results are JSON as bytes, so that nothing which one side changes later is seen by the other. All
values that are there go to the plugin in one crossing: a crossing costs more than most calls.
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
from gatewayd.plugins.runtime.invoke import CallOutcome, PluginError, run_guarded, run_guarded_async
from gatewayd.plugins.runtime.runner import PluginRunner, needs_plugin_loop

Result = bytes | str
"""What came of a value: JSON, or the problem because of which there is none."""

Arguments = Callable[[], Mapping[str, Any]]
"""Makes arguments once somebody needs them."""

MAX_ABANDONED_RUNS: Final = 3
"""Times in a row that a method gives up inline before it is not tried any more."""


class RepeatedCall(Protocol):
    """One method within one request."""

    async def run(self, values: Sequence[bytes], arguments: Arguments) -> Sequence[Result]:
        """Call the method for each value, in their order, and return what came of each.

        A value that is left as it was is the same object. `arguments` makes those beside the reserved ones.
        Raises PluginError when it cannot be called at all. Being cancelled stops the method, and it is not
        called for the values that are left.
        """
        ...


@dataclass(slots=True)
class BoundMethod:
    """A method as it is at one moment; `given` makes arguments of those of the gateway's, in the plugin."""

    function: Callable[..., Any]
    names: frozenset[str]
    given: Callable[[Mapping[str, Any]], dict[str, Any]]
    context: contextvars.Context


@dataclass(frozen=True, slots=True)
class RepeatedMethod:
    """Which method is called, with values under which name, and how to get at it.

    `find_inline` gives what runs without a crossing, if the method as it is has such.
    """

    method: str
    name: str
    bind: Callable[[Mapping[str, Any]], BoundMethod]
    find_settings: Callable[[], Awaitable[Mapping[str, Any]]]
    find_inline: Callable[[], InlineMethod | None]


class MethodCalls:
    """A RepeatedCall of a method in its plugin's home or threads, or inline where that goes.

    What the user has set is read once; valves of administrators count from the next crossing on.
    """

    def __init__(self, runner: PluginRunner, repeated: RepeatedMethod) -> None:
        self._runner = runner
        self._repeated = repeated
        self._settings: Mapping[str, Any] | None = None
        self._given_up = 0

    async def run(self, values: Sequence[bytes], arguments: Arguments) -> Sequence[Result]:
        """Call the method for each value."""
        made = self._run_inline(values)
        if len(made) == len(values):
            return made
        rest = values[len(made) :]
        try:
            return [*made, *await self._cross(rest, arguments())]
        except PluginError as failure:
            if not made:
                raise
            return [*made, *[failure.message] * len(rest)]

    def _run_inline(self, values: Sequence[bytes]) -> list[bytes]:
        """Return results of the first values, as many as the method gives inline."""
        inline = self._repeated.find_inline() if self._given_up < MAX_ABANDONED_RUNS else None
        made = [] if inline is None else inline.run_all(values)
        if len(made) == len(values):
            self._given_up = 0
        else:
            self._given_up += 1
        return made

    async def _cross(self, values: Sequence[bytes], arguments: Mapping[str, Any]) -> list[Result]:
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
        # A task that has cancelled itself, and caught that, gets no further value.
        return results + [StoppedError().message] * (len(values) - len(results))

    def _result(self, outcome: CallOutcome) -> Result:
        if outcome.error is not None:
            return self._runner.failure(self._repeated.method, outcome.error).message
        result: Result = outcome.value
        return result


class CallBatch:
    """The values of one crossing; everything but `stop` is called where the plugin runs.

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
        self.outcomes: list[CallOutcome] = []

    def stop(self) -> None:
        """Call the method no more."""
        self._is_stopped = True

    def run(self) -> None:
        """Call a plain method for each value."""
        arguments = self._given()
        for value in self._values:
            if self._is_stopped or is_stopped():
                return
            outcome = run_guarded(lambda: self._call(arguments, value))  # noqa: B023 - called at once
            if isinstance(outcome.error, Interrupted):
                raise outcome.error
            self.outcomes.append(outcome if inspect.isawaitable(outcome.value) else _rendered(outcome))

    async def run_awaited(self) -> None:
        """Call a method that is awaited for each value."""
        arguments = self._given()
        for value in self._values:
            if self._is_stopped or _is_cancelled():
                return
            self.outcomes.append(await _awaited(run_guarded(lambda: self._call(arguments, value))))  # noqa: B023

    def is_pending(self) -> bool:
        """Tell whether a plain method gave something to be awaited."""
        return any(inspect.isawaitable(outcome.value) for outcome in self.outcomes)

    async def settle(self) -> None:
        """Await what a plain method gave to be awaited."""
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
    """Tell whether this task was cancelled, although the plugin may have caught that."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _awaited(outcome: CallOutcome) -> CallOutcome:
    if outcome.error is None and inspect.isawaitable(outcome.value):
        outcome = await run_guarded_async(lambda: _same(outcome.value))
    return _rendered(outcome)


def _same(value: Awaitable[Any]) -> Awaitable[Any]:
    return value


def _rendered(outcome: CallOutcome) -> CallOutcome:
    """Return what came of a call with its value as JSON, or with the problem as text."""
    if outcome.error is not None:
        return outcome
    value = outcome.value
    if value is None:
        return CallOutcome("it returned nothing")
    if not isinstance(value, dict):
        return CallOutcome(f"it returned a {type(value).__name__}")
    try:
        return CallOutcome(orjson.dumps(value))
    except TypeError as error:
        return CallOutcome(f"it is not JSON: {error}")
