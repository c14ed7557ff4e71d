"""Contact of the administrator for pending accounts."""

from gatewayd.accounts.runtime_settings import RuntimeSettings
from gatewayd.accounts.users import Users
from gatewayd.errors import invalid, not_found


class AdminContact:
    """Name and e-mail address of the administrator, if the settings publish them."""

    def __init__(self, users: Users, runtime: RuntimeSettings) -> None:
        self._users = users
        self._runtime = runtime

    async def show(self) -> tuple[str, str]:
        """Return name and e-mail address: that of ADMIN_EMAIL, else that of the first administrator.

        Raises invalid_request if SHOW_ADMIN_DETAILS is off, as Open WebUI does; not_found without an
        administrator.
        """
        if not self._runtime.flag("SHOW_ADMIN_DETAILS"):
            raise invalid("cannot show the administrator: SHOW_ADMIN_DETAILS is off", code="hidden")
        primary = await self._users.find_primary()
        address = self._runtime.text("ADMIN_EMAIL")
        if address:
            return (primary.name if primary else "", address)
        if primary is None:
            raise not_found("user", "administrator")
        return primary.name, primary.email
