"""The first administrator on the wire."""

from gatewayctl.wire.base import Reply, Request


class Setup(Request):
    """The first administrator; without a password the daemon makes one up."""

    email: str
    name: str
    password: str | None = None
    group: str = "api-users"


class SetupReply(Reply):
    """What was made; `key` and a made-up `password` are given this once."""

    user_id: str
    email: str
    name: str
    group: str
    key_name: str
    key: str | None = None
    password: str | None = None
    dry_run: bool = False
