"""Records of batches and of their files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final


class BatchDialect(StrEnum):
    """Protocol of a batch."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"


class BatchStatus(StrEnum):
    """State of a batch, in the words of OpenAI."""

    VALIDATING = "validating"
    FAILED = "failed"
    IN_PROGRESS = "in_progress"
    FINALIZING = "finalizing"
    COMPLETED = "completed"
    EXPIRED = "expired"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"


UNFINISHED: Final = frozenset(
    {BatchStatus.VALIDATING, BatchStatus.IN_PROGRESS, BatchStatus.FINALIZING, BatchStatus.CANCELLING}
)
"""States in which there is work to do."""


@dataclass(frozen=True, slots=True)
class BatchFile:
    """A file of a user: requests, results or errors, one JSON object a line; its bytes are a blob."""

    id: str
    user_id: str
    name: str
    purpose: str
    size: int
    created_at: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch: every line of `input_file_id` is a request to `endpoint`, such as `/v1/embeddings`.

    `key_id` is the API key that created it, None for another credential. `errors` are the faults of the input
    file, `{"code", "message", "param", "line"}`. Times are in epoch seconds.
    """

    id: str
    user_id: str
    dialect: BatchDialect
    endpoint: str
    input_file_id: str
    status: BatchStatus
    created_at: int
    expires_at: int
    key_id: str | None = None
    total: int = 0
    completed: int = 0
    failed: int = 0
    output_file_id: str | None = None
    error_file_id: str | None = None
    started_at: int | None = None
    cancelled_at: int | None = None
    ended_at: int | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    errors: Sequence[Mapping[str, Any]] = ()

    @property
    def is_unfinished(self) -> bool:
        """Whether there is work to do."""
        return self.status in UNFINISHED


@dataclass(frozen=True, slots=True)
class LineAnswer:
    """The answer to one line: HTTP status and JSON body in the protocol of the batch."""

    status: int
    body: Any
    request_id: str

    @property
    def is_success(self) -> bool:
        """Whether the request succeeded."""
        return self.status < 300
