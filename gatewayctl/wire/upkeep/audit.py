"""Rows of the audit log on the wire."""

from typing import Any

from pydantic import Field

from gatewayctl.wire.base import Reply, Request

MAX_CHECKPOINTS = 10_000


class AuditRow(Reply):
    """A row of the audit log, with exactly the values that its hash covers; `at` is in epoch microseconds."""

    sequence: int
    at: int
    actor_kind: str
    actor: str
    actor_id: str
    key: str
    address: str
    action: str
    target: str
    subject: str
    before: dict[str, Any]
    after: dict[str, Any]
    request_id: str
    result: str
    detail: str
    previous: str
    hash: str


class AuditRowList(Reply):
    """Rows in the order of the chain."""

    rows: list[AuditRow]


class AuditVerification(Request):
    """A verification; `checkpoints` are texts `SEQUENCE:HASH` that were kept elsewhere."""

    checkpoints: list[str] = Field(default_factory=list, max_length=MAX_CHECKPOINTS)


class AuditProblem(Reply):
    """A fault of the chain at a row."""

    sequence: int
    message: str


class AuditVerdict(Reply):
    """Result of a verification: `status` is `sound` or `broken`.

    `first` is the first row that is kept, `head` the last one as `SEQUENCE:HASH`.
    """

    status: str
    rows: int
    first: int
    head: str
    problems: list[AuditProblem] = Field(default_factory=list)
