"""Transactions of the stores, and callbacks that run after a commit and not after a rollback."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

Callback = Callable[[], object]


class Transactor(Protocol):
    """Groups several store calls into one atomic change."""

    def transaction(self) -> AbstractAsyncContextManager[None]:
        """Commit everything in the block at its end, or nothing if it raises; blocks may nest."""
        ...

    def exclusive(self, name: str) -> AbstractAsyncContextManager[None]:
        """Run a transaction that excludes every other `exclusive(name)`, in other processes too."""
        ...

    def rehearsal(self) -> AbstractAsyncContextManager[None]:
        """Run a transaction that is always rolled back, for `--dry-run`."""
        ...


@dataclass(slots=True)
class _Block:
    callbacks: list[Callback] = field(default_factory=list)
    closed: bool = False


_current: ContextVar[_Block | None] = ContextVar("gatewayd_commit_block", default=None)


def after_commit(callback: Callback) -> None:
    """Call `callback` when the outermost block of this task has committed; at once outside of any block.

    A block that raises, and a rehearsal, drop the callbacks registered inside.
    """
    block = _current.get()
    # A task that is started inside a block inherits it, but may outlive it.
    if block is None or block.closed:
        callback()
    else:
        block.callbacks.append(callback)


class CallbackTransactor:
    """A Transactor around that of the storage; it runs the callbacks of `after_commit` at the end of a block.

    The assembly wraps the transactor of the storage once and passes this one to all services and control
    handlers.
    """

    def __init__(self, inner: Transactor) -> None:
        self._inner = inner

    def transaction(self) -> AbstractAsyncContextManager[None]:
        """Commit everything in the block at its end, or nothing if it raises."""
        return _with_callbacks(self._inner.transaction(), commits=True)

    def exclusive(self, name: str) -> AbstractAsyncContextManager[None]:
        """Run a transaction that excludes every other `exclusive(name)`."""
        return _with_callbacks(self._inner.exclusive(name), commits=True)

    def rehearsal(self) -> AbstractAsyncContextManager[None]:
        """Run a transaction that is always rolled back."""
        return _with_callbacks(self._inner.rehearsal(), commits=False)


@asynccontextmanager
async def _with_callbacks(block: AbstractAsyncContextManager[None], *, commits: bool) -> AsyncIterator[None]:
    outer = _current.get()
    block_state = _Block()
    token = _current.set(block_state)
    try:
        async with block:
            yield
    finally:
        _current.reset(token)
        block_state.closed = True
    if not commits:
        return
    for callback in block_state.callbacks:
        after_commit(callback) if outer is None else outer.callbacks.append(callback)
