import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from gatewayd.accounts.change_notifier import AccountChange
from gatewayd.accounts.records import Email, NewUser, ProviderIdentity, Role, User, UserChange
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.scim import users as module
from gatewayd.scim.records import SearchParameters
from gatewayd.transactions import after_commit
from tests.fakes.accounts.provisioning import Provisioning, adding, removing, replacing

URN = "urn:ietf:params:scim:schemas:core:2.0:User"
ADA = {
    "schemas": [URN, "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],
    "userName": "Ada@Example.org",
    "externalId": "7",
    "displayName": "Ada L",
    "name": {"givenName": "Ada", "familyName": "Lovelace", "middleName": "K"},
    "emails": [{"value": "x@home.org", "type": "home"}, {"value": "Mail@Example.org", "primary": True}],
    "active": True,
    "password": "secret",
    "title": "Countess",
    "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": {"department": "Engines"},
}


@pytest.fixture
def scim() -> Provisioning:
    return Provisioning()


async def refusal(attempt: Awaitable[Any]) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await attempt
    return caught.value


async def test_a_created_user_is_an_account_without_a_password(scim: Provisioning) -> None:
    written = await scim.users.create(ADA)
    user = written.entry.user
    assert user == await scim.account(user.id)
    assert (user.email, user.name, user.role, user.active) == ("mail@example.org", "Ada L", Role.USER, True)
    assert user.scim == {"okta": {"external_id": "7"}}
    assert user.identity == ProviderIdentity(
        "Ada@Example.org",
        "Ada L",
        None,
        "Ada",
        "Lovelace",
        (Email("x@home.org", "home"), Email("Mail@Example.org", "work", primary=True)),
    )
    assert await scim.accounts.users_store.find_password_hash(user.id) is None
    assert scim.accounts.heard == [AccountChange(user.id)]


async def test_what_the_audit_hears_of_a_new_user(scim: Provisioning) -> None:
    written = await scim.users.create(ADA)
    assert (written.before, written.changes, written.entry.groups) == (None, "", ())
    assert written.after["id"] == written.entry.user.id
    assert not written.after.keys() & {"meta", "groups", "password", "title"}
    assert "secret" not in repr(written)


@pytest.mark.parametrize(
    ("more", "name", "shown"),
    [
        ({}, "b@x.org", "b@x.org"),
        ({"name": {"formatted": "Bob B", "givenName": "Bobby"}}, "Bob B", "Bob B"),
        ({"name": {"givenName": "Bob", "familyName": "By"}}, "Bob By", "Bob By"),
        ({"name": {"familyName": "By"}}, "By", "By"),
        ({"name": {"formatted": "Bob B"}, "displayName": "Bobby"}, "Bobby", "Bobby"),
    ],
)
async def test_a_name_is_filled_in(scim: Provisioning, more: Any, name: str, shown: str) -> None:
    user = (await scim.users.create({"userName": "b@x.org", **more})).entry.user
    assert user.name == name
    assert (await scim.shown_user(user.id))["displayName"] == shown


async def test_no_address_is_made_up(scim: Provisioning) -> None:
    user = (await scim.users.create({"userName": "B@X.org"})).entry.user
    assert user.email == "b@x.org"
    assert "emails" not in await scim.shown_user(user.id)
    written = await scim.users.replace(user.id, {"userName": "C@X.org"})
    assert written.entry.user.email == "c@x.org"
    assert "emails" not in await scim.shown_user(user.id)


@pytest.mark.parametrize(
    ("emails", "email", "marks"),
    [
        ([{"value": "one@x.org"}, {"value": "two@x.org"}], "one@x.org", [True, False]),
        ([{"value": "one@x.org"}, {"value": "two@x.org", "primary": True}], "two@x.org", [False, True]),
        ([{"value": "one@x.org", "primary": False}, {"value": "two@x.org"}], "two@x.org", [False, True]),
        ([{"value": "one@x.org", "primary": False}], "one@x.org", [False]),
        ([], "ann@example.org", []),
    ],
)
async def test_the_address_of_the_account(
    scim: Provisioning, emails: Any, email: str, marks: list[bool]
) -> None:
    user_id = await scim.add_user(emails=emails)
    assert (await scim.account(user_id)).email == email
    shown = (await scim.shown_user(user_id)).get("emails", [])
    assert [each["primary"] for each in shown] == marks
    await scim.patch_user(user_id, replacing("displayName", "Other"))
    assert (await scim.shown_user(user_id)).get("emails", []) == shown


async def test_the_address_of_the_account_is_the_first_once_none_is_primary(scim: Provisioning) -> None:
    user_id = (await scim.users.create(ADA)).entry.user.id
    assert (await scim.account(user_id)).email == "mail@example.org"
    shown = await scim.patch_user(user_id, replacing("emails[primary eq true].primary", "False"))
    assert [each["primary"] for each in shown["emails"]] == [False, False]
    assert (await scim.account(user_id)).email == "x@home.org"


@pytest.mark.parametrize(
    ("active", "is_active"), [(None, True), (True, True), (False, False), ("False", False)]
)
async def test_a_new_user_is_active_unless_said_otherwise(
    scim: Provisioning, active: Any, is_active: bool
) -> None:
    user = await scim.account(await scim.add_user(active=active))
    assert (user.active, user.role) == (is_active, Role.USER)


@pytest.mark.parametrize("body", [{}, {"userName": "no address"}, {"userName": "a@x", "emails": 5}])
async def test_a_bad_user_is_not_created(scim: Provisioning, body: Any) -> None:
    error = await refusal(scim.users.create(body))
    assert (error.kind, error.code) == (ErrorKind.INVALID_REQUEST, "invalidValue")
    assert not scim.accounts.memory.tables.users


@pytest.mark.parametrize(
    "second",
    [
        {"userName": "ADA@example.ORG"},
        {"userName": "b@x.org", "emails": [{"value": "mail@EXAMPLE.org"}]},
        {"userName": "b@x.org", "externalId": "7"},
    ],
)
async def test_what_is_taken_is_a_conflict_also_of_the_deactivated(scim: Provisioning, second: Any) -> None:
    user_id = (await scim.users.create(ADA)).entry.user.id
    await scim.users.deactivate(user_id)
    error = await refusal(scim.users.create(second))
    assert (error.kind, error.code) == (ErrorKind.CONFLICT, "taken")
    assert list(scim.accounts.memory.tables.users) == [user_id]


async def test_sixteen_racing_creates_make_one_user(scim: Provisioning) -> None:
    attempts = [scim.users.create({**ADA, "userName": f"u{number}@x.org"}) for number in range(16)]
    found = await asyncio.gather(*attempts, return_exceptions=True)
    assert sum(not isinstance(each, BaseException) for each in found) == 1
    assert len(scim.accounts.memory.tables.users) == 1


ODD_IDS = ["nobody", "", "\0", "a\nb", "\ud800", "x" * 100_000, "' OR 1=1 --"]


@pytest.mark.parametrize("user_id", ODD_IDS)
async def test_nobody_has_an_odd_id(scim: Provisioning, user_id: str) -> None:
    for attempt in (
        scim.users.get(user_id, with_groups=True),
        scim.users.replace(user_id, ADA),
        scim.users.patch(user_id, {"Operations": [replacing("active", False)]}),
        scim.users.deactivate(user_id),
    ):
        assert (await refusal(attempt)).kind is ErrorKind.NOT_FOUND


async def test_a_user_with_its_groups(scim: Provisioning) -> None:
    ann = await scim.add_user()
    group = await scim.add_group("Staff", ann)
    entry = await scim.users.get(ann, with_groups=True)
    assert entry.groups is not None
    assert [(each.id, each.display) for each in entry.groups] == [(group, "Staff")]
    assert (await scim.users.get(ann, with_groups=False)).groups is None
    assert (await scim.users.get(await scim.add_user("bob"), with_groups=True)).groups == ()


async def test_replace_leaves_nothing_of_what_was_not_sent(scim: Provisioning) -> None:
    before = (await scim.users.create(ADA)).entry.user
    written = await scim.users.replace(before.id, {"userName": "new@x.org"})
    shown = await scim.shown_user(before.id)
    assert {name: shown.get(name) for name in ("userName", "displayName", "name", "emails")} == {
        "userName": "new@x.org",
        "displayName": "new@x.org",
        "name": None,
        "emails": None,
    }
    assert (shown["externalId"], shown["active"]) == ("7", True)
    after = written.entry.user
    assert (after.email, after.name, after.created_at) == ("new@x.org", "new@x.org", before.created_at)
    assert written.before is not None
    assert (written.before["userName"], written.after["userName"]) == ("Ada@Example.org", "new@x.org")


@pytest.mark.parametrize(
    ("sent", "kept"),
    [({}, "7"), ({"externalId": "8"}, "8"), ({"externalId": None}, None), ({"externalId": ""}, None)],
)
async def test_replace_of_an_external_id(scim: Provisioning, sent: Any, kept: str | None) -> None:
    user_id = await scim.add_user(externalId="7")
    await scim.accounts.users.change(
        user_id, UserChange(scim={"okta": {"external_id": "7"}, "entra": {"external_id": "9"}}), None
    )
    await scim.users.replace(user_id, {"userName": "ann@example.org", **sent})
    assert (await scim.shown_user(user_id)).get("externalId") == kept
    assert ((await scim.account(user_id)).scim or {})["entra"] == {"external_id": "9"}


async def test_a_write_that_changes_nothing_writes_nothing(scim: Provisioning) -> None:
    user_id = (await scim.users.create(ADA)).entry.user.id
    before = await scim.account(user_id)
    shown = await scim.shown_user(user_id)
    scim.accounts.heard.clear()
    scim.accounts.time += 100
    for attempt in (
        lambda: scim.users.replace(user_id, ADA),
        lambda: scim.users.replace(user_id, shown),
        lambda: scim.users.patch(user_id, {"Operations": []}),
        lambda: scim.users.patch(user_id, {"Operations": [replacing("displayName", "Ada L")]}),
        lambda: scim.users.patch(user_id, {"Operations": [replacing("externalId", "7")]}),
        lambda: scim.users.patch(user_id, {"Operations": [{"op": "add", "value": shown}]}),
    ):
        written = await attempt()
        assert written.entry.user == before
        assert written.before == written.after
    assert scim.accounts.heard == []


async def test_every_write_moves_last_modified(scim: Provisioning) -> None:
    user_id = await scim.add_user()
    seen = [(await scim.account(user_id)).modified_us]
    for operation in (
        replacing("displayName", "B"),
        replacing("active", False),
        replacing("externalId", "1"),
    ):
        await scim.patch_user(user_id, operation)
        seen.append((await scim.account(user_id)).modified_us)
    assert seen == sorted(set(seen))


async def test_patch_says_exactly_what_is_left(scim: Provisioning) -> None:
    user_id = (await scim.users.create(ADA)).entry.user.id
    shown = await scim.patch_user(
        user_id, removing("displayName"), removing("name"), removing("emails"), removing("externalId")
    )
    assert shown.keys() == {"schemas", "id", "userName", "active", "groups", "meta"}
    user = await scim.account(user_id)
    assert (user.email, user.name, user.scim) == ("ada@example.org", "Ada@Example.org", None)
    assert await scim.shown_user(user_id) == shown


async def test_an_address_given_by_hand_stays_until_the_provider_says_another(scim: Provisioning) -> None:
    user_id = (await scim.users.create({"userName": "p@example.org", "displayName": "P"})).entry.user.id
    await scim.accounts.users.change(user_id, UserChange(email="hand@example.org"), None)
    shown = await scim.patch_user(user_id, replacing("name.givenName", "Zed"))
    assert shown["emails"] == [{"value": "hand@example.org", "type": "work", "primary": True}]
    assert (await scim.account(user_id)).email == "hand@example.org"
    await scim.users.replace(user_id, {"userName": "p@example.org", "displayName": "Q"})
    assert (await scim.account(user_id)).email == "p@example.org"
    assert "emails" not in await scim.shown_user(user_id)


OLD, NEW = {"value": "old@x.org", "primary": True}, {"value": "new@x.org", "type": "home"}


@pytest.mark.parametrize(
    ("operations", "email"),
    [
        ([removing("emails")], "ann@example.org"),
        ([replacing("emails", [])], "ann@example.org"),
        ([replacing("emails", [NEW])], "new@x.org"),
        ([removing('emails[type eq "work"]')], "new@x.org"),
        ([removing("emails", value=[{"value": "OLD@x.org"}])], "new@x.org"),
        ([replacing('emails[type eq "work"].value', "third@x.org")], "third@x.org"),
        ([replacing('emails[type eq "home"].primary', "True")], "new@x.org"),
        ([removing("emails"), replacing("userName", "ann2@example.org")], "ann2@example.org"),
    ],
)
async def test_an_address_that_is_taken_away_is_free(scim: Provisioning, operations: Any, email: str) -> None:
    user_id = await scim.add_user(emails=[OLD, NEW])
    user = await scim.account(user_id)
    shown = await scim.patch_user(user_id, *operations)
    changed = await scim.account(user_id)
    assert (changed.email, changed.token_version) == (email, user.token_version), "sessions go on"
    assert await scim.accounts.users_store.find_by_email("old@x.org") is None
    assert email in [shown["userName"], *(each["value"] for each in shown.get("emails", []))]
    assert await scim.add_user("bob", emails=[{"value": "old@x.org"}])


async def test_a_replacement_without_addresses_frees_them(scim: Provisioning) -> None:
    ann, bob = await scim.add_user(emails=[OLD]), await scim.add_user("bob", emails=[NEW])
    refused = await refusal(scim.users.replace(ann, {"userName": "ann@example.org", "emails": [NEW]}))
    assert (refused.kind, refused.code) == (ErrorKind.CONFLICT, "taken")
    await scim.users.replace(ann, {"userName": "ann@example.org"})
    await scim.users.replace(bob, {"userName": "bob@example.org", "emails": [OLD]})
    await scim.users.replace(ann, {"userName": "ann@example.org", "emails": [NEW]})
    assert [(await scim.account(each)).email for each in (ann, bob)] == ["new@x.org", "old@x.org"]


BAD_ADDRESSES = [
    "a@corp..example.com",
    "a\u200bb@example.com",
    "a@-x.example.com",
    "a@x\u202e.com",
]


@pytest.mark.parametrize("address", BAD_ADDRESSES)
async def test_no_way_leads_to_an_address_that_cannot_be(scim: Provisioning, address: str) -> None:
    ann = await scim.add_user(emails=[OLD])
    before = await scim.shown_user(ann)
    emails, person = [{"value": address}], {"userName": "ann@example.org"}
    for attempt, name in (
        (scim.users.create({"userName": address}), "userName"),
        (scim.users.create({"userName": "bob@example.org", "emails": emails}), "emails[0].value"),
        (scim.users.replace(ann, {"userName": address}), "userName"),
        (scim.users.replace(ann, {**person, "emails": [OLD, *emails]}), "emails[1].value"),
        (scim.patch_user(ann, replacing("userName", address)), "userName"),
        (scim.patch_user(ann, {"op": "replace", "value": {"userName": address}}), "userName"),
        (scim.patch_user(ann, adding("emails", emails)), "emails[0].value"),
        (scim.patch_user(ann, replacing("emails.value", address)), "emails.value"),
        (scim.patch_user(ann, replacing('emails[type eq "work"].value', address)), "emails.value"),
        (scim.patch_user(ann, adding('emails[type eq "new"].value', address)), "emails.value"),
        (scim.patch_user(ann, replacing('emails[type eq "work"]', emails)), "emails.value"),
    ):
        error = await refusal(attempt)
        assert (error.kind, error.code, error.param) == (ErrorKind.INVALID_REQUEST, "invalidValue", name)
    assert await scim.shown_user(ann) == before


async def test_an_account_keeps_the_address_of_an_earlier_release(scim: Provisioning) -> None:
    user_id, bad = await scim.add_user(), "a@corp..example.com"
    identity = ProviderIdentity(bad, "A", emails=(Email(bad, primary=True),))
    account = replace(await scim.account(user_id), email=bad, identity=identity)
    assert await scim.accounts.users_store.change(account)
    shown = await scim.patch_user(user_id, replacing("active", False))
    assert (shown["active"], shown["userName"]) == (False, bad)
    assert (await scim.users.replace(user_id, {**shown, "active": True})).entry.user.active
    shown = await scim.patch_user(user_id, replacing("displayName", "B"))
    assert (shown["displayName"], (await scim.account(user_id)).email) == ("B", bad)
    sent = {"userName": bad, "emails": [{"value": bad}], 'emails[type eq "work"].value': bad, "active": False}
    assert not (await scim.patch_user(user_id, {"op": "replace", "value": sent}))["active"]
    error = await refusal(scim.patch_user(user_id, adding("emails", "b@corp..example.com")))
    assert error.code == "invalidValue"
    await scim.patch_user(user_id, replacing("userName", "a@example.org"), removing("emails"))
    assert (await scim.account(user_id)).email == "a@example.org"


async def test_an_address_that_an_account_kept_hidden_goes_with_the_next_replacement(
    scim: Provisioning,
) -> None:
    user_id = await scim.add_user()
    users = scim.accounts.users_store
    assert await users.change(replace(await scim.account(user_id), email="hidden@x.org"))
    await scim.patch_user(user_id, replacing("active", False))
    assert (await scim.account(user_id)).email == "hidden@x.org"
    await scim.users.replace(user_id, {"userName": "ann@example.org", "displayName": "ann@example.org"})
    assert (await scim.account(user_id)).email == "ann@example.org"


async def test_a_display_name_that_is_put_together_is_not_too_long(scim: Provisioning) -> None:
    name = {"givenName": "G" * 200, "familyName": "F" * 200}
    user = (await scim.users.create({"userName": "p@example.org", "name": name})).entry.user
    assert user.name == "G" * 200 + " " + "F" * 54
    assert (user.identity.given_name, user.identity.family_name) == ("G" * 200, "F" * 200)


async def test_an_external_id_is_kept_as_it_was_sent(scim: Provisioning) -> None:
    body = {"userName": "p@example.org", "externalId": "  lead trail  "}
    written = await scim.users.create(body)
    assert written.after["externalId"] == body["externalId"]
    found = await scim.users.search(SearchParameters('externalId eq "  lead trail  "'), with_groups=False)
    assert found.total == 1


async def test_patch_of_single_attributes(scim: Provisioning) -> None:
    user_id = (await scim.users.create(ADA)).entry.user.id
    shown = await scim.patch_user(
        user_id,
        {"op": "Replace", "path": 'emails[type eq "work"].value', "value": "new@x.org"},
        {"op": "Add", "value": {"name.givenName": "Augusta", f"{URN}:displayName": "A"}},
        replacing("userName", "new@x.org"),
    )
    assert shown["name"] == {"givenName": "Augusta", "familyName": "Lovelace"}
    assert (shown["displayName"], shown["userName"], shown["externalId"]) == ("A", "new@x.org", "7")
    user = await scim.account(user_id)
    assert (user.email, user.name) == ("new@x.org", "A")


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        (replacing("nothing", 1), "invalidPath"),
        (replacing("id", "x"), "mutability"),
        (removing("userName"), "invalidValue"),
        (replacing("active", "perhaps"), "invalidValue"),
        (replacing("userName", "no address"), "invalidValue"),
    ],
)
async def test_a_patch_is_all_or_nothing(scim: Provisioning, operation: Any, code: str) -> None:
    user_id = (await scim.users.create(ADA)).entry.user.id
    before = await scim.account(user_id)
    operations = [replacing("displayName", "Changed"), replacing("externalId", "8"), operation]
    error = await refusal(scim.users.patch(user_id, {"Operations": operations}))
    assert (error.kind, error.code) == (ErrorKind.INVALID_REQUEST, code)
    assert await scim.account(user_id) == before


