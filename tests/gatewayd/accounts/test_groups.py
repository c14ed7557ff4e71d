import pytest

from gatewayd.accounts import groups as module
from gatewayd.accounts.changes import Change
from gatewayd.accounts.records import GroupChange, NewGroup, Outcome
from gatewayd.errors import GatewayError, Kind
from tests.fakes.accounts import Accounts

KEYS = {"features": {"api_keys": True}}


async def test_a_new_group(accounts: Accounts) -> None:
    group = await accounts.groups.create(NewGroup(" Staff ", "all\nof us", "u1", KEYS, {"a": 1}))
    assert (group.name, group.description, group.permissions, group.member_count) == (
        "Staff",
        "all\nof us",
        KEYS,
        0,
    )
    assert await accounts.groups.get(group.id) == group
    assert await accounts.groups.resolve("sTAFF") == group
    assert await accounts.groups.resolve(group.id) == group
    assert list(await accounts.groups.list()) == [group]


@pytest.mark.parametrize(
    ("new", "param"),
    [
        (NewGroup(""), "name"),
        (NewGroup("x" * 256), "name"),
        (NewGroup("x", "\0"), "description"),
        (NewGroup("x", permissions={"nothing": {}}), "permissions"),
        (NewGroup("x", data={"a": "\0"}), "data"),
    ],
)
async def test_bad_groups_name_the_field(accounts: Accounts, new: NewGroup, param: str) -> None:
    with pytest.raises(GatewayError) as caught:
        await accounts.groups.create(new)
    assert (caught.value.kind, caught.value.param) == (Kind.INVALID_REQUEST, param)


async def test_names_are_unique_in_any_case(accounts: Accounts) -> None:
    group = await accounts.groups.create(NewGroup("Staff"))
    other = await accounts.groups.create(NewGroup("Other"))
    for attempt in (
        accounts.groups.create(NewGroup("STAFF")),
        accounts.groups.change(other.id, GroupChange(name="staff")),
    ):
        with pytest.raises(GatewayError) as caught:
            await attempt
        assert caught.value.kind is Kind.CONFLICT
    assert (await accounts.groups.change(group.id, GroupChange(name="STAFF"))).name == "STAFF"


async def test_changes_reach_everybody(accounts: Accounts) -> None:
    group = await accounts.groups.create(NewGroup("g", "d"))
    accounts.heard.clear()
    changed = await accounts.groups.change(group.id, GroupChange(permissions=KEYS))
    assert (changed.permissions, changed.description) == (KEYS, "d")
    assert await accounts.groups.change(group.id, GroupChange(permissions=KEYS)) == changed
    await accounts.groups.remove(group.id)
    assert accounts.heard == [Change(None), Change(None)]


async def test_members(accounts: Accounts) -> None:
    ann, bob = await accounts.add_user("ann"), await accounts.add_user("bob")
    group = await accounts.groups.create(NewGroup("g"))
    accounts.heard.clear()
    assert await accounts.groups.add_members(group.id, [bob.id, "unknown", ann.id, bob.id, "\0"]) == 2
    assert await accounts.groups.add_members(group.id, [ann.id], source="scim") == 0
    assert Change(ann.id) in accounts.heard
    assert [user.name for user in await accounts.groups.list_members(group.id)] == ["ann", "bob"]
    assert (await accounts.groups.get(group.id)).member_count == 2
    assert await accounts.groups.remove_members(group.id, [ann.id, "unknown"]) == 1
    assert list(await accounts.groups.list(user_id=ann.id)) == []
    assert [group.name for group in await accounts.groups.list(user_id=bob.id)] == ["g"]


async def test_unknown_groups(accounts: Accounts) -> None:
    groups = accounts.groups
    for attempt in (
        groups.get("x"),
        groups.get("\0"),
        groups.resolve("x"),
        groups.change("x", GroupChange(name="y")),
        groups.remove("x"),
        groups.remove("\0"),
        groups.list_members("x"),
        groups.add_members("x", []),
        groups.remove_members("x", []),
    ):
        with pytest.raises(GatewayError) as caught:
            await attempt
        assert caught.value.kind is Kind.NOT_FOUND
    assert await groups.find("x") is None


async def test_many_members_at_once_are_bounded(accounts: Accounts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_MEMBERS_AT_ONCE", 1)
    group = await accounts.groups.create(NewGroup("g"))
    with pytest.raises(GatewayError) as caught:
        await accounts.groups.add_members(group.id, ["a", "b"])
    assert caught.value.kind is Kind.TOO_LARGE


async def test_ensure(accounts: Accounts) -> None:
    group, outcome = await accounts.groups.ensure(NewGroup("g", "d", permissions={"chat": {"edit": True}}))
    assert outcome is Outcome.CREATED
    assert await accounts.groups.ensure(NewGroup("G")) == (group, Outcome.UNCHANGED)
    changed, outcome = await accounts.groups.ensure(NewGroup("g", permissions=KEYS))
    assert outcome is Outcome.CHANGED
    assert (changed.description, changed.permissions) == ("d", {"chat": {"edit": True}, **KEYS})
