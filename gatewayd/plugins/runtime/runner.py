"""Runs code of one plugin where it belongs, in its home or in a thread; what it raises is one failure."""

import asyncio
import contextvars
import functools
import inspect
import logging
from collections.abc import Callable
from functools import partial
from types import FunctionType, MethodType
from typing import Any, Final, Protocol

from gatewayd.errors import GatewayError
from gatewayd.plugins.records import Plugin, log_fields
from gatewayd.plugins.runtime.call_context import CallInfo, plugin_context
from gatewayd.plugins.runtime.event_loop_thread import PluginLoop
from gatewayd.plugins.runtime.invoke import FailureDetails, PluginError, read_failure
from gatewayd.plugins.runtime.iterators import AbandonedCalls, PluginIterator, TaskProducer, ThreadProducer
from gatewayd.plugins.runtime.open_calls import OpenCalls
from gatewayd.plugins.runtime.threads import CallThreads

log = logging.getLogger(__name__)

HOOK_SECONDS: Final = 60.0
"""Seconds for answers that no plugin should need long for: hooks, settings."""

ACCESSOR_SECONDS: Final = 10.0
"""Seconds for an answer that somebody looks at a screen for: the description of valves."""

REACTION_SECONDS: Final = 0.5
"""Seconds for plain code to end once it was interrupted; what still runs then is told."""

_VALUES: Final = frozenset({dict, list, str, int, bool, type(None)})
"""Types of which it is known that nothing is to be awaited or iterated."""

_AWAITED_FLAGS: Final = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_AWAITED: Final = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)


class ProblemRecorder(Protocol):
    """Hears of what goes wrong in a plugin."""

    def __call__(self, plugin: Plugin, doing: str, sentence: str) -> None:
        """Keep a problem as the last one of the plugin."""
        ...