async def test_patches_at_the_same_time_lose_nothing(scim: Provisioning) -> None:
    user_id = await scim.add_user()
    paths = ("displayName", "name.givenName", "name.familyName", "name.formatted", "externalId")
    await asyncio.gather(*(scim.patch_user(user_id, replacing(path, path)) for path in paths))
    shown = await scim.shown_user(user_id)
    assert (shown["displayName"], shown["externalId"]) == ("displayName", "externalId")
    assert shown["name"] == {
        "givenName": "name.givenName",
        "familyName": "name.familyName",
        "formatted": "name.formatted",
    }


async def test_a_conflict_changes_nothing(scim: Provisioning) -> None:
    await scim.users.create(ADA)
    bob = await scim.add_user("bob")
    before = await scim.account(bob)
    for operation in (
        replacing("userName", "ADA@EXAMPLE.ORG"),
        replacing("emails", [{"value": "mail@example.org"}]),
        adding("externalId", "7"),
    ):
        attempt = scim.users.patch(bob, {"Operations": [replacing("displayName", "B"), operation]})
        error = await refusal(attempt)
        assert (error.kind, error.code) == (ErrorKind.CONFLICT, "taken")
        assert await scim.account(bob) == before


Writer = Callable[[Provisioning, str], Awaitable[Any]]


