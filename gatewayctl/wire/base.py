"""What every message of the control protocol has in common.

Requests and replies are JSON over HTTP/1.1 on a unix socket, under `/v1/`. Both sides send `HEADER: VERSION`.
Timestamps are RFC 3339 texts in UTC, for example `2026-11-21T09:30:00Z`. Fields are only ever added.
"""

from enum import StrEnum
from typing import Final

from pydantic import BaseModel, ConfigDict

VERSION: Final = "1"
HEADER: Final = "Gatewayd-Protocol"

Tree = dict[str, dict[str, bool]]
"""Section name -> leaf name -> allowed."""


class Outcome(StrEnum):
    """What a write did, or would do."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    REMOVED = "removed"


class Request(BaseModel):
    """A request body: an unknown field is a mistake and is refused."""

    model_config = ConfigDict(extra="forbid", defer_build=True)


class Reply(BaseModel):
    """A reply body: an unknown field comes from a newer daemon and is ignored."""

    model_config = ConfigDict(extra="ignore", defer_build=True)


class Written(Reply):
    """The reply to a write; with `dry_run` everything was checked and nothing was kept."""

    outcome: Outcome
    dry_run: bool = False


class Problem(Reply):
    """Why a request failed: the `error` object of a reply."""

    kind: str
    message: str
    param: str | None = None
    code: str | None = None
    request_id: str | None = None
    retry_after: int | None = None


class ProblemReply(Reply):
    """The body of every failed request."""

    error: Problem
