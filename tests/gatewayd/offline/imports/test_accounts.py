"""Users whom somebody knows here already, users that are one person, and groups."""

import asyncio
from typing import Any

import pytest

from gatewayd.accounts.records import Group, Role, User
from gatewayd.plugins.records import PluginFamily
from gatewayd.storage.groups import TortoiseGroups
from gatewayd.storage.keys import TortoiseKeys
from gatewayd.storage.plugins import TortoiseUserValves
from gatewayd.storage.users import TortoiseUsers
from tests.fakes.storage.open_webui import AT, KEY, Rows, auth, history, household, times, user
from tests.gatewayd.offline.imports.conftest import Importing, numbers, reasons


def here(importing: Importing, *users: User) -> None:
    """Add accounts to the gateway."""

    async def add() -> None:
        async with importing.open():
            for each in users:
                await TortoiseUsers().add(each, "$argon2id$here")

    asyncio.run(add())


def account(user_id: str, email: str, **more: Any) -> User:
    return User(id=user_id, email=email, name="Here", role=Role.USER, created_at=AT, **more)


def found(importing: Importing, email: str) -> User | None:
    async def find() -> User | None:
        async with importing.open():
            return await TortoiseUsers().find_by_email(email)

    return asyncio.run(find())


def people(*emails: str) -> Rows:
    ids = [f"u-{number}" for number in range(len(emails))]
    return {
        "user": [
            user(each, email, created_at=AT + place)
            for place, (each, email) in enumerate(zip(ids, emails, strict=True))
        ],
        "auth": [auth(each) for each in ids],
    }


def test_of_addresses_that_differ_in_case_the_oldest_account_is_imported(importing: Importing) -> None:
    rows = people("ann@example.org", "Ann@Example.org", "\uff41nn@example.org")
    rows["chat"] = [
        {"id": f"c-{each}", "user_id": f"u-{each}", "title": "T", "chat": history()} for each in range(3)
    ]
    for imported, present in ((1, 0), (0, 1)):
        report = importing.rows(rows)
        assert numbers(report) == {"user": (imported, present, 2), "chat": (imported, present, 2)}
        assert set(reasons(report, "user")) == {"u-1", "u-2"}
        assert "the user u-0 has the same e-mail address" in reasons(report, "user")["u-1"]
        assert reasons(report, "chat")["c-1"] == "its user is not imported"


def test_an_account_of_the_address_is_used_as_it_is(importing: Importing) -> None:
    here(importing, account("own", "bob@example.org"))
    report = importing.rows(household())
    assert numbers(report)["user"] == (1, 1, 0)
    assert numbers(report)["key"] == (0, 0, 1)
    assert numbers(report)["user valves"] == (0, 0, 1)
    assert "the account own of its e-mail address is here" in reasons(report, "user", "changed")["u-bob"]

    async def check() -> None:
        async with importing.open():
            assert await TortoiseUsers().find_password_hash("own") == "$argon2id$here"
            assert await TortoiseUsers().find("u-bob") is None
            assert [each.id for each in await TortoiseGroups().list(user_id="own")] == ["g-1"]
            assert await TortoiseKeys().list() == []

    asyncio.run(check())


def test_what_was_revoked_here_does_not_come_back(importing: Importing) -> None:
    importing.rows(household())

    async def revoke() -> None:
        async with importing.open():
            [key] = await TortoiseKeys().list(user_id="u-bob")
            await TortoiseKeys().remove(key.id)
            await TortoiseUsers().set_password_hash("u-bob", "$argon2id$new")

    asyncio.run(revoke())
    report = importing.rows(household())
    assert numbers(report)["key"] == (0, 0, 1)
    assert report["has_changed"] is False

    async def check() -> None:
        async with importing.open():
            assert await TortoiseKeys().list() == []
            assert await TortoiseUsers().find_password_hash("u-bob") == "$argon2id$new"

    asyncio.run(check())


def test_a_user_name_that_is_taken_is_left_out(importing: Importing) -> None:
    here(importing, account("own", "own@example.org", username="bob"))
    for is_dry in (True, False):
        report = importing.rows(household(), dry_run=is_dry)
        assert reasons(report, "user", "changed") == {"u-bob": "the user name bob is taken here"}
    bob = found(importing, "bob@example.org")
    assert bob is not None
    assert bob.username is None