def put_active(active: bool) -> Writer:
    async def write(scim: Provisioning, user_id: str) -> None:
        shown = await scim.shown_user(user_id)
        await scim.users.replace(user_id, {**shown, "active": active})

    return write


def patch_active(active: Any) -> Writer:
    async def write(scim: Provisioning, user_id: str) -> None:
        await scim.patch_user(user_id, replacing("active", active))

    return write


async def delete(scim: Provisioning, user_id: str) -> None:
    await scim.users.deactivate(user_id)


@pytest.mark.parametrize("write", [put_active(False), patch_active("False"), delete])
@pytest.mark.parametrize("role", [Role.USER, Role.PENDING, Role.ADMIN])
async def test_deactivation_never_changes_a_role(scim: Provisioning, role: Role, write: Writer) -> None:
    await scim.accounts.add_user("boss", Role.ADMIN)
    ann = await scim.accounts.add_user("ann", role)
    scim.accounts.heard.clear()
    await write(scim, ann.id)
    user = await scim.account(ann.id)
    assert (user.active, user.role, user.identity) == (False, role, ProviderIdentity())
    assert user.token_version == ann.token_version + 1
    # Who was pending was not in.
    assert scim.accounts.heard == [
        AccountChange(ann.id, is_out=role is not Role.PENDING, asks_again=True, is_signed_out=True)
    ]
    await write(scim, ann.id)
    assert await scim.account(ann.id) == user


