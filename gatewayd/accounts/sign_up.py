"""Sign-up: people create their own accounts."""

import logging
from dataclasses import dataclass, replace
from typing import Final

from gatewayd import ids
from gatewayd.accounts.attempts import AttemptCounter, AttemptLimit, network_of
from gatewayd.accounts.groups import Groups
from gatewayd.accounts.records import MembershipSource, NewUser, Role, User
from gatewayd.accounts.runtime_settings import RuntimeSettings
from gatewayd.accounts.users import Users
from gatewayd.errors import ErrorKind, GatewayError

log = logging.getLogger(__name__)

LIMIT_SECONDS: Final = 3600
EVERYBODY: Final = ""


@dataclass(frozen=True, slots=True)
class SignUpOptions:
    """`initial_admin` allows the first account; `limit` and `by_address` are maximum sign-ups per hour."""

    initial_admin: bool = False
    limit: int = 100
    by_address: int = 10


class SignUp:
    """Creates accounts as the settings allow; the first one is an administrator and switches sign-up off."""

    def __init__(
        self,
        users: Users,
        groups: Groups,
        runtime: RuntimeSettings,
        options: SignUpOptions | None = None,
        clock: ids.Clock | None = None,
    ) -> None:
        self._users = users
        self._groups = groups
        self._runtime = runtime
        self._options = options or SignUpOptions()
        clock = clock or ids.steady_clock()
        self._by_peer = AttemptCounter(AttemptLimit(self._options.by_address, LIMIT_SECONDS), clock)
        self._by_all = AttemptCounter(AttemptLimit(self._options.limit, LIMIT_SECONDS), clock)

    async def sign_up(self, new: NewUser, peer: str) -> User:
        """Add an account with the default role and group; `peer` is the address of the client.

        Raises forbidden if sign-up is off (ENABLE_SIGNUP) or the first account is not allowed, rate_limited
        with `retry_after` after too many sign-ups, conflict for a taken e-mail address. A taken address takes
        as long as a new one.
        """
        self._check_open()
        if not await self._may_be_next():
            raise _not_set_up()
        self._users.check_new(new)
        self._claim(network_of(peer))
        role = Role(self._runtime.text("DEFAULT_USER_ROLE"))
        try:
            return await self._users.sign_up(replace(new, role=role), self._welcome)
        except GatewayError as error:
            if error.kind is ErrorKind.UNAVAILABLE:
                self._release(network_of(peer))
            if error.kind is not ErrorKind.CONFLICT:
                raise
            raise GatewayError(
                ErrorKind.CONFLICT,
                "cannot sign up with this e-mail address: sign in, or ask the administrator",
                param="email",
            ) from error

    def _claim(self, network: str) -> None:
        wait = max(self._by_peer.wait(network), self._by_all.wait(EVERYBODY))
        if wait:
            raise GatewayError(
                ErrorKind.RATE_LIMITED, "cannot sign up now: too many sign-ups", retry_after=wait
            )
        self._by_peer.add(network)
        self._by_all.add(EVERYBODY)

    def _release(self, network: str) -> None:
        self._by_peer.uncount_latest(network)
        self._by_all.uncount_latest(EVERYBODY)

    async def is_open(self) -> bool:
        """Tell whether sign-up is possible now."""
        return self._runtime.flag("ENABLE_SIGNUP") and await self._may_be_next()

    async def _may_be_next(self) -> bool:
        return self._options.initial_admin or await self._users.count() > 0

    async def _welcome(self, user: User, is_first: bool) -> None:
        if is_first:
            if not self._options.initial_admin:
                raise _not_set_up()
            if self._runtime.may_set("ENABLE_SIGNUP"):
                await self._runtime.set({"ENABLE_SIGNUP": False}, by=user.id)
            return
        # The sign-up of the first administrator switches sign-up off: check again under the lock.
        self._check_open()
        group_id = self._runtime.text("DEFAULT_GROUP_ID")
        if not group_id:
            return
        if await self._groups.find(group_id) is None:
            log.warning("cannot find the group of DEFAULT_GROUP_ID", extra={"group": group_id})
            return
        await self._groups.add_members(group_id, [user.id], MembershipSource.DEFAULT)

    def _check_open(self) -> None:
        if not self._runtime.flag("ENABLE_SIGNUP"):
            raise GatewayError(
                ErrorKind.FORBIDDEN,
                "cannot sign up: sign-up is switched off (setting ENABLE_SIGNUP)",
                code="signup_off",
            )


def _not_set_up() -> GatewayError:
    return GatewayError(
        ErrorKind.FORBIDDEN,
        "cannot sign up: the gateway has no administrator yet; create one with gatewayctl setup",
        code="not_set_up",
    )
