import asyncio
from dataclasses import replace
from typing import Any

import pytest

from gatewayd.accounts.change_notifier import AccountChange
from gatewayd.accounts.password_rules import PasswordRules
from gatewayd.accounts.records import (
    Email,
    EnsureOutcome,
    NewGroup,
    NewUser,
    ProviderIdentity,
    Role,
    User,
    UserChange,
)
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.accounts.services import Accounts

ANN = NewUser("Ann@Example.org", " Ann ", password="secret")


async def test_a_new_account(accounts: Accounts) -> None:
    user = await accounts.users.create(ANN)
    assert (user.email, user.name, user.role, user.active) == ("ann@example.org", "Ann", Role.USER, True)
    assert user.created_at == user.updated_at == accounts.time
    assert await accounts.users.get(user.id) == await accounts.users.find(user.id) == user
    assert await accounts.users.resolve("ANN@example.ORG") == user
    assert await accounts.users.resolve(user.id) == user
    assert accounts.memory.tables.passwords == {user.id: "hash:secret"}
    assert accounts.heard == [AccountChange(user.id)]


@pytest.mark.parametrize(
    ("new", "param"),
    [
        (NewUser("ann", "Ann"), "email"),
        (NewUser("a@b", ""), "name"),
        (NewUser("a@b", "A\0"), "name"),
        (NewUser("a@b", "A", profile_image_url="javascript:x"), "profile_image_url"),
        (NewUser("a@b", "A", username="x\n\x1b"), "username"),
    ],
)
async def test_bad_accounts_name_the_field(accounts: Accounts, new: NewUser, param: str) -> None:
    with pytest.raises(GatewayError) as caught:
        await accounts.users.create(new)
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, param)
    assert await accounts.users.count() == 0


async def test_addresses_are_taken_in_every_spelling(accounts: Accounts) -> None:
    await accounts.users.create(ANN)
    with pytest.raises(GatewayError) as caught:
        await accounts.users.create(NewUser("ANN@example.org", "Other"))
    assert caught.value.kind is ErrorKind.CONFLICT


@pytest.mark.parametrize("ref", ["nobody", "no@body", "a\0b", ""])
async def test_unknown_accounts(accounts: Accounts, ref: str) -> None:
    with pytest.raises(GatewayError) as caught:
        await accounts.users.resolve(ref)
    assert caught.value.kind is ErrorKind.NOT_FOUND
    assert await accounts.users.find(ref) is None


async def test_sixteen_first_sign_ups_make_one_administrator(accounts: Accounts) -> None:
    people = [NewUser(f"u{number}@x", "U", role=Role.PENDING) for number in range(16)]
    users = await asyncio.gather(*(accounts.users.sign_up(new) for new in people))
    assert sorted(user.role for user in users) == [Role.ADMIN] + [Role.PENDING] * 15


async def test_a_sign_up_whose_end_fails_leaves_nothing(accounts: Accounts) -> None:
    async def fail(user: User, is_first: bool) -> None:
        raise GatewayError(ErrorKind.CONFLICT, "cannot")

    with pytest.raises(GatewayError):
        await accounts.users.sign_up(ANN, fail)
    assert await accounts.users.count() == 0
    assert accounts.heard == []


async def test_pages(accounts: Accounts) -> None:
    for name in ("cid", "ann", "bob"):
        await accounts.add_user(name)
    page, total = await accounts.users.list(order_by="name", descending=True, offset=1, limit=1)
    assert ([user.name for user in page], total) == (["bob"], 3)
    found, _ = await accounts.users.list(query="ANN")
    assert [user.name for user in found] == ["ann"]
    with pytest.raises(GatewayError, match="cannot order by"):
        await accounts.users.list(order_by="password")


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        (UserChange(name=" Bea "), "name", "Bea"),
        (UserChange(email="BEA@x"), "email", "bea@x"),
        (UserChange(username="bea"), "username", "bea"),
        (UserChange(profile_image_url="/b.png"), "profile_image_url", "/b.png"),
        (UserChange(profile={"bio": "b"}), "profile", {"bio": "b"}),
        (UserChange(settings={"ui": {}}), "settings", {"ui": {}}),
        (UserChange(info={"a": 1}), "info", {"a": 1}),
        (UserChange(scim={"p": {"external_id": "1"}}), "scim", {"p": {"external_id": "1"}}),
        (UserChange(oauth={"p": {"sub": "1"}}), "oauth", {"p": {"sub": "1"}}),
    ],
)
async def test_one_field_changes_and_sessions_stay(
    accounts: Accounts, change: UserChange, field: str, value: Any
) -> None:
    before = await accounts.users.create(ANN)
    accounts.time += 5
    after = await accounts.users.change(before.id, change, None)
    differing = {name for name in User.__slots__ if getattr(before, name) != getattr(after, name)}
    assert differing == {field, "updated_at", "modified_us"}
    assert after.modified_us > before.modified_us
    assert getattr(after, field) == value
    assert await accounts.users.get(before.id) == after