@pytest.mark.parametrize("write", [put_active(True), patch_active("True")])
@pytest.mark.parametrize(
    ("role", "becomes"), [(Role.USER, Role.USER), (Role.PENDING, Role.USER), (Role.ADMIN, Role.ADMIN)]
)
@pytest.mark.parametrize("active", [True, False])
async def test_activation_makes_a_pending_account_a_user(
    scim: Provisioning, role: Role, becomes: Role, active: bool, write: Writer
) -> None:
    ann = await scim.accounts.add_user("ann", role, active=active)
    await write(scim, ann.id)
    user = await scim.account(ann.id)
    assert (user.active, user.role, user.is_verified) == (True, becomes, True)


async def test_a_pending_account_stays_active_when_something_else_changes(scim: Provisioning) -> None:
    ann = await scim.accounts.add_user("ann", Role.PENDING)
    shown = await scim.patch_user(ann.id, replacing("displayName", "Ann"), replacing("externalId", "1"))
    assert shown["active"] is False
    user = await scim.account(ann.id)
    assert (user.active, user.role) == (True, Role.PENDING)


@pytest.mark.parametrize("write", [put_active(False), patch_active(False), delete])
async def test_the_last_administrator_stays(scim: Provisioning, write: Writer) -> None:
    boss = await scim.accounts.add_user("boss", Role.ADMIN)
    await scim.accounts.add_user("old", Role.ADMIN, active=False)
    error = await refusal(write(scim, boss.id))
    assert (error.kind, error.code) == (ErrorKind.CONFLICT, "last_administrator")
    assert await scim.account(boss.id) == boss


