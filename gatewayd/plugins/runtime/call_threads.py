"""Threads for synchronous code of plugins: each call has its own, so that an endless call blocks no other.

Starting a thread costs more than most calls, so idle threads wait for further calls of their plugin.
"""

import asyncio
import contextvars
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from gatewayd.plugins.runtime.event_loop_thread import CrossThreadReply
from gatewayd.plugins.runtime.interrupts import StoppableCode
from gatewayd.plugins.runtime.invoke import PluginOutcome
from gatewayd.plugins.runtime.iterators import AbandonedCalls, ThreadProducer

SWITCH_INTERVAL_SECONDS: Final = 0.0005
"""Seconds that a thread may hold the interpreter while others wait. Each answer waits several such intervals
for each plugin that computes: with the 5 ms of Python three such plugins delay a request by over 100 ms."""

IDLE_SECONDS: Final = 5.0
"""Seconds that an idle thread waits for the next call."""

MAX_IDLE_THREADS: Final = 4
"""Maximum number of idle threads of one plugin."""


class SwitchIntervalGuard:
    """Shortens the switch interval of threads while a plugin is loaded, so that the daemon waits less.

    `begin` and `end` may be called from any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._living = 0
        self._before = 0.0

    def begin(self) -> None:
        """Count a plugin that is being loaded."""
        with self._lock:
            self._living += 1
            if self._living == 1:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._before, SWITCH_INTERVAL_SECONDS))

    def end(self) -> None:
        """Count a plugin that has ended."""
        with self._lock:
            self._living -= 1
            if self._living == 0:
                sys.setswitchinterval(self._before)


class CallThreads:
    """Threads of one plugin for synchronous calls: one for each running call, reused for later calls.

    `left` counts the calls that still run after they were stopped.
    """

    def __init__(self, left: AbandonedCalls) -> None:
        self._left = left
        self._idle: deque[_CallThread] = deque()
        self._is_closed = False

    async def run(
        self, work: Callable[[], Any], context: contextvars.Context, on_left: Callable[[], object]
    ) -> PluginOutcome:
        """Run synchronous code in a thread; an iterator that it returns is served there, as a ThreadProducer.

        A cancellation interrupts the code without waiting for it. The code is counted until it ends, and its
        result is dropped.
        """
        call = _Call(work, context, self._left)
        self._thread().calls.put(call)
        try:
            return await call.reply.future
        except asyncio.CancelledError:
            if call.leave():
                on_left()
            raise

    def close(self) -> None:
        """End the idle threads; the others end with their calls."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().calls.put(None)

    def _thread(self) -> "_CallThread":
        try:
            return self._idle.pop()
        except IndexError:
            made = _CallThread(self)
            made.start()
            return made

    def keep(self, thread: "_CallThread") -> bool:
        """Make the calling thread idle; False when it has to end."""
        if self._is_closed or len(self._idle) >= MAX_IDLE_THREADS:
            return False
        self._idle.append(thread)
        # `close` may have run meanwhile, and a call may have been assigned to this thread before it.
        return not (self._is_closed and self.dismiss(thread))

    def dismiss(self, thread: "_CallThread") -> bool:
        """Remove the calling thread from the idle ones; False when a call was assigned to it."""
        try:
            self._idle.remove(thread)
        except ValueError:
            return False
        return True


class _CallThread(threading.Thread):
    """A thread that serves calls, one at a time."""

    def __init__(self, threads: CallThreads) -> None:
        super().__init__(name="plugin call", daemon=True)
        self._threads = threads
        self.calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()

    def run(self) -> None:
        """Serve calls until none arrives within IDLE_SECONDS."""
        is_kept = True
        while is_kept and (call := self._next()) is not None:
            is_kept = call.context.run(self._serve, call)

    def _serve(self, call: "_Call") -> bool:
        """Run a call; return whether to wait for the next."""
        outcome = call.run()
        if isinstance(outcome.value, ThreadProducer):
            call.give(outcome)
            outcome.value.serve()
            return self._rest()
        # Become idle before the reply, since its receiver may call again at once.
        is_kept = self._rest()
        call.give(outcome)
        return is_kept

    def _rest(self) -> bool:
        # Code may have set an event loop for its thread, which the next call must not get.
        asyncio.set_event_loop(None)
        return self._threads.keep(self)

    def _next(self) -> "_Call | None":
        while True:
            try:
                return self.calls.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                if self._threads.dismiss(self):
                    return None


class _Call:
    """One synchronous call."""

    def __init__(self, work: Callable[[], Any], context: contextvars.Context, left: AbandonedCalls) -> None:
        self.context = context
        self.reply: CrossThreadReply[PluginOutcome] = CrossThreadReply()
        self._work = work
        self._left = left
        self._code = StoppableCode()
        self._lock = threading.Lock()
        self._outcome: PluginOutcome | None = None
        self._is_left = False

    def run(self) -> PluginOutcome:
        """Run the code; called in its thread."""
        outcome = self._code.run(self._work)
        if outcome.error is None and hasattr(type(outcome.value), "__next__"):
            return PluginOutcome(ThreadProducer(outcome.value, self._left))
        return outcome

    def give(self, outcome: PluginOutcome) -> None:
        """Reply with the outcome, or drop it when the caller has left."""
        with self._lock:
            self._outcome = outcome
            is_left = self._is_left
        if is_left:
            self._left.add(-1)
            _drop(outcome)
        else:
            self.reply.give(outcome)

    def leave(self) -> bool:
        """Stop waiting and interrupt the code; return whether it still runs."""
        with self._lock:
            outcome = self._outcome
            if outcome is None:
                self._is_left = True
                self._left.add(1)
        if outcome is not None:
            _drop(outcome)
            return False
        self._code.stop()
        return True


def _drop(outcome: PluginOutcome) -> None:
    if isinstance(outcome.value, ThreadProducer):
        outcome.value.abandon()