class PluginRunner:
    """Runs code of one plugin, and knows how many calls are open.

    `path` is the file name of the plugin's code in tracebacks, `base` the context of what serves no call.
    """

    def __init__(
        self, plugin: Plugin, home: PluginLoop, path: str, base: contextvars.Context, noting: ProblemRecorder
    ) -> None:
        self._plugin = plugin
        self._home = home
        self._path = path
        self._base = base
        self._noting = noting
        self._told = log_fields(plugin.family, plugin.id)
        self._loop = asyncio.get_running_loop()
        self._left = AbandonedCalls()
        self._threads = CallThreads(self._left)
        self.calls = OpenCalls()

    @property
    def left_behind(self) -> int:
        """How many plain calls still run after they were stopped."""
        return self._left.count

    async def stop(self, timeout: float) -> bool:  # noqa: ASYNC109 - a bound of the thread's end
        """End the home; False when it has not ended after `timeout` seconds."""
        self._threads.close()
        return await self._home.stop(timeout)

    async def run(
        self, doing: str, function: Callable[..., Any], begin: Callable[[], Any], context: contextvars.Context
    ) -> Any:
        """Return what `begin`, which calls `function`, gives; iterators and generators as Items.

        Raises PluginError. Cancelling reaches asynchronous code, and plain code that is no blocked call;
        the caller does not wait for either.
        """
        with self.calls.busy():
            value = await self._value(doing, function, begin, context)
            return self.items(value, doing, context.copy()) if _is_iterated(value) else value

    def items(self, source: Any, doing: str, context: contextvars.Context) -> PluginIterator:
        """Return the items of an iterator of the plugin; it counts as a call until it has ended."""
        self.calls.enter()
        return self._items(source, doing, context)

    async def ask(self, doing: str, work: Callable[[], Any], patience: float | None = None) -> Any:
        """Return what short work gives: a coroutine function at home, plain work in a thread.

        Plain work gets along while the plugin keeps its home busy, even by waiting for this very answer.
        Raises the GatewayError that the work raises, PluginError for anything else and when it takes longer
        than `patience` seconds.
        """
        context = plugin_context(CallInfo(self._plugin.family, self._plugin.id), self._base)
        seconds = HOOK_SECONDS if patience is None else patience
        try:
            async with asyncio.timeout(seconds):
                if needs_plugin_loop(work):
                    outcome = await self._home.attempt(partial(_awaited, work), context)
                else:
                    outcome = await self._threads.run(work, context, lambda: None)
        except TimeoutError:
            raise self._late(seconds) from None
        if isinstance(outcome.error, GatewayError):
            raise outcome.error
        if outcome.error is not None:
            raise self.failure(doing, outcome.error) from outcome.error
        return outcome.value

    async def hook(self, name: str, function: Callable[..., Any]) -> None:
        """Run a hook; what goes wrong is noted and not raised."""
        context = plugin_context(CallInfo(self._plugin.family, self._plugin.id), self._base)
        try:
            async with asyncio.timeout(HOOK_SECONDS):
                await self.run(name, function, function, context)
        except TimeoutError:
            self._noting(self._plugin, name, self._late(HOOK_SECONDS).message)
        except PluginError as failure:
            log.warning("a hook failed", extra={**self._told, "hook": name})
            self._noting(self._plugin, name, failure.message)

    def failure(self, doing: str, error: BaseException) -> PluginError:
        """Return the failure that something which the plugin raised is, logged and noted."""
        failed = read_failure(error, self._path)
        failure = PluginError(self._plugin.kind.value, self._plugin.id, failed)
        where = {} if failed.line is None else {"line": failed.line}
        log.info(
            "a plugin failed",
            extra={**self._told, "doing": doing, "error": failed.sentence, **where},
            exc_info=error if log.isEnabledFor(logging.DEBUG) else None,
        )
        self._noting(self._plugin, doing, failure.message)
        return failure

    async def _value(
        self, doing: str, function: Callable[..., Any], begin: Callable[[], Any], context: contextvars.Context
    ) -> Any:
        if needs_plugin_loop(function):
            outcome = await self._home.attempt(partial(_awaited, begin), context)
        else:
            on_left = partial(self._loop.call_later, REACTION_SECONDS, self._note_left, doing)
            outcome = await self._threads.run(begin, context, on_left)
            if outcome.error is None and _is_awaitable(outcome.value):
                again = partial(_awaited, partial(_same, outcome.value))
                outcome = await self._home.attempt(again, context.copy())
        if outcome.error is not None:
            raise self.failure(doing, outcome.error) from outcome.error
        return outcome.value

    def _items(self, value: Any, doing: str, context: contextvars.Context) -> PluginIterator:
        producer: TaskProducer | ThreadProducer
        if isinstance(value, ThreadProducer):
            producer = value
        elif hasattr(type(value), "__anext__"):
            producer = TaskProducer(self._home, value, context)
        else:
            producer = ThreadProducer(value, self._left)
            producer.start(context)
        producer.ended.add_done_callback(lambda _: self.calls.leave_soon())
        return PluginIterator(producer, partial(self.failure, doing))

    def _note_left(self, doing: str) -> None:
        count = self.left_behind
        if count == 0:
            return
        sentence = "1 call still runs after it was stopped"
        if count != 1:
            sentence = f"{count} calls still run after they were stopped"
        self._noting(self._plugin, doing, sentence)

    def _late(self, seconds: float) -> PluginError:
        late = FailureDetails(f"it did not answer within {seconds:g} s")
        return PluginError(self._plugin.kind.value, self._plugin.id, late)


def _is_awaitable(value: Any) -> bool:
    return type(value) not in _VALUES and inspect.isawaitable(value)


def _is_iterated(value: Any) -> bool:
    if type(value) in _VALUES:
        return False
    return isinstance(value, ThreadProducer) or any(
        hasattr(type(value), name) for name in ("__anext__", "__next__")
    )


def needs_plugin_loop(function: Callable[..., Any]) -> bool:
    """Tell whether code is asynchronous, so that it needs the loop of its home."""
    inner = function.func if isinstance(function, functools.partial) else function
    plain = inner.__func__ if type(inner) is MethodType else inner
    if type(plain) is FunctionType:
        return bool(plain.__code__.co_flags & _AWAITED_FLAGS)
    return any(check(one) for check in _AWAITED for one in (inner, type(inner).__call__))


async def _awaited(begin: Callable[[], Any]) -> Any:
    result = begin()
    return await result if inspect.isawaitable(result) else result


def _same(value: Any) -> Any:
    return value