async def test_a_deactivated_user_stays_visible(scim: Provisioning) -> None:
    user_id = await scim.add_user()
    written = await scim.users.deactivate(user_id)
    assert written.before is not None
    assert (written.before["active"], written.after["active"]) == (True, False)
    assert (await scim.shown_user(user_id))["active"] is False
    assert await scim.found('userName eq "ann@example.org"') == ["ann@example.org"]


async def test_a_hand_made_account_is_linked_without_being_rewritten(scim: Provisioning) -> None:
    ann = await scim.accounts.add_user("ann")
    await scim.patch_user(ann.id, adding("externalId", "7"))
    user = await scim.account(ann.id)
    assert (user.scim, user.identity) == ({"okta": {"external_id": "7"}}, ProviderIdentity())
    await scim.users.replace(ann.id, {**await scim.shown_user(ann.id), "externalId": "8"})
    assert (await scim.account(ann.id)).identity == ProviderIdentity()


async def test_a_hand_made_account_becomes_provisioned_by_a_change_of_its_identity(
    scim: Provisioning,
) -> None:
    ann = await scim.accounts.users.create(NewUser("ann@x.org", "Ann Other"))
    await scim.patch_user(ann.id, replacing("name.familyName", "Lee"))
    user = await scim.account(ann.id)
    assert user.identity == ProviderIdentity(
        "ann@x.org", "Ann Other", "Ann Other", "Ann", "Lee", (Email("ann@x.org", primary=True),)
    )
    assert (user.email, user.name, user.role) == (ann.email, ann.name, ann.role)


