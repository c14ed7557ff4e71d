import pytest

from gatewayd.accounts.admin_contact import AdminContact
from gatewayd.accounts.records import Role
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.accounts.services import Accounts


async def test_whom_pending_accounts_may_ask(accounts: Accounts) -> None:
    contact = AdminContact(accounts.users, accounts.runtime)
    with pytest.raises(GatewayError) as caught:
        await contact.show()
    assert caught.value.kind is ErrorKind.NOT_FOUND
    await accounts.add_user("first", Role.ADMIN)
    await accounts.add_user("second", Role.ADMIN)
    assert await contact.show() == ("first", "first@example.org")
    await accounts.runtime.set({"ADMIN_EMAIL": "help@example.org"}, by="test")
    assert await contact.show() == ("first", "help@example.org")
    await accounts.runtime.set({"SHOW_ADMIN_DETAILS": False}, by="test")
    with pytest.raises(GatewayError, match="SHOW_ADMIN_DETAILS"):
        await contact.show()
