"""Provisioning by SCIM on the wire: the token, the state and the last requests."""

from pydantic import Field

from gatewayctl.wire.base import Reply, Request, Written


class ScimToken(Reply):
    """The SCIM tokens without their values.

    `fingerprints` are the first 12 hexadecimal digits of the SHA-256 of each token, the newest first. An
    `external` token is set by the configuration, the environment or a credential, which `origin` names; the
    others are in the database, which takes over those of `file`. `stale`: the file has a token that was not
    taken over. `enabled`: SCIM is on.
    """

    origin: str
    external: bool
    file: str
    count: int
    fingerprints: list[str] = Field(default_factory=list)
    written_at: str | None = None
    stale: bool = False
    enabled: bool


class ScimTokenWritten(Written, ScimToken):
    """The SCIM tokens after a write; `value` is shown once, when a token is created."""

    value: str | None = None


class ScimRequest(Reply):
    """One request of an identity provider; `detail` is the reason of a refusal, else ""."""

    at: str
    method: str
    path: str
    status: int
    address: str = ""
    request_id: str = ""
    detail: str = ""


class ScimLog(Reply):
    """The last requests, newest first."""

    requests: list[ScimRequest]


class ScimStatus(Reply):
    """The state of provisioning.

    `provisioned_users` and `provisioned_groups` came from a provider or are linked to one; `memberships` are
    those that SCIM made. The last requests are those since the daemon was started.
    """

    enabled: bool
    provider: str
    token_count: int
    token_origin: str
    users: int
    active_users: int
    provisioned_users: int
    groups: int
    provisioned_groups: int
    memberships: int
    last_request: ScimRequest | None = None
    last_refused: ScimRequest | None = None


class Link(Request):
    """Ids to link to an account or a group.

    `provider` None means the configured one. A group has no OAuth subject.
    """

    external_id: str | None = None
    oauth_subject: str | None = None
    provider: str | None = None


class Unlink(Request):
    """Ids to unlink from an account or a group; `provider` None means the configured one."""

    external_id: bool = False
    oauth_subject: bool = False
    provider: str | None = None


class ScimCheck(Reply):
    """One step of a check: `ok`, `failed` or `skipped`, the reason, and advice about a failure."""

    step: str
    result: str
    detail: str = ""
    advice: str = ""
