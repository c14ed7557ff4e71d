"""In whose name the control socket asks."""

import pytest

from gatewayd.accounts.records import CredentialKind, Role
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.control.impersonation import ControlActors
from gatewayd.http.control.peer import SocketPeer
from tests.fakes.accounts.services import Accounts

PEER = SocketPeer(1, 0, 0)


def viewers(accounts: Accounts) -> ControlActors:
    return ControlActors(accounts.users, accounts.rules, accounts.permissions)


async def test_the_operator_is_an_administrator_without_account() -> None:
    actor = await viewers(Accounts()).choose(None, PEER)
    assert actor.is_admin
    assert actor.is_verified
    assert (actor.user_id, actor.user.name, actor.kind) == ("control:root", "root", CredentialKind.CONTROL)


async def test_an_account_has_its_own_rights() -> None:
    accounts = Accounts()
    ann = await accounts.add_user("ann")
    group = await accounts.grant_keys(ann)
    actor = await viewers(accounts).choose("ANN@example.org", PEER)
    assert (actor.user_id, actor.group_ids, actor.is_admin) == (ann.id, (group,), False)
    assert actor.may("features", "api_keys")


async def test_pending_and_unknown_accounts_ask_nothing() -> None:
    accounts = Accounts()
    await accounts.add_user("eve", role=Role.PENDING)
    for ref, kind in (("eve@example.org", ErrorKind.FORBIDDEN), ("zoe@example.org", ErrorKind.NOT_FOUND)):
        with pytest.raises(GatewayError) as caught:
            await viewers(accounts).choose(ref, PEER)
        assert caught.value.kind is kind
