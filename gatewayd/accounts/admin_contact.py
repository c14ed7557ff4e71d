"""Whom pending accounts may ask."""

from gatewayd.accounts.runtime_settings import RuntimeSettings
from gatewayd.accounts.users import Users
from gatewayd.errors import invalid, not_found


class AdminContact:
    """Tells the name and address of the administrator, as far as the settings let it be known."""

    def __init__(self, users: Users, runtime: RuntimeSettings) -> None:
        self._users = users
        self._runtime = runtime

    async def show(self) -> tuple[str, str]:
        """Return name and e-mail: those of ADMIN_EMAIL, else of the first administrator.

        Raises invalid_request when SHOW_ADMIN_DETAILS is off (peer-compatible), not_found without any.
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
