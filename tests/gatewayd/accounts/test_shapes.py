"""Tests for gatewayd.accounts.shapes."""

from gatewayd.accounts.records import NewGroup
from gatewayd.accounts.shapes import show_groups
from tests.fakes.accounts import Accounts


async def test_a_group() -> None:
    accounts = Accounts()
    group = await accounts.groups.create(NewGroup("staff"))
    (shown,) = await show_groups([group], accounts.groups)
    assert shown["member_count"] == 0
    assert set(shown) == {
        "id",
        "user_id",
        "name",
        "description",
        "data",
        "meta",
        "permissions",
        "created_at",
        "updated_at",
        "member_count",
    }