PERSON = ProviderIdentity(
    "Ann@x", display_name="Ann", emails=(Email("a@x"), Email("ann@example.org", primary=True))
)


async def test_a_provisioned_account(accounts: Accounts) -> None:
    scim = {"okta": {"external_id": "1"}}
    user = await accounts.users.create(replace(ANN, identity=PERSON, scim=scim, oauth={}))
    assert (user.identity, user.scim, user.oauth) == (PERSON, scim, None)
    assert await accounts.users.get(user.id) == user
    for new, param in (
        (NewUser("b@x", "B", identity=replace(PERSON, user_name="ANN@X")), "user_name"),
        (NewUser("b@x", "B", scim=scim), "external_id"),
        (NewUser("ann@x", "B"), "email"),
    ):
        with pytest.raises(GatewayError) as caught:
            await accounts.users.create(new)
        assert (caught.value.kind, caught.value.param) == (ErrorKind.CONFLICT, param)
    other = ProviderIdentity("other@x")
    changed = await accounts.users.change(user.id, UserChange(identity=other, scim={}), None)
    assert (changed.identity, changed.scim) == (other, None)


async def test_what_a_provider_said_follows_a_change_by_hand(accounts: Accounts) -> None:
    user = await accounts.users.create(replace(ANN, identity=PERSON))
    changed = await accounts.users.change(user.id, UserChange(name="Bea", email="Bea@x"), None)
    emails = (Email("a@x"), Email("bea@x", primary=True))
    assert changed.identity == replace(PERSON, display_name="Bea", emails=emails)
    again = await accounts.users.change(user.id, UserChange(name="Bea", email="bea@x", role=Role.ADMIN), None)
    assert again.identity == changed.identity


async def test_an_account_made_by_hand_gets_no_identity_by_a_change(accounts: Accounts) -> None:
    user = await accounts.users.create(ANN)
    changed = await accounts.users.change(user.id, UserChange(name="Bea", email="bea@x"), None)
    assert changed.identity == ProviderIdentity()


@pytest.mark.parametrize(
    ("change", "is_out", "asks_again"),
    [
        (UserChange(name="Bea"), False, False),
        (UserChange(active=False), True, True),
        (UserChange(role=Role.PENDING), True, True),
        (UserChange(role=Role.ADMIN), False, True),
        (UserChange(password="a longer password"), False, True),
    ],
)
async def test_who_is_out_and_who_must_ask_again_is_told(
    accounts: Accounts, change: UserChange, is_out: bool, asks_again: bool
) -> None:
    user = await accounts.users.create(ANN)
    accounts.heard.clear()
    await accounts.users.change(user.id, change, None)
    assert accounts.heard == [
        AccountChange(user.id, is_out=is_out, asks_again=asks_again, is_signed_out=asks_again)
    ]
    await accounts.users.remove((await accounts.add_user("bob")).id, None)
    assert accounts.heard[-1].is_out


async def test_who_is_out_already_is_not_put_out_again(accounts: Accounts) -> None:
    user = await accounts.users.create(replace(ANN, role=Role.PENDING))
    accounts.heard.clear()
    await accounts.users.change(user.id, UserChange(name="Bea"), None)
    assert accounts.heard == [AccountChange(user.id, is_out=False)]


