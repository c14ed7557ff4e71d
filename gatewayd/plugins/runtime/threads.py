"""Plain code of plugins, each call in a thread of its own: one that never returns takes nobody's place.

Starting a thread costs more than most calls, so threads wait for further calls of their plugin.
"""

import asyncio
import contextvars
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from gatewayd.plugins.runtime.interrupts import StoppableCode
from gatewayd.plugins.runtime.invoke import CallOutcome
from gatewayd.plugins.runtime.iterators import AbandonedCalls, ThreadProducer
from gatewayd.plugins.runtime.thread_futures import CrossThreadReply

SWITCH_INTERVAL_SECONDS: Final = 0.0005
"""Seconds that a thread may compute while others wait. Each answer waits several turns for each plugin that
computes: with the 5 ms of Python three such plugins make a request last more than 100 ms."""

IDLE_SECONDS: Final = 5.0
"""Seconds that a thread waits for the next call."""

MAX_IDLE_THREADS: Final = 4
"""Threads of one plugin that wait for the next call."""


class SwitchIntervalGuard:
    """Lets threads compute for shorter turns while a plugin lives, so that the daemon's loop waits less.

    Plugins begin and end in threads of their own.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._living = 0
        self._before = 0.0

    def begin(self) -> None:
        """Count a plugin that begins to live."""
        with self._lock:
            self._living += 1
            if self._living == 1:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._before, SWITCH_INTERVAL_SECONDS))

    def end(self) -> None:
        """Count one that has ended."""
        with self._lock:
            self._living -= 1
            if self._living == 0:
                sys.setswitchinterval(self._before)


class CallThreads:
    """Threads of one plugin for plain calls: one for each call that runs, kept for a while for the next.

    `left` counts the calls that run on after they were stopped.
    """

    def __init__(self, left: AbandonedCalls) -> None:
        self._left = left
        self._idle: deque[_CallThread] = deque()
        self._is_closed = False

    async def run(
        self, work: Callable[[], Any], context: contextvars.Context, on_left: Callable[[], object]
    ) -> CallOutcome:
        """Run plain code in a thread; an iterator that it returns is served there, as a ThreadProducer.

        Being cancelled interrupts the code and does not wait for it: it is counted until it ends, and its
        result is thrown away.
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
        """End the threads that wait for a call; the others end with their calls."""
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
        """Let a thread wait for the next call; called there. False when it is not needed."""
        if self._is_closed or len(self._idle) >= MAX_IDLE_THREADS:
            return False
        self._idle.append(thread)
        # A call may be on its way to it already, although the others were told to end meanwhile.
        return not (self._is_closed and self.dismiss(thread))

    def dismiss(self, thread: "_CallThread") -> bool:
        """Let a thread that waits end; called there. False when a call is on its way to it."""
        try:
            self._idle.remove(thread)
        except ValueError:
            return False
        return True


class _CallThread(threading.Thread):
    """Serves one call after the other."""

    def __init__(self, threads: CallThreads) -> None:
        super().__init__(name="plugin call", daemon=True)
        self._threads = threads
        self.calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()

    def run(self) -> None:
        """Serve calls until there are none for a while."""
        is_kept = True
        while is_kept and (call := self._next()) is not None:
            is_kept = call.context.run(self._serve, call)

    def _serve(self, call: "_Call") -> bool:
        """Run a call, and tell whether to wait for the next."""
        outcome = call.run()
        if isinstance(outcome.value, ThreadProducer):
            call.give(outcome)
            outcome.value.serve()
            return self._rest()
        # Whoever gets the answer may call again at once.
        is_kept = self._rest()
        call.give(outcome)
        return is_kept

    def _rest(self) -> bool:
        # A loop that plain code sets for its thread is not that of the next call.
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
    """One plain call."""

    def __init__(self, work: Callable[[], Any], context: contextvars.Context, left: AbandonedCalls) -> None:
        self.context = context
        self.reply: CrossThreadReply[CallOutcome] = CrossThreadReply()
        self._work = work
        self._left = left
        self._code = StoppableCode()
        self._lock = threading.Lock()
        self._outcome: CallOutcome | None = None
        self._is_left = False

    def run(self) -> CallOutcome:
        """Run the code; called in its thread."""
        outcome = self._code.run(self._work)
        if outcome.error is None and hasattr(type(outcome.value), "__next__"):
            return CallOutcome(ThreadProducer(outcome.value, self._left))
        return outcome

    def give(self, outcome: CallOutcome) -> None:
        """Hand over what came of it, if it is still waited for."""
        with self._lock:
            self._outcome = outcome
            is_left = self._is_left
        if is_left:
            self._left.add(-1)
            _drop(outcome)
        else:
            self.reply.give(outcome)

    def leave(self) -> bool:
        """Wait no longer; interrupts the code and is true where it still runs."""
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


def _drop(outcome: CallOutcome) -> None:
    if isinstance(outcome.value, ThreadProducer):
        outcome.value.abandon()
