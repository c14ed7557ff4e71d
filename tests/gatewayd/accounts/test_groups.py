import pytest

from gatewayd.accounts import groups as module
from gatewayd.accounts.change_notifier import AccountChange
from gatewayd.accounts.records import EnsureOutcome, GroupChange, MembershipSource, NewGroup
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.accounts.services import Accounts

KEYS = {"features": {"api_keys": True}}


async def test_a_new_group(accounts: Accounts) -> None:
    group = await accounts.groups.create(NewGroup(" Staff ", "all\nof us", "u1", KEYS, {"a": 1}))
    assert (group.name, group.description, group.permissions) == ("Staff", "all\nof us", KEYS)
    assert await accounts.groups.count_members([group]) == {group.id: 0}
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
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, param)


async def test_names_are_unique_in_any_case(accounts: Accounts) -> None:
    group = await accounts.groups.create(NewGroup("Staff"))
    other = await accounts.groups.create(NewGroup("Other"))
    for attempt in (
        accounts.groups.create(NewGroup("STAFF")),
        accounts.groups.change(other.id, GroupChange(name="staff")),
    ):
        with pytest.raises(GatewayError) as caught:
            await attempt
        assert caught.value.kind is ErrorKind.CONFLICT
    assert (await accounts.groups.change(group.id, GroupChange(name="STAFF"))).name == "STAFF"


async def test_changes_reach_everybody(accounts: Accounts) -> None:
    group = await accounts.groups.create(NewGroup("g", "d"))
    accounts.heard.clear()
    changed = await accounts.groups.change(group.id, GroupChange(permissions=KEYS))
    assert (changed.permissions, changed.description) == (KEYS, "d")
    assert await accounts.groups.change(group.id, GroupChange(permissions=KEYS)) == changed
    await accounts.groups.remove(group.id)
    assert accounts.heard == [AccountChange(None), AccountChange(None)]


async def test_members(accounts: Accounts) -> None:
    ann, bob = await accounts.add_user("ann"), await accounts.add_user("bob")
    group = await accounts.groups.create(NewGroup("g"))
    accounts.heard.clear()
    assert await accounts.groups.add_members(group.id, [bob.id, "unknown", ann.id, bob.id, "\0"]) == 2
    assert await accounts.groups.add_members(group.id, [ann.id]) == 0
    assert AccountChange(ann.id) in accounts.heard
    assert list(await accounts.groups.list_member_ids(group.id)) == [ann.id, bob.id]
    assert await accounts.groups.count_members([group]) == {group.id: 2}
    assert await accounts.groups.remove_members(group.id, [ann.id, "unknown"]) == 1
    assert list(await accounts.groups.list(user_id=ann.id)) == []
    assert [group.name for group in await accounts.groups.list(user_id=bob.id)] == ["g"]


async def test_a_change_of_many_members_is_announced_once(accounts: Accounts) -> None:
    group = await accounts.groups.create(NewGroup("g"))
    accounts.heard.clear()
    await accounts.groups.add_members(group.id, [f"u{number}" for number in range(101)])
    assert accounts.heard == [AccountChange(None)]


async def test_members_by_source(accounts: Accounts) -> None:
    ann, bob, cid = [await accounts.add_user(name) for name in ("ann", "bob", "cid")]
    group = await accounts.groups.create(NewGroup("g"))
    await accounts.groups.add_members(group.id, [ann.id])
    assert await accounts.groups.add_members(group.id, [ann.id, bob.id], MembershipSource.SCIM) == 2
    assert await accounts.groups.list_sources(group.id, [ann.id, bob.id, cid.id]) == {
        ann.id: [MembershipSource.MANUAL, MembershipSource.SCIM],
        bob.id: [MembershipSource.SCIM],
    }
    assert await accounts.groups.count_by_source(group.id) == {
        MembershipSource.MANUAL: 1,
        MembershipSource.SCIM: 2,
    }
    assert await accounts.groups.count_members([group]) == {group.id: 2}
    accounts.heard.clear()
    assert await accounts.groups.set_members(
        group.id, [bob.id, cid.id, "unknown"], MembershipSource.SCIM
    ) == (1, 1)
    assert accounts.heard == [AccountChange(None)]
    assert await accounts.groups.set_members(group.id, [cid.id, bob.id], MembershipSource.SCIM) == (0, 0)
    assert accounts.heard == [AccountChange(None)]
    assert await accounts.groups.remove_members(group.id, [ann.id, bob.id], MembershipSource.SCIM) == 1
    assert list(await accounts.groups.list_member_ids(group.id)) == [ann.id, cid.id]


