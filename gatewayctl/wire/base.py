"""Common parts of the messages of the control protocol.

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
    """Result of a write, or of its dry run."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    REMOVED = "removed"


class Request(BaseModel):
    """A request body; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", defer_build=True)


class Reply(BaseModel):
    """A reply body; unknown fields come from a newer daemon and are ignored."""

    model_config = ConfigDict(extra="ignore", defer_build=True)


class Written(Reply):
    """The reply to a write; with `dry_run` it was checked and not stored."""

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
