import pytest

from gatewayd.accounts.records import Role
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.accounts.services import Accounts


async def test_rights_are_groups_and_their_sum(accounts: Accounts) -> None:
    ann, bob = await accounts.add_user("ann"), await accounts.add_user("bob")
    group_id = await accounts.grant_keys(ann)
    rights = await accounts.rules.rights(ann)
    assert rights.group_ids == (group_id,)
    assert rights.permissions["features"]["api_keys"] is True
    assert (await accounts.rules.rights(bob)).group_ids == ()


@pytest.mark.parametrize("role", list(Role))
async def test_everything_that_is_missing_is_said(accounts: Accounts, role: Role) -> None:
    user = await accounts.add_user(role=role)
    permissions = (await accounts.rules.rights(user)).permissions
    sentences = accounts.rules.missing(user, permissions)
    assert ["ENABLE_API_KEYS" in sentences[0], "features.api_keys" in sentences[1]] == [True, True]
    with pytest.raises(GatewayError, match="cannot use an API key") as caught:
        accounts.rules.check(user, permissions, "use")
    assert (caught.value.kind, caught.value.code) == (ErrorKind.FORBIDDEN, "api_keys_disabled")
    await accounts.grant_keys(user)
    permissions = (await accounts.rules.rights(user)).permissions
    assert accounts.rules.missing(user, permissions) == []
    accounts.rules.check(user, permissions, "use")


async def test_the_default_permissions_do_not_help_an_administrator(accounts: Accounts) -> None:
    admin = await accounts.add_user(role=Role.ADMIN)
    await accounts.runtime.set({"ENABLE_API_KEYS": True}, by="test")
    await accounts.permissions.set_defaults({"features": {"api_keys": True}}, by="test")
    permissions = (await accounts.rules.rights(admin)).permissions
    with pytest.raises(GatewayError, match="do not apply to the role admin"):
        accounts.rules.check(admin, permissions, "create")


async def test_endpoint_restrictions(accounts: Accounts) -> None:
    rules = accounts.rules
    rules.check_endpoint("GET", "/anything")
    await accounts.runtime.set({"ENABLE_API_KEYS_ENDPOINT_RESTRICTIONS": True}, by="test")
    with pytest.raises(GatewayError, match="API key"):
        rules.check_endpoint("GET", "/api/models")
    await accounts.runtime.set({"API_KEYS_ALLOWED_ENDPOINTS": "/api/models"}, by="test")
    rules.check_endpoint("GET", "/api/models")
    with pytest.raises(GatewayError) as caught:
        rules.check_endpoint("GET", "/api/v1/auths/")
    assert caught.value.kind is ErrorKind.FORBIDDEN