async def test_a_group_has_changed_when_its_members_have(accounts: Accounts) -> None:
    ann = await accounts.add_user("ann")
    group = await accounts.groups.create(NewGroup("g"))
    times = [group.modified_us]
    for attempt in (
        lambda: accounts.groups.add_members(group.id, [ann.id], MembershipSource.SCIM),
        lambda: accounts.groups.add_members(group.id, [ann.id], MembershipSource.SCIM),
        lambda: accounts.groups.set_members(group.id, [], MembershipSource.SCIM),
        lambda: accounts.groups.remove_members(group.id, [ann.id]),
    ):
        accounts.time += 1
        await attempt()
        changed = await accounts.groups.get(group.id)
        times.append(changed.modified_us)
    assert times[0] < times[1] == times[2] < times[3] == times[4]
    assert changed.updated_at == accounts.time - 1


async def test_external_ids(accounts: Accounts) -> None:
    same = {"okta": {"external_id": "1"}}
    group = await accounts.groups.create(NewGroup("g", scim=same))
    other = await accounts.groups.create(NewGroup("other", scim={}))
    assert (group.scim, other.scim) == (same, None)
    for attempt in (
        accounts.groups.create(NewGroup("third", scim=same)),
        accounts.groups.change(other.id, GroupChange(scim=same)),
    ):
        with pytest.raises(GatewayError) as caught:
            await attempt
        assert (caught.value.kind, caught.value.param) == (ErrorKind.CONFLICT, "external_id")
    assert (await accounts.groups.change(group.id, GroupChange(scim={}))).scim is None
    assert (await accounts.groups.change(other.id, GroupChange(scim=same))).scim == same


async def test_unknown_groups(accounts: Accounts) -> None:
    groups = accounts.groups
    for attempt in (
        groups.get("x"),
        groups.get("\0"),
        groups.resolve("x"),
        groups.change("x", GroupChange(name="y")),
        groups.remove("x"),
        groups.remove("\0"),
        groups.list_member_ids("x"),
        groups.add_members("x", []),
        groups.remove_members("x", []),
        groups.list_sources("x", ["u"]),
        groups.set_members("x", [], MembershipSource.SCIM),
    ):
        with pytest.raises(GatewayError) as caught:
            await attempt
        assert caught.value.kind is ErrorKind.NOT_FOUND
    assert await groups.find("x") is None


async def test_many_members_at_once_are_bounded(accounts: Accounts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_MEMBERS_AT_ONCE", 1)
    group = await accounts.groups.create(NewGroup("g"))
    with pytest.raises(GatewayError) as caught:
        await accounts.groups.add_members(group.id, ["a", "b"])
    assert caught.value.kind is ErrorKind.TOO_LARGE


async def test_ensure(accounts: Accounts) -> None:
    group, outcome = await accounts.groups.ensure(NewGroup("g", "d", permissions={"chat": {"edit": True}}))
    assert outcome is EnsureOutcome.CREATED
    assert await accounts.groups.ensure(NewGroup("G")) == (group, EnsureOutcome.UNCHANGED)
    changed, outcome = await accounts.groups.ensure(NewGroup("g", permissions=KEYS))
    assert outcome is EnsureOutcome.CHANGED
    assert (changed.description, changed.permissions) == ("d", {"chat": {"edit": True}, **KEYS})