async def test_objects_are_merged_and_taken_away(accounts: Accounts) -> None:
    user = await accounts.users.create(ANN)
    for change in (
        UserChange(username="ann", profile={"a": 1, "b": 2}, settings={"ui": 1}, scim={"p": {}}),
        UserChange(username="", profile={"a": None, "c": 3}, settings={"x": 2}, scim={}),
    ):
        user = await accounts.users.change(user.id, change, None)
    assert (user.username, user.profile, user.settings, user.scim) == (
        None,
        {"b": 2, "c": 3},
        {"ui": 1, "x": 2},
        None,
    )


async def test_no_change_is_not_written(accounts: Accounts) -> None:
    user = await accounts.users.create(ANN)
    accounts.heard.clear()
    assert await accounts.users.change(user.id, UserChange(name="Ann", active=True), None) == user
    assert accounts.heard == []


@pytest.mark.parametrize(
    "change", [UserChange(password="x"), UserChange(role=Role.PENDING), UserChange(active=False)]
)
async def test_what_ends_sessions(accounts: Accounts, change: UserChange) -> None:
    user = await accounts.users.create(ANN)
    changed = await accounts.users.change(user.id, change, None)
    assert changed.token_version == 1
    again = await accounts.users.change(user.id, UserChange(active=True), None)
    assert again.token_version == 1


async def test_own_password(accounts: Accounts) -> None:
    user = await accounts.users.create(ANN)
    who = await accounts.actor(user)
    with pytest.raises(GatewayError, match="update/password") as caught:
        await accounts.users.change(user.id, UserChange(password="new"), who)
    assert (caught.value.kind, caught.value.param) == (ErrorKind.FORBIDDEN, "password")
    await accounts.users.set_password(user.id, "new")
    assert accounts.memory.tables.passwords[user.id] == "hash:new"
    assert (await accounts.users.get(user.id)).token_version == 1


async def test_two_changes_at_once_are_both_kept(accounts: Accounts) -> None:
    user = await accounts.users.create(ANN)
    await asyncio.gather(
        *(accounts.users.change(user.id, UserChange(settings={str(n): n}), None) for n in range(10))
    )
    assert (await accounts.users.get(user.id)).settings == {str(n): n for n in range(10)}


@pytest.mark.parametrize("change", [UserChange(role=Role.USER), UserChange(active=False)])
async def test_the_last_active_administrator_stays(accounts: Accounts, change: UserChange) -> None:
    admin = await accounts.add_user("chief", Role.ADMIN)
    await accounts.add_user("former", Role.ADMIN, active=False)
    for attempt in (accounts.users.change(admin.id, change, None), accounts.users.remove(admin.id, None)):
        with pytest.raises(GatewayError) as caught:
            await attempt
        assert caught.value.kind is ErrorKind.CONFLICT
    assert await accounts.users.get(admin.id) == admin


async def test_two_administrators_cannot_demote_each_other_at_once(accounts: Accounts) -> None:
    admins = [await accounts.add_user(f"a{number}", Role.ADMIN) for number in range(5)]
    outcomes = await asyncio.gather(
        *(accounts.users.change(admin.id, UserChange(role=Role.USER), None) for admin in admins),
        return_exceptions=True,
    )
    assert sum(isinstance(outcome, GatewayError) for outcome in outcomes) == 1
    assert await accounts.users_store.count_active_admins() == 1


async def test_the_primary_administrator_over_http(accounts: Accounts) -> None:
    first = await accounts.add_user("first", Role.ADMIN)
    second = await accounts.add_user("second", Role.ADMIN)
    by_first, by_second = await accounts.actor(first), await accounts.actor(second)
    assert await accounts.users.find_primary() == first
    for attempt in (
        accounts.users.change(first.id, UserChange(name="x"), by_second),
        accounts.users.remove(first.id, by_second),
        accounts.users.remove(first.id, by_first),
        accounts.users.remove(second.id, by_second),
        accounts.users.change(first.id, UserChange(role=Role.USER), by_first),
        accounts.users.change(second.id, UserChange(role=Role.USER), by_second),
        accounts.users.change(second.id, UserChange(active=False), by_second),
    ):
        with pytest.raises(GatewayError) as caught:
            await attempt
        assert caught.value.kind is ErrorKind.FORBIDDEN
    await accounts.users.change(first.id, UserChange(name="Me", role=Role.ADMIN), by_first)
    await accounts.users.change(second.id, UserChange(role=Role.USER), by_first)
    await accounts.users.remove(second.id, by_first)


