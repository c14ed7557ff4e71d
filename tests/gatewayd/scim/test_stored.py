"""What only a real database shows of the provisioning services: races, one transaction, odd values."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gatewayd.accounts.records import MembershipSource, Role
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import sqlite
from gatewayd.storage.groups import TortoiseGroups
from gatewayd.storage.scim.directory import TortoiseDirectory
from gatewayd.storage.tables.accounts import GroupRow, UserRow
from gatewayd.storage.users import TortoiseUsers
from gatewayd.transactions import CallbackTransactor
from tests.fakes.accounts.provisioning import Provisioning, adding, removing, replacing


@pytest.fixture
async def scim(migrated_copy: Path) -> AsyncIterator[Provisioning]:
    async with Database.open(sqlite(migrated_copy)) as database:
        made = Provisioning()
        made.accounts.commits = CallbackTransactor(database)
        made.accounts.users_store = TortoiseUsers()  # type: ignore[assignment]
        made.accounts.groups_store = TortoiseGroups()  # type: ignore[assignment]
        made.__dict__["directory"] = TortoiseDirectory()
        yield made


@pytest.mark.parametrize(
    "body",
    [
        lambda number: {"userName": "ANN@x.org" if number % 2 else "ann@X.org"},
        lambda number: {"userName": f"u{number}@x.org", "externalId": "7"},
        lambda number: {"userName": f"u{number}@x.org", "emails": [{"value": "ann@x.org"}]},
    ],
)
async def test_sixteen_racing_creates_make_one_user(scim: Provisioning, body: Any) -> None:
    attempts = [scim.users.create(body(number)) for number in range(16)]
    found = await asyncio.gather(*attempts, return_exceptions=True)
    refused = [each for each in found if isinstance(each, GatewayError)]
    assert {(each.kind, each.code) for each in refused} == {(ErrorKind.CONFLICT, "taken")}
    assert len(refused) == 15
    assert len(await scim.found()) == 1


async def test_patches_at_the_same_time_lose_nothing(scim: Provisioning) -> None:
    user_id = await scim.add_user()
    paths = ("displayName", "name.givenName", "name.familyName", "name.formatted", "externalId")
    await asyncio.gather(*(scim.patch_user(user_id, replacing(path, path)) for path in paths))
    shown = await scim.shown_user(user_id)
    assert (shown["displayName"], shown["externalId"]) == ("displayName", "externalId")
    assert shown["name"] == {name.split(".")[1]: name for name in paths[1:4]}


async def test_what_was_sent_comes_back(scim: Provisioning) -> None:
    sent = {
        "userName": "Ädä@Exämple.org",
        "externalId": "İ%_\\'\"",
        "displayName": "名前 🙂",
        "name": {"formatted": "ß", "familyName": "%", "givenName": "_"},
        "emails": [{"value": "Ä@x.org", "type": "Home", "primary": True}],
        "active": False,
    }
    user_id = (await scim.users.create(sent)).entry.user.id
    shown = await scim.shown_user(user_id)
    assert {name: shown[name] for name in sent} == sent
    before = await scim.account(user_id)
    assert (await scim.users.replace(user_id, shown)).entry.user == before
    assert (await scim.patch_user(user_id, replacing("active", "False"))) == shown


async def test_the_life_of_a_group(scim: Provisioning) -> None:
    ann, bob = await scim.add_user("ann"), await scim.add_user("bob")
    group = await scim.add_group("Staff", ann, externalId="9")
    await scim.accounts.groups.add_members(group, [bob])
    said = [
        (await scim.groups.patch(group, {"Operations": [operation]})).changes
        for operation in (
            adding("members", [{"value": bob}, {"value": ann}, {"value": "unknown"}]),
            removing(f'members[value eq "{ann}"]'),
            replacing("members", [{"value": ann}]),
            removing('members[display sw "ann"]'),
        )
    ]
    assert said == ["members +1", "members -1", "members +1 -1", "members -1"]
    assert await scim.sources(group) == {bob: [MembershipSource.MANUAL]}
    await scim.groups.remove(group)
    assert await scim.found_groups() == []


async def test_a_failed_patch_leaves_nothing_behind(scim: Provisioning) -> None:
    ann = await scim.add_user()
    group = await scim.add_group("Staff")
    await scim.add_group("Crew")
    before = await scim.shown_group(group)
    operations = [adding("members", [{"value": ann}]), replacing("displayName", "CREW")]
    for order in (operations, operations[::-1]):
        with pytest.raises(GatewayError) as caught:
            await scim.groups.patch(group, {"Operations": order})
        assert (caught.value.kind, caught.value.code) == (ErrorKind.CONFLICT, "taken")
        assert await scim.shown_group(group) == before


async def test_the_last_of_two_administrators_stays(scim: Provisioning) -> None:
    bosses = [await scim.accounts.add_user(name, Role.ADMIN) for name in ("ann", "bob")]
    attempts = [scim.users.deactivate(boss.id) for boss in bosses]
    found = await asyncio.gather(*attempts, return_exceptions=True)
    (refused,) = [each for each in found if isinstance(each, GatewayError)]
    assert refused.code == "last_administrator"
    assert [(await scim.account(boss.id)).active for boss in bosses].count(True) == 1


async def test_searches(scim: Provisioning) -> None:
    linked = await scim.accounts.add_user("linked", oauth={"okta": {"sub": "S1"}})
    await scim.add_user("ann", externalId="7", emails=["ann@example.org"])
    assert await scim.found('externalId eq "7"') == ["ann@example.org"]
    assert await scim.found('externalId eq "S1"') == [linked.email]
    assert await scim.found('USERNAME eq "ANN@EXAMPLE.ORG"') == ["ann@example.org"]
    assert await scim.found(sort_by="emails") == ["ann@example.org", linked.email]
    assert await scim.found(start_index=10**30, count=10**30) == []


@pytest.mark.parametrize("odd", ['"okta"', '["okta"]', '{"okta": "1"}', "5"])
async def test_a_user_whose_stored_objects_have_another_shape_is_changed(
    scim: Provisioning, odd: str
) -> None:
    user_id = (await scim.users.create({"userName": "ann@x.org"})).entry.user.id
    await UserRow.filter(id=user_id).update(scim=odd, oauth=odd)
    assert "externalId" not in await scim.shown_user(user_id)
    await scim.patch_user(user_id, replacing("displayName", "Ann"))
    await scim.users.deactivate(user_id)
    await scim.patch_user(user_id, adding("externalId", "7"))
    assert (await scim.shown_user(user_id))["externalId"] == "7"
    assert await scim.found('externalId eq "7"') == ["ann@x.org"]
    group_id = (await scim.groups.create({"displayName": "Staff"})).entry.group.id
    await GroupRow.filter(id=group_id).update(scim=odd)
    await scim.groups.replace(group_id, {"displayName": "All", "externalId": "g"})
    assert (await scim.shown_group(group_id))["externalId"] == "g"
