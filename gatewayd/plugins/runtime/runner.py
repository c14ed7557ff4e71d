"""Runner of the code of one plugin, on its event loop or in a thread; exceptions become PluginErrors."""

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
from gatewayd.plugins.runtime.call_threads import CallThreads
from gatewayd.plugins.runtime.event_loop_thread import PluginLoop
from gatewayd.plugins.runtime.invoke import FailureDetails, PluginError, read_failure
from gatewayd.plugins.runtime.iterators import AbandonedCalls, PluginIterator, TaskProducer, ThreadProducer
from gatewayd.plugins.runtime.open_calls import OpenCalls

log = logging.getLogger(__name__)

HOOK_SECONDS: Final = 60.0
"""Time limit of hooks and settings, in seconds."""

ACCESSOR_SECONDS: Final = 10.0
"""Time limit of attributes and valve schemas, for which a user waits, in seconds."""

REACTION_SECONDS: Final = 0.5
"""Seconds for interrupted synchronous code to end, before it is recorded as a problem."""

_VALUES: Final = frozenset({dict, list, str, int, bool, type(None)})
"""Types that are neither awaitable nor an iterator."""

_AWAITED_FLAGS: Final = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_AWAITED: Final = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)


class ProblemRecorder(Protocol):
    """Receiver of the problems of plugins."""

    def __call__(self, plugin: Plugin, doing: str, sentence: str) -> None:
        """Record the last problem of a plugin."""
        ...


class PluginRunner:
    """Runs code of one plugin and counts its open calls.

    `path` is the file name of its source in tracebacks, `base` the context of code outside of calls.
    """

    def __init__(
        self,
        plugin: Plugin,
        plugin_loop: PluginLoop,
        path: str,
        base: contextvars.Context,
        recorder: ProblemRecorder,
    ) -> None:
        self._plugin = plugin
        self._plugin_loop = plugin_loop
        self._path = path
        self._base = base
        self._recorder = recorder
        self._log_fields = log_fields(plugin.family, plugin.id)
        self._loop = asyncio.get_running_loop()
        self._left = AbandonedCalls()
        self._threads = CallThreads(self._left)
        self.calls = OpenCalls()

    @property
    def left_behind(self) -> int:
        """Number of synchronous calls that still run after they were stopped."""
        return self._left.count

    async def stop(self, timeout: float) -> bool:  # noqa: ASYNC109 - a bound of the thread's end
        """End the plugin loop; False when it does not end."""
        self._threads.close()
        return await self._plugin_loop.stop(timeout)

    async def run(
        self, doing: str, function: Callable[..., Any], begin: Callable[[], Any], context: contextvars.Context
    ) -> Any:
        """Return the result of `begin`, which calls `function`; an iterator becomes a PluginIterator.

        Raises PluginError. A cancellation stops asynchronous code, and synchronous code that is not blocked,
        without waiting for either.
        """
        with self.calls.busy():
            value = await self._value(doing, function, begin, context)
            return self.items(value, doing, context.copy()) if _is_iterated(value) else value

    def items(self, source: Any, doing: str, context: contextvars.Context) -> PluginIterator:
        """Return the items of an iterator of the plugin, which counts as an open call until it ends."""
        self.calls.enter()
        return self._items(source, doing, context)

    async def ask(self, doing: str, work: Callable[[], Any], patience: float | None = None) -> Any:
        """Return the result of short work: a coroutine function on the plugin loop, else in a thread.

        Synchronous work proceeds even while the plugin blocks its loop. Raises the GatewayError that the work
        raises, and PluginError for any other exception or after `patience` seconds.
        """
        context = plugin_context(CallInfo(self._plugin.family, self._plugin.id), self._base)
        seconds = HOOK_SECONDS if patience is None else patience
        try:
            async with asyncio.timeout(seconds):
                if needs_plugin_loop(work):
                    outcome = await self._plugin_loop.attempt(partial(_awaited, work), context)
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
        """Run a hook; failures are recorded and not raised."""
        context = plugin_context(CallInfo(self._plugin.family, self._plugin.id), self._base)
        try:
            async with asyncio.timeout(HOOK_SECONDS):
                await self.run(name, function, function, context)
        except TimeoutError:
            self._recorder(self._plugin, name, self._late(HOOK_SECONDS).message)
        except PluginError as failure:
            log.warning("plugin hook failed", extra={**self._log_fields, "hook": name})
            self._recorder(self._plugin, name, failure.message)

    def failure(self, doing: str, error: BaseException) -> PluginError:
        """Log and record an exception of the plugin, and return it as a PluginError."""
        failed = read_failure(error, self._path)
        failure = PluginError(self._plugin.kind.value, self._plugin.id, failed)
        where = {} if failed.line is None else {"line": failed.line}
        log.info(
            "plugin failed",
            extra={**self._log_fields, "doing": doing, "error": failed.sentence, **where},
            exc_info=error if log.isEnabledFor(logging.DEBUG) else None,
        )
        self._recorder(self._plugin, doing, failure.message)
        return failure

    async def _value(
        self, doing: str, function: Callable[..., Any], begin: Callable[[], Any], context: contextvars.Context
    ) -> Any:
        if needs_plugin_loop(function):
            outcome = await self._plugin_loop.attempt(partial(_awaited, begin), context)
        else:
            on_left = partial(self._loop.call_later, REACTION_SECONDS, self._note_left, doing)
            outcome = await self._threads.run(begin, context, on_left)
            if outcome.error is None and _is_awaitable(outcome.value):
                again = partial(_awaited, partial(_same, outcome.value))
                outcome = await self._plugin_loop.attempt(again, context.copy())
        if outcome.error is not None:
            raise self.failure(doing, outcome.error) from outcome.error
        return outcome.value

    def _items(self, value: Any, doing: str, context: contextvars.Context) -> PluginIterator:
        producer: TaskProducer | ThreadProducer
        if isinstance(value, ThreadProducer):
            producer = value
        elif hasattr(type(value), "__anext__"):
            producer = TaskProducer(self._plugin_loop, value, context)
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
        self._recorder(self._plugin, doing, sentence)

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
    """Whether code is asynchronous and needs the plugin loop."""
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
