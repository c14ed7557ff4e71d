"""Reader of the messages of the gateway in a plugin process."""

import os
import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from gatewayd.plugins.runtime.invoke import run_guarded
from gatewayd.workers import ParentPipe

Take = Callable[[dict[str, Any], bytes], object]
"""Handles each message but pings, in the reading thread."""


def read_messages(parent: ParentPipe, take: Take) -> None:
    """Pass on the messages of the gateway until it closes the pipe, and answer its pings.

    Reading never waits for writing, since the gateway may wait for this process to read first.
    """
    pings: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def answer() -> None:
        while True:
            parent.answer(pings.get(), {})

    threading.Thread(target=answer, name="pings", daemon=True).start()
    for message, blob in parent.messages():
        if message["do"] == "ping":
            pings.put(message)
        else:
            take(message, blob)


def serve_messages(parent: ParentPipe, take: Take) -> None:
    """Pass on the messages of the gateway, and end the process when the pipe is closed."""
    outcome = run_guarded(partial(read_messages, parent, take))
    if outcome.error is not None:
        end_process(outcome.error)
    # Code of a plugin may block a normal exit.
    os._exit(0)


def end_process(error: BaseException) -> None:
    """Write the error to stderr and end the process with status 1."""
    os.write(2, f"{type(error).__name__}: {error}\n".encode("utf-8", "replace"))
    os._exit(1)
