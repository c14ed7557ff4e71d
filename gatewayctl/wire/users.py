"""Users on the wire."""

from typing import Literal

from pydantic import Field

from gatewayctl.wire.base import Reply, Request, Written

RoleName = Literal["admin", "user", "pending"]


class User(Reply):
    """An account.

    `user_name` is the name that SCIM shows; `external_ids` and `subjects` are what each provider calls the
    account, by provider name.
    """

    id: str
    email: str
    name: str
    role: str
    active: bool
    username: str | None = None
    groups: list[str] = Field(default_factory=list)
    last_active_at: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    user_name: str | None = None
    external_ids: dict[str, str] = Field(default_factory=dict)
    subjects: dict[str, str] = Field(default_factory=dict)


class UserList(Reply):
    """Some users, and how many match in all."""

    users: list[User]
    total: int


class UserWritten(Written, User):
    """A user after a write; `password` is set only when the daemon made one up."""

    password: str | None = None


class NewUser(Request):
    """A user to create, or to bring into this state (ensure).

    `generate_password` asks the daemon for a random password.
    """

    email: str
    name: str | None = None
    role: RoleName | None = None
    username: str | None = None
    password: str | None = None
    generate_password: bool = False


class UserChange(Request):
    """What to change about a user; an absent field stays."""

    email: str | None = None
    name: str | None = None
    role: RoleName | None = None
    username: str | None = None
    active: bool | None = None


class PasswordChange(Request):
    """A new password, given or to be made up by the daemon."""

    password: str | None = None
    generate_password: bool = False
