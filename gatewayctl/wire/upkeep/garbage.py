"""Collection of garbage on the wire."""

from pydantic import Field

from gatewayctl.wire.base import Reply, Request


class GarbageCollection(Request):
    """A collection of what is older than `older_than` seconds."""

    older_than: int = Field(86_400, ge=3600, le=10**9)


class GarbageCount(Reply):
    """What was removed of one kind; `bytes` is 0 where the size is not known."""

    kind: str
    count: int
    bytes: int = 0


class GarbageReport(Reply):
    """What was removed, or would be in a dry run."""

    dry_run: bool = False
    removed: list[GarbageCount]
