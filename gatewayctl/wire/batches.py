"""Batches on the wire: files of requests that run at low priority."""

from pydantic import Field

from gatewayctl.wire.base import Reply


class Batch(Reply):
    """A batch with the counts of its requests; `errors` are sentences about its input file."""

    id: str
    user_id: str
    user: str = ""
    dialect: str
    endpoint: str
    status: str
    total: int
    completed: int
    failed: int
    input_file_id: str
    output_file_id: str | None = None
    error_file_id: str | None = None
    errors: list[str] = Field(default_factory=list)
    created_at: str | None = None
    expires_at: str | None = None
    started_at: str | None = None
    ended_at: str | None = None


class BatchList(Reply):
    """Batches, newest first."""

    batches: list[Batch]
