"""Check of the database on the wire."""

from pydantic import Field

from gatewayctl.wire.base import Reply, Request


class DatabaseCheck(Request):
    """A check of the database; `timeout` is in seconds."""

    timeout: float = Field(60.0, gt=0, le=86400, allow_inf_nan=False)


class DatabaseState(Reply):
    """Result of a check; `status` is `sound`, or `damaged` with a sentence for each damage."""

    status: str
    problems: list[str] = Field(default_factory=list)
