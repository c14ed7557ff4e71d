"""Setup of a new gateway: the first administrator with a group and an API key."""

from dataclasses import dataclass
from typing import Final

from gatewayd import ids
from gatewayd.accounts.groups import Groups
from gatewayd.accounts.keys import Keys
from gatewayd.accounts.records import ApiKey, Group, NewGroup, NewUser, Role, User
from gatewayd.accounts.runtime_settings import RuntimeSettings
from gatewayd.accounts.users import FIRST_ADMIN_LOCK, Users
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.transactions import Transactor

ALREADY_SET_UP: Final = "already_set_up"
"""Error code of the conflict if an account exists."""


@dataclass(frozen=True, slots=True)
class SetupResult:
    """The created records; `password_value` is None if the caller chose the password."""

    user: User
    group: Group
    key: ApiKey
    key_value: str
    password_value: str | None


class Setup:
    """Creates the first administrator, group and key in one transaction, once."""

    def __init__(
        self, users: Users, groups: Groups, keys: Keys, runtime: RuntimeSettings, transactor: Transactor
    ) -> None:
        self._users = users
        self._groups = groups
        self._keys = keys
        self._runtime = runtime
        self._transactor = transactor

    async def run(self, email: str, name: str, password: str | None, group: str = "api-users") -> SetupResult:
        """Create an administrator, a group with the permission for API keys that contains them, and a key.

        API keys are switched on; sign-up is switched off if the configuration allows it. All or nothing.
        Raises conflict if an account exists, or if the configuration fixes ENABLE_API_KEYS as off.
        """
        generated = ids.new_secret(12) if password is None else None
        new = NewUser(
            email=email, name=name, role=Role.ADMIN, password=generated if password is None else password
        )
        async with self._transactor.exclusive(FIRST_ADMIN_LOCK):
            user = await self._make_first(new)
            if user is None:
                raise GatewayError(
                    ErrorKind.CONFLICT, "cannot set up: accounts exist already", code=ALREADY_SET_UP
                )
            await self._runtime.set({"ENABLE_API_KEYS": True}, by=user.id)
            made, _ = await self._groups.ensure(
                NewGroup(
                    name=group,
                    description="Accounts that may have API keys",
                    user_id=user.id,
                    permissions={"features": {"api_keys": True}},
                )
            )
            await self._groups.add_members(made.id, [user.id])
            key, value = await self._keys.make(user, "setup")
        return SetupResult(user, made, key, value, generated)

    async def ensure(self, email: str, name: str, password: str) -> User | None:
        """Create the first administrator and switch sign-up off; return None if an account exists."""
        async with self._transactor.exclusive(FIRST_ADMIN_LOCK):
            return await self._make_first(NewUser(email, name, role=Role.ADMIN, password=password))

    async def _make_first(self, new: NewUser) -> User | None:
        if await self._users.count():
            return None
        user = await self._users.create(new)
        if self._runtime.may_set("ENABLE_SIGNUP"):
            await self._runtime.set({"ENABLE_SIGNUP": False}, by=user.id)
        return user
