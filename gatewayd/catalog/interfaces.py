"""What gives models, what keeps records of them, and who looks at them."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gatewayd.catalog.records import Model, ModelRecord
from gatewayd.catalog.replies import Body, Chunk, Completion


class Viewer(Protocol):
    """Who asks for models; an `accounts.records.Actor` is one."""

    @property
    def user_id(self) -> str:
        """The id of the user."""
        ...

    @property
    def group_ids(self) -> tuple[str, ...]:
        """The ids of the user's groups."""
        ...

    @property
    def is_admin(self) -> bool:
        """Whether the user administers the gateway."""
        ...


@dataclass(frozen=True, slots=True)
class CallContext:
    """What a source may know about a call beside its body; sent on only where a setting says so."""

    request_id: str
    user_id: str
    user_name: str = ""
    user_email: str = ""
    user_role: str = ""


class ModelSource(Protocol):
    """A provider, a runtime, the built-in model or function models.

    Failures are raised as `GatewayError` whose message names the source: upstream_unreachable (not reached,
    or 503/529), upstream_failed (401, 403, 5xx, or an answer that is not one), rate_limited with
    `retry_after` (429), invalid_request (400, 413, 422: the provider's own sentence), not_found (404),
    timeout. No message holds a key.
    """

    @property
    def name(self) -> str:
        """The name in messages and logs, unique among the sources."""
        ...

    async def list_models(self) -> Sequence[Model]:
        """Ask the source for its models; the caller sets the deadline."""
        ...

    async def complete(self, body: Body, model: Model, context: CallContext) -> Completion:
        """Answer a chat request at once; `body["model"]` is already `model.upstream_id`."""
        ...

    def stream(self, body: Body, model: Model, context: CallContext) -> AsyncIterator[Chunk]:
        """Answer in chunks.

        Failing before the first chunk raises. A stream that ends without a finish reason or `[DONE]`, or
        breaks after the first chunk, raises then. Closing the iterator (`aclose`) closes the upstream
        connection at once.
        """
        ...

    async def close(self) -> None:
        """Release connections and processes."""
        ...


class ModelRecordStore(Protocol):
    """Model records with their grants; all changes are committed on return."""

    async def list(self) -> Sequence[ModelRecord]:
        """Return all records."""
        ...

    async def find(self, model_id: str) -> ModelRecord | None:
        """Return one record."""
        ...

    async def put(self, record: ModelRecord) -> None:
        """Insert or replace a record and its grants."""
        ...

    async def remove(self, model_id: str) -> bool:
        """Delete a record and its grants."""
        ...


ModelListing = Mapping[str, Any]
"""One element of `GET /api/models` (peer-compatible fields of 1.5)."""
