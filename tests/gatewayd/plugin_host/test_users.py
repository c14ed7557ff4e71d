"""Tests for gatewayd.plugin_host.users."""

from gatewayd.accounts.records import NewGroup
from gatewayd.plugins.runtime.arguments import user_record
from tests.fakes.plugins.host_services import Hosting


async def test_accounts(made: Hosting) -> None:
    users = made.host.users
    assert await users.find(made.ann.id) == user_record(made.ann)
    assert await users.find("nobody") is None
    assert await users.find_by_email("ANN@example.org") == user_record(made.ann)
    assert await users.find_by_email("bob@example.org") is None
    assert await users.find_by_email(made.ann.id) is None


async def test_lists(made: Hosting) -> None:
    users = made.host.users
    assert [each["name"] for each in await users.list("", 0, None)] == ["ann", "root"]
    assert [each["name"] for each in await users.list("", 1, 5)] == ["root"]
    assert [each["name"] for each in await users.list("nn", 0, None)] == ["ann"]


async def test_settings_are_merged(made: Hosting) -> None:
    users = made.host.users
    await users.change_settings(made.ann.id, {"ui": {"theme": "dark"}})
    changed = await users.change_settings(made.ann.id, {"more": 1})
    assert changed is not None
    assert changed["settings"] == {"ui": {"theme": "dark"}, "more": 1}
    found = await users.find(made.ann.id)
    assert found is not None
    assert found["settings"] == changed["settings"]
    assert await users.change_settings("nobody", {"a": 1}) is None


async def test_a_record_shares_nothing_with_the_account(made: Hosting) -> None:
    changed = await made.host.users.change_settings(made.ann.id, {"ui": {"theme": "dark"}})
    assert changed is not None
    changed["settings"]["ui"]["theme"] = "light"
    found = await made.host.users.find(made.ann.id)
    assert found is not None
    assert found["settings"] == {"ui": {"theme": "dark"}}


async def test_groups(made: Hosting) -> None:
    groups = made.documents.accounts.groups
    readers = await groups.create(NewGroup("readers"))
    await groups.create(NewGroup("writers"))
    await groups.add_members(readers.id, [made.ann.id])
    users = made.host.users
    assert [each["name"] for each in await users.groups(None)] == ["readers", "writers"]
    assert [each["name"] for each in await users.groups(made.ann.id)] == ["readers"]
    found = await users.find_group(readers.id)
    assert found is not None
    assert (found["name"], found["member_count"]) == ("readers", 1)
    assert await users.find_group("none") is None


async def test_permissions(made: Hosting) -> None:
    held = await made.host.users.permissions(made.ann.id)
    assert held is not None
    assert (held["chat"]["delete"], held["workspace"]["models"]) == (True, False)
    assert await made.host.users.permissions("nobody") is None