async def test_without_a_provider_external_ids_are_refused_before_anything_is_written() -> None:
    scim = Provisioning(provider="")
    ann = await scim.add_user()
    before = await scim.account(ann)
    for attempt in (
        scim.users.create({"userName": "b@x.org", "externalId": "7"}),
        scim.users.replace(ann, {"userName": "b@x.org", "externalId": "7"}),
        scim.patch_user(ann, replacing("displayName", "B"), replacing("externalId", "7")),
        scim.patch_user(ann, replacing("displayName", "B"), removing("externalId")),
        scim.patch_user(ann, {"op": "add", "value": {"displayName": "B", f"{URN}:EXTERNALID": "7"}}),
        scim.found('externalId eq "7"'),
        scim.found(sort_by="externalId"),
    ):
        error = await refusal(attempt)
        assert error.kind is ErrorKind.NOT_CONFIGURED
        assert error.message == "cannot store externalId: SCIM_AUTH_PROVIDER is not set"
    assert list(scim.accounts.memory.tables.users.values()) == [before]


async def test_without_a_provider_everything_else_works() -> None:
    scim = Provisioning(provider="")
    ann = await scim.accounts.add_user("ann", scim={"entra": {"external_id": "9"}})
    shown = await scim.patch_user(ann.id, replacing("displayName", "Ann"))
    assert "externalId" not in shown
    await scim.users.replace(ann.id, {"userName": "ann@x.org", "externalId": None})
    assert (await scim.account(ann.id)).scim == {"entra": {"external_id": "9"}}
    assert await scim.found('userName sw "ann"') == ["ann@x.org"]