def test_an_identity_that_is_taken_is_left_out(importing: Importing) -> None:
    here(importing, account("own", "own@example.org", oauth={"google": {"sub": "7"}}))
    rows = people("ann@example.org", "eve@example.org")
    rows["user"][0]["oauth"] = {"google": {"sub": "7"}}
    rows["user"][1]["oauth"] = {"google": {"sub": "8"}}
    report = importing.rows(rows)
    assert "identities at providers are left out" in reasons(report, "user", "changed")["u-0"]
    ann, eve = found(importing, "ann@example.org"), found(importing, "eve@example.org")
    assert ann is not None
    assert eve is not None
    assert (ann.oauth, eve.oauth) == (None, {"google": {"sub": "8"}})


def test_a_group_of_the_name_gets_the_new_accounts(importing: Importing) -> None:
    async def add() -> None:
        async with importing.open():
            from_here = account("own", "own@example.org")
            await TortoiseUsers().add(from_here, None)
            await TortoiseGroups().add(_group("here", "WRITERS"))

    asyncio.run(add())
    report = importing.rows(household())
    assert numbers(report)["group"] == (0, 1, 0)
    assert "the group here of this name is here" in reasons(report, "group", "changed")["g-1"]

    async def check() -> None:
        async with importing.open():
            assert await TortoiseGroups().list_member_ids("here") == ["u-bob"]

    asyncio.run(check())


def test_users_that_cannot_be_imported_are_named(importing: Importing) -> None:
    rows = people("no address", "x@example.org")
    rows["user"][1]["id"] = "u" * 65
    rows["user"].append(user("u-3", "dan@example.org", "boss", settings='{"cut', name="\x00"))
    report = importing.rows(rows)
    assert numbers(report) == {"user": (1, 0, 2)}
    assert "not a valid e-mail address" in reasons(report, "user")["u-0"]
    changed = [each["reason"] for each in report["changed"]]
    assert "cannot read settings: it is no JSON" in changed
    assert "its role 'boss' is unknown, it is pending" in changed
    dan = found(importing, "dan@example.org")
    assert dan is not None
    assert (dan.role, dan.settings) == (Role.PENDING, None)


def test_several_keys_have_several_names_and_a_key_one_owner(importing: Importing) -> None:
    rows = people("ann@example.org", "eve@example.org")
    rows["api_key"] = [
        {"id": "1", "user_id": "u-0", "key": KEY, "expires_at": AT, **times()},
        {"id": "2", "user_id": "u-0", "key": "short", **times()},
        {"id": "3", "user_id": "u-1", "key": KEY, **times()},
        {"id": "4", "user_id": "u-1", "key": "", **times()},
    ]
    report = importing.rows(rows)
    assert numbers(report)["key"] == (2, 0, 1)

    async def check() -> None:
        async with importing.open():
            keys = await TortoiseKeys().list(user_id="u-0")
            assert [(each.name, each.expires_at) for each in keys] == [
                ("Open WebUI", AT),
                ("Open WebUI 2", None),
            ]
            assert [each.prefix for each in keys] == [KEY[:8], "s"]

    asyncio.run(check())


@pytest.mark.parametrize("plugin_id", ["shout", "not an id"])
def test_valves_that_are_encrypted_there_are_left_out(importing: Importing, plugin_id: str) -> None:
    rows = people("ann@example.org")
    rows["user"][0]["settings"] = {"tools": {"valves": {plugin_id: "gAAAA", "adder": {"a": 1}, "empty": {}}}}
    report = importing.rows(rows)
    assert numbers(report)["user valves"] == (1, 0, 1)
    assert plugin_id in reasons(report, "user valves")

    async def check() -> None:
        async with importing.open():
            stored = TortoiseUserValves()
            assert await stored.find("u-0", PluginFamily.TOOL, "adder") == {"a": 1}

    asyncio.run(check())


def _group(group_id: str, name: str) -> Group:
    return Group(id=group_id, name=name)
