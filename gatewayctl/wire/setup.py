"""The first administrator on the wire."""

from gatewayctl.wire.base import Reply, Request


class Setup(Request):
    """The first administrator; without a password the daemon generates one."""

    email: str
    name: str
    password: str | None = None
    group: str = "api-users"


class SetupReply(Reply):
    """The created account; `key` and a generated `password` are shown only once."""

    user_id: str
    email: str
    name: str
    group: str
    key_name: str
    key: str | None = None
    password: str | None = None
    dry_run: bool = False
