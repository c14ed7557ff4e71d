"""Limits of model calls and of storage on the wire."""

from pydantic import Field

from gatewayctl.wire.base import Reply, Request, Written


class LimitUse(Reply):
    """The present use of one quantity of a limit, as texts with their unit.

    `what` is requests_per_minute, tokens_per_minute, parallel, storage_bytes or a budget such as
    `10usd/month`.
    `reserved` is the part of `used` that calls in flight hold. `resets_at` is the end of a budget's period.
    """

    what: str
    used: str
    reserved: str = ""
    left: str
    resets_at: str | None = None


class Limit(Reply):
    """A limit: of a key, user, group, each member of a group, each user (default), or of all (total).

    `name` is the name of the key or group or the e-mail of the user; `model` "" stands for all models.
    `uses` is the present use, only where one limit is asked for.
    """

    id: str
    subject: str
    subject_id: str = ""
    name: str = ""
    model: str = ""
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    parallel: int | None = None
    budgets: list[str] = Field(default_factory=list)
    warn_percent: int | None = None
    storage_bytes: int | None = None
    created_at: str | None = None
    updated_at: str | None = None
    uses: list[LimitUse] = Field(default_factory=list)


class LimitList(Reply):
    """Limits, oldest first."""

    limits: list[Limit]


class LimitWritten(Written, Limit):
    """A limit after a write."""


class LimitChange(Request):
    """Whose limit is set, and what: one of `key` (an id), `user`, `group` and `default`, or none for all.

    `each_member` counts each member of the group on their own. Absent values stay as they are, null removes
    one; `budgets` replaces all budgets.
    """

    key: str | None = None
    user: str | None = None
    group: str | None = None
    each_member: bool = False
    default: bool = False
    model: str = ""
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    parallel: int | None = None
    budgets: list[str] | None = None
    warn_percent: int | None = None
    storage_bytes: int | None = None
