"""Batches that a provider runs itself: what a source does for them, in the terms of all providers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from gatewayd.catalog.interfaces import CallContext, ForwardedAnswer
from gatewayd.catalog.records import Model
from gatewayd.completions.records import Body
from gatewayd.errors import GatewayError


class ProviderBatchState(StrEnum):
    """What a provider says of a batch."""

    WORKING = "working"
    # There will be no further results; those that there are can be read.
    ENDED = "ended"
    # The provider refused the requests: there are no results.
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ProviderBatch:
    """A batch as its provider shows it.

    `total` counts its requests, 0 if the provider has not counted them yet. `results` name what `read` takes.
    `faults` are why it failed, `{"code", "message", "line"}` with the number of a line of its input, from 1.
    """

    id: str
    state: ProviderBatchState
    total: int = 0
    completed: int = 0
    failed: int = 0
    created_at: int = 0
    results: tuple[str, ...] = ()
    faults: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class ProviderResult:
    """The answer to one request: `body`, or `error`; neither for one that did not run.

    `is_expired` tells why it did not run: the time was over, and it was not cancelled.
    """

    custom_id: str
    body: Body | None = None
    error: GatewayError | None = None
    is_expired: bool = False


@dataclass(frozen=True, slots=True)
class BatchUpload:
    """What is submitted: `path` holds the framed requests, `name` is the gateway's own id of the batch."""

    name: str
    endpoint: str
    path: Path
    size: int
    total: int


class Framing(NamedTuple):
    """The bytes before, between and behind the requests of an upload."""

    begin: bytes
    between: bytes
    end: bytes


class FoundBatches(NamedTuple):
    """Batches of a provider that may be those of an earlier try: the right one, or ones to look into."""

    batch_id: str | None = None
    candidates: Sequence[str] = ()


class ProviderBatches(Protocol):
    """The batches of one provider; failures as in `catalog.interfaces.ModelSource`."""

    @property
    def framing(self) -> Framing:
        """How requests are written one behind the other."""
        ...

    def render(self, custom_id: str, endpoint: str, body: Body) -> bytes:
        """Return one request of an upload, a JSON object in one line."""
        ...

    async def upload(self, upload: BatchUpload, context: CallContext) -> str:
        """Send the requests and return the id of their file; "" if they go with the batch itself."""
        ...

    async def create(self, upload: BatchUpload, file_id: str, context: CallContext) -> str:
        """Begin a batch and return its id."""
        ...

    async def find(self, upload: BatchUpload, since: int) -> FoundBatches:
        """Look among the batches since an epoch second for the one of an upload."""
        ...

    async def get(self, batch_id: str) -> ProviderBatch:
        """Return one batch; raises not_found."""
        ...

    async def cancel(self, batch_id: str) -> None:
        """Ask for the end of a batch; one that has ended stays as it is."""
        ...

    async def read(self, results: str) -> ForwardedAnswer:
        """Return results as bytes of JSON lines; raises not_found."""
        ...

    def parse(self, value: Mapping[str, Any]) -> ProviderResult:
        """Return one line of the results; raises upstream_failed for one that is none."""
        ...

    async def remove(self, batch: ProviderBatch, file_id: str) -> None:
        """Delete the files of a batch that has ended."""
        ...


@runtime_checkable
class BatchSource(Protocol):
    """A source whose provider runs batches, and whose settings may say that they are passed on."""

    @property
    def name(self) -> str:
        """Name in messages and logs."""
        ...

    @property
    def batches(self) -> ProviderBatches | None:
        """The batches of the provider; None if they are not passed on."""
        ...

    async def batch_request(
        self, endpoint: str, body: Body, model: Model, context: CallContext
    ) -> Body | None:
        """Return a request as a batch of the provider takes it, None if no batch of it can hold it.

        `body` is a request to `endpoint`, such as `/v1/embeddings`. Raises invalid_request as a call would.
        """
        ...