async def test_who_comes_in_the_same_second_does_not_become_the_primary_administrator(
    accounts: Accounts,
) -> None:
    first = await accounts.add_user("first", Role.ADMIN)
    for number in range(20):
        user = await accounts.users.create(NewUser(f"u{number}@example.org", "U"))
        assert user.created_at == first.created_at
        await accounts.users.change(user.id, UserChange(role=Role.ADMIN), await accounts.actor(first))
    assert await accounts.users.find_primary() == first


async def test_the_operator_is_bound_by_the_last_rule_only(accounts: Accounts) -> None:
    first = await accounts.add_user("first", Role.ADMIN)
    await accounts.add_user("second", Role.ADMIN)
    await accounts.users.change(first.id, UserChange(role=Role.USER), None)
    await accounts.users.remove(first.id, None)
    with pytest.raises(GatewayError):
        await accounts.users.get(first.id)


async def test_removal_takes_memberships_and_keys(accounts: Accounts) -> None:
    user = await accounts.add_user()
    await accounts.grant_keys(user)
    await accounts.keys.issue(user)
    await accounts.users.remove(user.id, None)
    tables = accounts.memory.tables
    assert (tables.users, tables.members, tables.keys, tables.passwords) == ({}, {}, {}, {})


async def test_ensure(accounts: Accounts) -> None:
    user, outcome = await accounts.users.ensure(ANN)
    assert outcome is EnsureOutcome.CREATED
    assert await accounts.users.ensure(ANN) == (user, EnsureOutcome.UNCHANGED)
    renamed, outcome = await accounts.users.ensure(NewUser("ann@example.org", "Anna"))
    assert (renamed.name, outcome) == ("Anna", EnsureOutcome.CHANGED)
    _, outcome = await accounts.users.ensure(NewUser("ann@example.org", "Anna", password="other"))
    assert outcome is EnsureOutcome.CHANGED
    assert accounts.memory.tables.passwords[user.id] == "hash:other"


async def test_group_ids(accounts: Accounts) -> None:
    user = await accounts.add_user()
    group = await accounts.groups.create(NewGroup("g"))
    await accounts.groups.add_members(group.id, [user.id])
    assert await accounts.users.list_group_ids([user]) == {user.id: [group.id]}


async def test_clients_that_see_pending_for_deactivated(accounts: Accounts) -> None:
    user = await accounts.add_user(role=Role.ADMIN, active=False)
    same = await accounts.users.change_as_shown(user.id, UserChange(role=Role.PENDING), None)
    assert (same.role, same.active) == (Role.ADMIN, False)
    back = await accounts.users.change_as_shown(user.id, UserChange(role=Role.USER), None)
    assert (back.role, back.active) == (Role.USER, True)
    pending = await accounts.users.change_as_shown(user.id, UserChange(role=Role.PENDING), None)
    assert (pending.role, pending.active) == (Role.PENDING, True)


async def test_a_password_that_is_guessed_first_is_chosen_nowhere(accounts: Accounts) -> None:
    ann = await accounts.users.create(ANN)
    accounts.passwords.rules = PasswordRules()
    weak = "annsmith"
    new = NewUser("b@example.org", "Ann Smith", password=weak)
    attempts = [
        lambda: accounts.users.create(new),
        lambda: accounts.users.ensure(new),
        lambda: accounts.users.sign_up(new),
        lambda: accounts.users.change(ann.id, UserChange(name="Ann Smith", password=weak), None),
        lambda: accounts.users.ensure(replace(new, email=ann.email)),
        lambda: accounts.users.set_password(ann.id, "short", field="new_password"),
    ]
    for attempt in attempts:
        with pytest.raises(GatewayError) as caught:
            await attempt()
        assert caught.value.code == "weak_password"
    assert caught.value.param == "new_password"
    # Who has a short one already keeps it.
    assert await accounts.users.ensure(replace(new, email=ann.email, password="secret"))
