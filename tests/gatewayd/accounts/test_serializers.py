"""Tests for gatewayd.accounts.serializers."""

from gatewayd.accounts.records import NewGroup, Role, User
from gatewayd.accounts.serializers import PROVISIONING_FIELDS, render_groups, render_user
from tests.fakes.accounts.services import Accounts


async def test_a_group() -> None:
    accounts = Accounts()
    group = await accounts.groups.create(NewGroup("staff"))
    (shown,) = await render_groups([group], accounts.groups)
    assert shown["member_count"] == 0
    assert shown["name"] == "staff"
    assert PROVISIONING_FIELDS.isdisjoint(shown)


def test_an_account_shows_what_is_known_of_its_profile_alone() -> None:
    user = User("u1", "ann@x", "Ann", Role.ADMIN, profile={"bio": "b", "secret": "s"}, active=False)
    shown = render_user(user)
    assert (shown["role"], shown["bio"], shown["gender"]) == ("pending", "b", None)
    assert not {"secret", "active"} & shown.keys()
