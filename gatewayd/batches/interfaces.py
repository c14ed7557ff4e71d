"""Interfaces of batches to storage, accounts and the pipeline."""

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from gatewayd.accounts.records import Actor
from gatewayd.batches.passed_state import PassedState
from gatewayd.batches.records import Batch, BatchDialect, BatchFile, BatchStatus
from gatewayd.completions.records import Body
from gatewayd.errors import GatewayError
from gatewayd.metering.usage_records import UsageKey, UsageSums

ErrorRenderer = Callable[[GatewayError, BatchDialect], tuple[int, Body]]
"""Returns status and body of a failure in a protocol."""


Fence = Callable[[], AbstractAsyncContextManager[None]]
"""Runs a transaction of the node that runs the batches; conflict once another node has taken them over."""


class BatchStore(Protocol):
    """Batches; each change is committed on return.

    That of the worker raises conflict, and changes nothing, once another node has taken the batches over.
    """

    async def add(self, batch: Batch) -> None:
        """Insert a batch."""
        ...

    async def find(self, batch_id: str) -> Batch | None:
        """Return one batch."""
        ...

    async def list(
        self,
        user_id: str | None,
        dialect: BatchDialect | None,
        *,
        after: str | None,
        limit: int,
        before: str | None = None,
    ) -> Sequence[Batch]:
        """Return batches of a user, or of all, newest first: older than `after`, or newer than `before`."""
        ...

    async def unfinished(self) -> Sequence[Batch]:
        """Return the batches with work to do, oldest first."""
        ...

    async def count_unfinished(self, user_id: str) -> int:
        """Return how many batches of a user have work to do."""
        ...

    async def change(self, batch_id: str, states: Collection[BatchStatus], **columns: Any) -> bool:
        """Change columns of a batch in one of these states; False if there is none."""
        ...

    async def store_usage(
        self, batch_id: str, usage: Mapping[UsageKey, UsageSums], completed: int, failed: int
    ) -> bool:
        """Add to the stored usage and set the counts of an unfinished batch, both or none of it.

        False, and nothing is stored, if there is no such batch.
        """
        ...

    async def remove(self, batch_id: str) -> bool:
        """Delete a batch."""
        ...

    async def prune(self, before: int) -> int:
        """Delete the batches that ended before a time."""
        ...


class PassedStateStore(Protocol):
    """States of batches that providers run; each change is committed on return."""

    async def find(self, batch_id: str) -> PassedState | None:
        """Return the state of a batch, None if it was never submitted."""
        ...

    async def save(self, batch_id: str, state: PassedState) -> None:
        """Replace a state; not_found without the batch, conflict once another node has taken it over."""
        ...

    async def add(self, batch_id: str, state: PassedState) -> None:
        """Insert a state unless there is one; not_found without the batch."""
        ...

    async def remove(self, batch_id: str) -> None:
        """Delete the state of a batch; conflict once another node has taken it over."""
        ...


class AnswerStore(Protocol):
    """Answers of unfinished batches, as bytes of whole records; each change is committed on return."""

    async def add(self, batch_id: str, records: bytes) -> None:
        """Store answers; not_found without the batch, conflict once another node has taken it over."""
        ...

    def read(self, batch_id: str) -> AsyncIterator[bytes]:
        """Yield the answers of a batch in the order in which they were stored."""
        ...

    async def batch_ids(self) -> Collection[str]:
        """Return the ids of the batches that have answers."""
        ...

    async def take_over(self, batch_id: str, pieces: Iterator[bytes]) -> bool:
        """Store answers from a file, which is read in threads, all or none.

        False, and nothing is stored, if the batch has answers already, or no work to do.
        """
        ...

    async def remove(self, batch_id: str) -> None:
        """Delete the answers of a batch; conflict once another node has taken it over."""
        ...

    async def remove_ended(self) -> None:
        """Delete the answers of batches that have ended; conflict as above."""
        ...


class BatchFileStore(Protocol):
    """Rows of files; each change is committed on return."""

    async def add(self, file: BatchFile) -> None:
        """Insert a file."""
        ...

    async def find(self, file_id: str) -> BatchFile | None:
        """Return one file."""
        ...

    async def list(
        self, user_id: str, purpose: str | None, *, after: str | None, limit: int
    ) -> Sequence[BatchFile]:
        """Return files of a user, newest first, those older than `after`."""
        ...

    async def usage(self, user_id: str) -> tuple[int, int]:
        """Return the number of files of a user, and of their bytes."""
        ...

    async def named(self, user_id: str, purpose: str, name: str) -> Sequence[str]:
        """Return ids of the files of a user with a purpose and a name."""
        ...

    async def remove(self, file_ids: Iterable[str]) -> None:
        """Delete files."""
        ...

    async def expired(self, now: int, most: int) -> Sequence[str]:
        """Return ids of files that expired and that no unfinished batch reads."""
        ...

    def ids(self) -> AsyncIterator[str]:
        """Yield the ids of all files."""
        ...


class BatchActors(Protocol):
    """Finds the user of a batch anew for each line."""

    async def of(self, batch: Batch) -> Actor:
        """Return the user with their current rights.

        Raises forbidden if the account is gone, deactivated or pending, or if the key that created the batch
        may not call its endpoint any more.
        """
        ...


class RequestRunner(Protocol):
    """Runs one request through the pipeline."""

    async def run(self, batch: Batch, body: Body, actor: Actor, request_id: str) -> Any:
        """Return the JSON body of the answer; raises GatewayError."""
        ...
