"""Reads what the gateway says to the process of a plugin."""

import os
import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from gatewayd.plugins.runtime.invoke import run_guarded
from gatewayd.workers import ParentPipe

Take = Callable[[dict[str, Any], bytes], object]
"""Is given each message but those that ask for a sign of life, in the thread that reads."""


def read_messages(parent: ParentPipe, take: Take) -> None:
    """Hand on what the gateway says until it closes the pipe, and answer that this process is alive.

    Reading never waits for writing: the gateway may wait for this process to read before it reads itself.
    """
    pings: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def answer() -> None:
        while True:
            parent.answer(pings.get(), {})

    threading.Thread(target=answer, name="signs of life", daemon=True).start()
    for message, blob in parent.messages():
        if message["do"] == "ping":
            pings.put(message)
        else:
            take(message, blob)


def serve_messages(parent: ParentPipe, take: Take) -> None:
    """Hand on what the gateway says, and end the process when it says nothing more."""
    outcome = run_guarded(partial(read_messages, parent, take))
    if outcome.error is not None:
        end_process(outcome.error)
    # The code of a plugin cannot be ended in another way.
    os._exit(0)


def end_process(error: BaseException) -> None:
    """End the process, saying why."""
    os.write(2, f"{type(error).__name__}: {error}\n".encode("utf-8", "replace"))
    os._exit(1)