async def test_a_search_pages_in_the_order_of_creation(scim: Provisioning) -> None:
    names = [f"{name}@example.org" for name in ("cat", "ann", "bob")]
    for name in names:
        await scim.add_user(name.split("@")[0])
    assert await scim.found() == names
    assert await scim.found(start_index=2, count=1) == names[1:2]
    assert await scim.found(sort_by="userName") == sorted(names)
    assert await scim.found(sort_by="username", descending=True) == sorted(names, reverse=True)
    assert await scim.found('userName co "n"', count=0) == []


async def test_what_a_search_tells(scim: Provisioning) -> None:
    ids = [await scim.add_user(name) for name in ("ann", "bob", "cat")]
    await scim.add_group("Staff", ids[2])
    found = await scim.users.search(SearchParameters(start_index=2, count=5), with_groups=True)
    assert (found.total, found.start_index, len(found.entries)) == (3, 2, 2)
    assert [len(entry.groups or ()) for entry in found.entries] == [0, 1]
    none = await scim.users.search(SearchParameters(count=0), with_groups=True)
    assert (none.total, none.start_index, none.entries) == (3, 1, [])
    assert scim.directory.asked.count("list_groups_of") == 1
    far = await scim.users.search(SearchParameters(start_index=10**30), with_groups=False)
    assert (far.total, far.entries) == (3, [])


