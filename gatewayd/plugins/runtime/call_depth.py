"""Limit of nested model requests: a plugin calls a model, whose plugin calls a model, and so on."""

import contextvars
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from gatewayd.errors import invalid

MAX_DEPTH: Final = 8

current_depth: Final[contextvars.ContextVar[int]] = contextvars.ContextVar("gatewayd_nesting", default=0)
"""Number of plugin requests that enclose the running code; it is copied into the threads of plugins."""


@contextmanager
def at_depth(level: int) -> Iterator[None]:
    """Run a block at a depth."""
    token = current_depth.set(level)
    try:
        yield
    finally:
        current_depth.reset(token)


def next_depth(known: int = 0) -> int:
    """Return the depth of a new request; invalid_request above MAX_DEPTH.

    `known` is the depth of its call, which is unknown in threads that plugins start themselves.
    """
    level = max(current_depth.get(), known) + 1
    if level > MAX_DEPTH:
        raise invalid(f"cannot call a model: plugins call each other, more than {MAX_DEPTH} levels deep")
    return level
