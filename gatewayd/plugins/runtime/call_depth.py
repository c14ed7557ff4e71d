"""How deep requests to models are nested: a plugin asks a model, which is a plugin that asks, and so on."""

import contextvars
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from gatewayd.errors import invalid

MAX_DEPTH: Final = 8

current_depth: Final[contextvars.ContextVar[int]] = contextvars.ContextVar("gatewayd_nesting", default=0)
"""How many requests of plugins the running code is part of; it follows calls into the threads of plugins."""


@contextmanager
def at_depth(level: int) -> Iterator[None]:
    """Run a block at a level."""
    token = current_depth.set(level)
    try:
        yield
    finally:
        current_depth.reset(token)


def next_depth(known: int = 0) -> int:
    """Return the level of a request that is made now; invalid_request when it is too deep.

    `known` is the level of the call that it is made for: threads that plugins start themselves have none.
    """
    level = max(current_depth.get(), known) + 1
    if level > MAX_DEPTH:
        raise invalid(f"cannot ask a model: plugins ask each other, more than {MAX_DEPTH} deep")
    return level