async def test_an_external_id_falls_back_to_the_subject(scim: Provisioning) -> None:
    linked = await scim.accounts.add_user("linked", oauth={"okta": {"sub": "S1"}, "entra": {"sub": "S2"}})
    assert await scim.found('externalId eq "S1"') == ["linked@example.org"]
    assert await scim.found('externalId eq "S1" and active eq true') == ["linked@example.org"]
    assert await scim.found('externalId eq "s1"') == []
    assert await scim.found('externalId eq "S2"') == []
    assert await scim.found('not (externalId eq "S9")') == ["linked@example.org"]
    assert await scim.found('externalId sw "S1"') == []
    with pytest.raises(GatewayError, match="is the OAuth subject of an account"):
        await scim.add_user("second", externalId="S1")
    owner = await scim.add_user("owner", externalId="S7")
    await scim.patch_user(owner, replacing("externalId", "S1"))
    assert await scim.found('externalId eq "S1"') == ["owner@example.org"]
    await scim.patch_user(linked.id, replacing("externalId", "S3"))
    assert await scim.found('externalId eq "S3"') == ["linked@example.org"]


async def test_only_the_provider_is_searched(scim: Provisioning) -> None:
    await scim.accounts.add_user("ann", scim={"entra": {"external_id": "9"}})
    assert await scim.found('externalId eq "9"') == []
    assert await scim.found("externalId pr") == []


async def test_a_search_without_an_external_id_asks_once(scim: Provisioning) -> None:
    assert await scim.found('userName eq "nobody@x"') == []
    assert scim.directory.asked == ["list_users"]
    assert await scim.found('externalId eq "nobody"') == []
    assert scim.directory.asked == ["list_users"] * 3


async def test_a_patch_is_worked_out_before_its_transaction_and_anew_when_the_account_changed(
    scim: Provisioning, monkeypatch: pytest.MonkeyPatch
) -> None:
    user_id = await scim.add_user()
    stale = [await scim.account(user_id)]
    done: list[str] = []

    def patching(changed: Any, planned: Any) -> Any:
        after_commit(lambda: done.append("outside"))
        done.append("worked out")
        return original(changed, planned)

    async def get(user_id: str) -> User:
        return stale.pop() if stale else await current(user_id)

    original, current = module.patch_stepwise, scim.accounts.users.get
    monkeypatch.setattr(module, "patch_stepwise", patching)
    await scim.patch_user(user_id, replacing("name.givenName", "Ann"))
    assert done == ["outside", "worked out"]
    monkeypatch.setattr(scim.accounts.users, "get", get)
    shown = await scim.patch_user(user_id, replacing("name.familyName", "By"))
    assert shown["name"] == {"givenName": "Ann", "familyName": "By"}
    assert done[2:4] == ["outside", "worked out"]
    assert done[4:] == ["worked out", "outside"]
