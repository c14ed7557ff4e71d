"""Atomic changes: a transaction, and what is done once it is committed and never when it is rolled back."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

Callback = Callable[[], object]


class Transactor(Protocol):
    """Groups several store calls into one atomic change."""

    def transaction(self) -> AbstractAsyncContextManager[None]:
        """Commit everything inside the block at its end, or nothing when it raises; blocks may nest."""
        ...

    def exclusive(self, name: str) -> AbstractAsyncContextManager[None]:
        """Be a transaction that excludes every other `exclusive(name)`, in other processes too."""
        ...

    def rehearsal(self) -> AbstractAsyncContextManager[None]:
        """Be a transaction that is always rolled back: what `--dry-run` runs in."""
        ...


@dataclass(slots=True)
class _Block:
    waiting: list[Callback] = field(default_factory=list)
    closed: bool = False


_current: ContextVar[_Block | None] = ContextVar("gatewayd_commit_block", default=None)


def after_commit(callback: Callback) -> None:
    """Call back when the outermost block of this task has committed; at once outside of any block.

    A block that raises, and a rehearsal, forget what was registered inside.
    """
    block = _current.get()
    # A task started inside a block inherits it, but may outlive it.
    if block is None or block.closed:
        callback()
    else:
        block.waiting.append(callback)


class CallbackTransactor:
    """A Transactor around the one of the storage, which lets `after_commit` know when a block has ended.

    The daemon wraps the storage's transactor once and hands this one to every service and control handler.
    """

    def __init__(self, inner: Transactor) -> None:
        self._inner = inner

    def transaction(self) -> AbstractAsyncContextManager[None]:
        """Commit everything inside the block at its end, or nothing when it raises."""
        return _watch(self._inner.transaction(), kept=True)

    def exclusive(self, name: str) -> AbstractAsyncContextManager[None]:
        """Be a transaction that excludes every other `exclusive(name)`."""
        return _watch(self._inner.exclusive(name), kept=True)

    def rehearsal(self) -> AbstractAsyncContextManager[None]:
        """Be a transaction that is always rolled back."""
        return _watch(self._inner.rehearsal(), kept=False)


@asynccontextmanager
async def _watch(block: AbstractAsyncContextManager[None], *, kept: bool) -> AsyncIterator[None]:
    outer = _current.get()
    mine = _Block()
    token = _current.set(mine)
    try:
        async with block:
            yield
    finally:
        _current.reset(token)
        mine.closed = True
    if not kept:
        return
    for callback in mine.waiting:
        after_commit(callback) if outer is None else outer.waiting.append(callback)
