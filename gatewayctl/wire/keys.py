"""API keys on the wire."""

from pydantic import Field

from gatewayctl.wire.base import Reply, Request, Written


class Key(Reply):
    """An API key without its value; `prefix` is the part that is safe to show."""

    id: str
    name: str
    user_id: str
    user: str
    prefix: str
    expires_at: str | None = None
    last_used_at: str | None = None
    created_at: str | None = None


class KeyList(Reply):
    """Keys, oldest first."""

    keys: list[Key]


class KeyWritten(Written, Key):
    """A key after a write; `value` is given once, when the key is created."""

    value: str | None = None


class NewKey(Request):
    """A key to issue to a user (id or e-mail); `expires_in` is in seconds, None for never."""

    user: str
    name: str
    expires_in: int | None = None


class KeyReasons(Reply):
    """Whether a user may have and use keys, and a sentence for each missing condition."""

    user: str
    allowed: bool
    missing: list[str] = Field(default_factory=list)
