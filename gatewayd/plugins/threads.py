"""Plain code of plugins, each call in a thread of its own: one that never returns takes nobody's place."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from gatewayd.plugins.homes import give
from gatewayd.plugins.invoke import Outcome, attempt
from gatewayd.plugins.items import LeftBehind, ThreadProducer


async def run_in_thread(
    work: Callable[[], Any],
    context: contextvars.Context,
    left: LeftBehind,
    on_left: Callable[[], None],
) -> Outcome:
    """Run plain code in a new thread; an iterator that it returns is served there, as a ThreadProducer.

    Being cancelled leaves the thread behind: it is counted until it ends, and its result is thrown away.
    """
    future: Future[Outcome] = Future()
    thread = threading.Thread(
        target=context.run, args=(_work, work, future, left), name="plugin call", daemon=True
    )
    thread.start()
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        left.add(1)
        if future.cancel():
            on_left()
        else:
            left.add(-1)
            _drop(future.result())
        raise


def _work(work: Callable[[], Any], future: "Future[Outcome]", left: LeftBehind) -> None:
    outcome = attempt(work)
    if outcome.error is None and hasattr(type(outcome.value), "__next__"):
        outcome = Outcome(ThreadProducer(outcome.value, left))
    if not give(future, outcome):
        left.add(-1)
        _drop(outcome)
    if isinstance(outcome.value, ThreadProducer):
        outcome.value.serve()


def _drop(outcome: Outcome) -> None:
    if isinstance(outcome.value, ThreadProducer):
        outcome.value.abandon()
