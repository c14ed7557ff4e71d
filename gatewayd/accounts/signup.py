"""People who create their own account."""

import logging
from dataclasses import replace

from gatewayd.accounts.groups import Groups
from gatewayd.accounts.records import NewUser, Role, Source, User
from gatewayd.accounts.runtime import RuntimeSettings
from gatewayd.accounts.users import Users
from gatewayd.errors import GatewayError, Kind

log = logging.getLogger(__name__)


class SignUp:
    """Lets people in as the settings say; the first becomes administrator and closes the door behind him."""

    def __init__(self, users: Users, groups: Groups, runtime: RuntimeSettings) -> None:
        self._users = users
        self._groups = groups
        self._runtime = runtime

    async def sign_up(self, new: NewUser) -> User:
        """Add an account with the default role and group; forbidden when sign-up is off (ENABLE_SIGNUP)."""
        self._check_open()
        role = Role(self._runtime.text("DEFAULT_USER_ROLE"))
        return await self._users.sign_up(replace(new, role=role), self._welcome)

    async def _welcome(self, user: User, is_first: bool) -> None:
        if is_first:
            if self._runtime.may_set("ENABLE_SIGNUP"):
                await self._runtime.set({"ENABLE_SIGNUP": False}, by=user.id)
            return
        # Whoever waited while the first signed up finds the door closed.
        self._check_open()
        group_id = self._runtime.text("DEFAULT_GROUP_ID")
        if not group_id:
            return
        if await self._groups.find(group_id) is None:
            log.warning("default group does not exist", extra={"group": group_id})
            return
        await self._groups.add_members(group_id, [user.id], Source.DEFAULT)

    def _check_open(self) -> None:
        if not self._runtime.flag("ENABLE_SIGNUP"):
            raise GatewayError(
                Kind.FORBIDDEN,
                "cannot sign up: sign-up is switched off (setting ENABLE_SIGNUP)",
                code="signup_off",
            )
