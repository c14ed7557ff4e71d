import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from gatewayd.accounts.change_notifier import AccountChange
from gatewayd.accounts.records import GroupChange, MembershipSource, NewGroup
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.scim import groups as module
from gatewayd.scim.records import SearchParameters
from tests.fakes.accounts.provisioning import Provisioning, adding, removing, replacing

URN = "urn:ietf:params:scim:schemas:core:2.0:Group"


@pytest.fixture
def scim() -> Provisioning:
    return Provisioning()


async def refusal(attempt: Awaitable[Any]) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await attempt
    return caught.value


async def people(scim: Provisioning, *names: str) -> list[str]:
    return [await scim.add_user(name) for name in names]


async def patch(scim: Provisioning, group_id: str, *operations: Any) -> str:
    """Patch a group and return what was said about its members."""
    written = await scim.groups.patch(group_id, {"Operations": list(operations)})
    assert written.entry.members is None
    return written.changes


async def members(scim: Provisioning, group_id: str) -> list[str]:
    return [member["value"] for member in (await scim.shown_group(group_id))["members"]]


def values(*ids: str) -> list[dict[str, str]]:
    return [{"value": each} for each in ids]


async def test_a_created_group_is_a_group_of_the_gateway(scim: Provisioning) -> None:
    ann, bob = await people(scim, "ann", "bob")
    body = {"schemas": [URN], "displayName": "Staff", "externalId": "9", "members": values(bob, ann, bob)}
    written = await scim.groups.create(body)
    group = written.entry.group
    assert (group.name, group.user_id, group.permissions) == ("Staff", None, {})
    assert group.scim == {"okta": {"external_id": "9"}}
    assert (written.before, written.changes, written.entry.members) == (None, "members +2", None)
    assert written.after == {
        "schemas": [URN],
        "id": group.id,
        "externalId": "9",
        "displayName": "Staff",
    }
    assert await scim.sources(group.id) == {ann: [MembershipSource.SCIM], bob: [MembershipSource.SCIM]}
    assert [each["display"] for each in (await scim.shown_group(group.id))["members"]] == [
        "ann@example.org",
        "bob@example.org",
    ]


@pytest.mark.parametrize("more", [{}, {"members": []}, {"members": None}])
async def test_a_group_without_members(scim: Provisioning, more: Any) -> None:
    written = await scim.groups.create({"displayName": "Staff", **more})
    assert (written.entry.members, written.changes) == ((), "")
    assert await members(scim, written.entry.group.id) == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "invalidValue"),
        ({"displayName": " "}, "invalidValue"),
        ({"displayName": "S", "schemas": ["urn:other"]}, "invalidSyntax"),
        ({"displayName": "S", "members": [{"value": "a\nb"}]}, "invalidValue"),
        ({"displayName": "S", "members": [{"value": "u", "type": "Group"}]}, "invalidValue"),
    ],
)
async def test_a_bad_group_is_not_created(scim: Provisioning, body: Any, code: str) -> None:
    error = await refusal(scim.groups.create(body))
    assert (error.kind, error.code) == (ErrorKind.INVALID_REQUEST, code)
    assert not scim.accounts.memory.tables.groups


@pytest.mark.parametrize("second", [{"displayName": "STAFF"}, {"displayName": "Other", "externalId": "9"}])
async def test_what_is_taken_is_a_conflict(scim: Provisioning, second: Any) -> None:
    ann = await scim.add_user()
    group = await scim.add_group("Staff", externalId="9")
    other = await scim.add_group("Third")
    for attempt in (
        scim.groups.create({**second, "members": values(ann)}),
        scim.groups.replace(other, second),
        patch(scim, other, adding("members", values(ann)), {"op": "replace", "value": second}),
    ):
        error = await refusal(attempt)
        assert (error.kind, error.code) == (ErrorKind.CONFLICT, "taken")
    assert list(scim.accounts.memory.tables.groups) == [group, other]
    assert await members(scim, other) == []


async def test_members_whom_nobody_is_are_skipped_and_told(scim: Provisioning) -> None:
    ann, bob = await people(scim, "ann", "bob")
    sent = values("stale", ann, "x" * 200)
    made = await scim.groups.create({"displayName": "S", "members": sent})
    group = made.entry.group.id
    assert (made.changes, made.skipped) == ("members +1", ("stale", "x" * 200))
    assert await members(scim, group) == [ann]
    replaced = await scim.groups.replace(group, {"displayName": "S", "members": [*sent, *values(bob)]})
    assert (replaced.changes, replaced.skipped) == ("members +1", ("stale", "x" * 200))
    for operation in (
        replacing("members", [*values(bob), *sent]),
        adding("members", [*values(bob), *sent]),
        adding("members", values("stale", "x" * 200)),
        replacing('members[value eq "other"]', values("stale", "x" * 200)),
    ):
        written = await scim.groups.patch(group, {"Operations": [operation]})
        assert (written.changes, set(written.skipped)) == ("", {"stale", "x" * 200})
    assert await members(scim, group) == [ann, bob]


async def test_a_removed_account_does_not_keep_others_in_a_group(scim: Provisioning) -> None:
    """A push of the members that are left takes the others out, though none of these is an account."""
    ann, bob = await people(scim, "ann", "bob")
    group = await scim.add_group("Staff", ann, bob)
    await scim.accounts.users.remove(ann, None)
    written = await scim.groups.patch(group, {"Operations": [replacing("members", values(ann))]})
    assert (written.changes, written.skipped) == ("members -1", (ann,))
    assert await members(scim, group) == []
    made = await scim.groups.create({"displayName": "Crew", "members": values(ann)})
    assert (made.entry.members, made.changes, made.skipped) == ((), "", (ann,))
    assert (
        await scim.groups.patch(group, {"Operations": [removing("members", value=values(ann))]})
    ).skipped == ()


async def test_too_many_members_are_refused(scim: Provisioning, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_MEMBERS_AT_ONCE", 2)
    group = await scim.add_group("Staff", *await people(scim, "ann", "bob"))
    more = values(*await people(scim, "cat", "dan", "eve"))
    for attempt in (
        scim.groups.create({"displayName": "S", "members": more}),
        scim.groups.replace(group, {"displayName": "S", "members": more}),
        patch(scim, group, adding("members", more)),
        patch(scim, group, replacing("members", more)),
        patch(scim, group, removing("members", value=more)),
    ):
        error = await refusal(attempt)
        assert (error.kind, error.code) == (ErrorKind.TOO_LARGE, "tooMany")
    assert len(await members(scim, group)) == 2


@pytest.mark.parametrize("group_id", ["nothing", "", "\0", "a\nb", "\ud800", "x" * 100_000])
async def test_there_is_no_group_with_an_odd_id(scim: Provisioning, group_id: str) -> None:
    for attempt in (
        scim.groups.get(group_id, with_members=True),
        scim.groups.replace(group_id, {"displayName": "S"}),
        patch(scim, group_id, replacing("displayName", "S")),
        scim.groups.remove(group_id),
    ):
        assert (await refusal(attempt)).kind is ErrorKind.NOT_FOUND


@pytest.mark.parametrize(
    ("sent", "left"),
    [
        ({}, ["ann", "bob"]),
        ({"members": None}, ["ann", "bob"]),
        ({"members": []}, []),
        ({"members": ["bob", "cat"]}, ["bob", "cat"]),
    ],
)
async def test_replace_of_members(scim: Provisioning, sent: Any, left: list[str]) -> None:
    ids = dict(zip(("ann", "bob", "cat"), await people(scim, "ann", "bob", "cat"), strict=True))
    group = await scim.add_group("Staff", ids["ann"], ids["bob"], externalId="9")
    if sent.get("members"):
        sent = {"members": values(*(ids[name] for name in sent["members"]))}
    written = await scim.groups.replace(group, {"displayName": "Crew", **sent})
    assert await members(scim, group) == [ids[name] for name in left]
    shown = await scim.shown_group(group)
    assert (shown["displayName"], shown["externalId"]) == ("Crew", "9")
    assert written.before is not None
    assert (written.before["displayName"], written.after["displayName"]) == ("Staff", "Crew")
    assert written.entry.group == (await scim.groups.get(group, with_members=False)).group


async def test_an_external_id_comes_and_goes(scim: Provisioning) -> None:
    group = await scim.add_group()
    await scim.accounts.groups.change(group, GroupChange(scim={"entra": {"external_id": "1"}}))
    await patch(scim, group, adding("externalId", "9"))
    assert (await scim.shown_group(group))["externalId"] == "9"
    await scim.groups.replace(group, {"displayName": "Staff", "externalId": None})
    assert "externalId" not in await scim.shown_group(group)
    await patch(scim, group, adding("externalId", "8"))
    await patch(scim, group, removing("externalId"))
    assert (await scim.accounts.groups.get(group)).scim == {"entra": {"external_id": "1"}}


async def test_adding_is_said_with_its_count(scim: Provisioning) -> None:
    ann, bob, cat = await people(scim, "ann", "bob", "cat")
    group = await scim.add_group("Staff", ann)
    assert await patch(scim, group, adding("members", values(ann, bob, "unknown"))) == "members +1"
    assert await patch(scim, group, adding("members", values(ann, bob))) == ""
    assert await patch(scim, group, {"op": "Add", "value": {"members": values(cat)}}) == "members +1"
    assert await members(scim, group) == [ann, bob, cat]


@pytest.mark.parametrize(
    ("operation", "left", "said"),
    [
        (lambda ann, bob: removing("members", value=values(ann)), ["bob", "cat"], "members -1"),
        (lambda ann, bob: removing(f'members[value eq "{bob}"]'), ["ann", "cat"], "members -1"),
        (lambda ann, bob: removing('members[display sw "bob"]'), ["ann", "cat"], "members -1"),
        (lambda ann, bob: removing('members[type eq "User"]'), [], "members -3"),
        (lambda ann, bob: removing('members[display eq "nobody"]'), ["ann", "bob", "cat"], ""),
        (lambda ann, bob: removing(f'members[not (value eq "{ann}")]'), ["ann"], "members -2"),
        (lambda ann, bob: removing("members"), [], "members -3"),
        (lambda ann, bob: removing("members", value=[]), ["ann", "bob", "cat"], ""),
        (lambda ann, bob: removing("members", value=values("unknown")), ["ann", "bob", "cat"], ""),
        (lambda ann, bob: replacing("members", values(ann)), ["ann"], "members -2"),
        (lambda ann, bob: replacing("members", []), [], "members -3"),
    ],
)
async def test_members_go(scim: Provisioning, operation: Any, left: list[str], said: str) -> None:
    ids = dict(zip(("ann", "bob", "cat"), await people(scim, "ann", "bob", "cat"), strict=True))
    group = await scim.add_group("Staff", *ids.values())
    assert await patch(scim, group, operation(ids["ann"], ids["bob"])) == said
    assert await members(scim, group) == [ids[name] for name in left]


async def test_members_are_called_as_the_provider_says(scim: Provisioning) -> None:
    ann, bob = await people(scim, "ann", "bob")
    group = await scim.add_group(members=[{"value": ann, "display": "Dr. Ann"}, {"value": bob}])

    async def displays() -> list[str]:
        return [each["display"] for each in (await scim.shown_group(group))["members"]]

    assert await displays() == ["Dr. Ann", "bob@example.org"]
    named = [{"value": ann, "display": "Prof. Ann"}, {"value": bob, "display": None}]
    assert await patch(scim, group, adding("members", named)) == "members +1"
    assert await patch(scim, group, adding("members", named)) == ""
    assert await patch(scim, group, adding("members", values(ann, bob))) == ""
    assert await displays() == ["Prof. Ann", "bob@example.org"]
    again = [{"value": ann}, {"value": bob, "display": "Bob"}]
    assert await patch(scim, group, replacing("members", again)) == "members +1"
    assert await displays() == ["Prof. Ann", "Bob"]
    assert await patch(scim, group, removing('members[display eq "PROF. ANN"]')) == "members -1"
    await patch(scim, group, adding("members", values(ann)))
    assert await displays() == ["ann@example.org", "Bob"]
    body = {"displayName": "Staff", "members": [{"value": ann, "display": "A"}]}
    assert (await scim.groups.replace(group, body)).changes == "members +1 -1"
    assert await displays() == ["A"]


async def test_members_can_be_called_otherwise(scim: Provisioning) -> None:
    ann, bob = await people(scim, "ann", "bob")
    group = await scim.add_group("Staff", ann, bob)

    async def displays() -> list[str]:
        return [each["display"] for each in (await scim.shown_group(group))["members"]]

    named = f'members[value eq "{ann}"].display'
    assert await patch(scim, group, replacing(named, "Dr. Ann")) == "members +1"
    assert await patch(scim, group, replacing(named, "Dr. Ann")) == ""
    assert await displays() == ["Dr. Ann", "bob@example.org"]
    assert await patch(scim, group, adding("members.display", "Staff member")) == "members +2"
    assert await displays() == ["Staff member"] * 2
    assert await patch(scim, group, removing(named)) == "members +1 -1"
    assert await displays() == ["ann@example.org", "Staff member"]
    operations = [removing("members", value=values(ann)), replacing("members.display", "x")]
    await patch(scim, group, *operations, adding("members", values(ann)))
    assert await displays() == ["ann@example.org", "x"]
    error = await refusal(patch(scim, group, replacing('members[value eq "nobody"].display', "x")))
    assert (error.code, error.param) == ("noTarget", "members.display")
    assert await patch(scim, group, removing('members[value eq "nobody"].display')) == ""
    empty = await scim.add_group("Empty")
    assert await patch(scim, empty, replacing("members.display", "x")) == ""


async def test_a_thousand_operations_are_two_changes(scim: Provisioning) -> None:
    ann, bob = await people(scim, "ann", "bob")
    group = await scim.add_group("Staff", bob)
    scim.directory.asked.clear()
    turns = [adding("members", values(ann)), removing("members", value=values(bob))] * 500
    assert await patch(scim, group, *turns) == "members +1 -1"
    assert scim.directory.asked.count("list_known") == 1
    assert await members(scim, group) == [ann]


async def test_ids_that_are_taken_out_again_are_not_looked_for(scim: Provisioning) -> None:
    ann, bob = await people(scim, "ann", "bob")
    group = await scim.add_group("Staff", bob)
    unknown, away = adding("members", values("no")), removing("members", value=values(bob))
    assert await patch(scim, group, unknown, away, adding("members", values(ann))) == "members +1 -1"
    written = await scim.groups.patch(
        group, {"Operations": [unknown, removing("members", value=values("no"))]}
    )
    assert (written.changes, written.skipped) == ("", ())


async def test_many_are_removed_in_batches(scim: Provisioning, monkeypatch: pytest.MonkeyPatch) -> None:
    group = await scim.add_group("Staff", *await people(scim, "ann", "bob", "cat"))
    monkeypatch.setattr(module, "MAX_MEMBERS_AT_ONCE", 2)
    assert await patch(scim, group, removing('members[type eq "user"]')) == ""
    assert await patch(scim, group, removing('members[type eq "User"]')) == "members -3"


async def test_filters_on_many_members_are_bounded_before_members_are_read(
    scim: Provisioning, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = await scim.add_group("Staff", *await people(scim, "ann", "bob", "cat"))
    scim.directory.asked.clear()
    monkeypatch.setattr(module, "MAX_MEMBER_COMPARISONS", 6)
    assert await patch(scim, group, removing('members[display eq "nobody"]')) == ""
    for operations in (
        [removing('members[display eq "a" or display eq "b"]')],
        [replacing("members.display", "x"), removing('members[display eq "a"]')],
    ):
        error = await refusal(patch(scim, group, *operations))
        assert (error.kind, error.code) == (ErrorKind.TOO_LARGE, "tooMany")
    assert scim.directory.asked.count("list_members_of") == 2


async def test_members_are_read_again_only_when_they_changed(scim: Provisioning) -> None:
    group = await scim.add_group("Staff", *await people(scim, "ann", "bob", "cat"))
    scim.directory.asked.clear()
    nobody = removing('members[display eq "nobody"]')
    ann = removing('members[display sw "ann"]')
    assert await patch(scim, group, *[nobody] * 5, ann, nobody, ann) == "members -1"
    assert scim.directory.asked.count("list_members_of") == 2


async def test_both_ways_at_once(scim: Provisioning) -> None:
    ann, bob, cat = await people(scim, "ann", "bob", "cat")
    group = await scim.add_group("Staff", ann, bob)
    said = await patch(
        scim,
        group,
        removing("members", value=values(ann, bob)),
        adding("members", values(cat)),
        replacing("displayName", "Crew"),
    )
    assert said == "members +1 -2"
    assert (await members(scim, group), await scim.found_groups()) == ([cat], ["Crew"])


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        (replacing("nothing", 1), "invalidPath"),
        (replacing("id", "x"), "mutability"),
        (removing("displayName"), "invalidValue"),
        (replacing("members", [{"value": 5}]), "invalidValue"),
        (removing('members[nothing eq "1"]'), "invalidFilter"),
    ],
)
async def test_a_patch_is_all_or_nothing(scim: Provisioning, operation: Any, code: str) -> None:
    ann, bob = await people(scim, "ann", "bob")
    group = await scim.add_group("Staff", ann)
    before = (await scim.shown_group(group)).copy()
    scim.accounts.heard.clear()
    operations = [replacing("displayName", "Crew"), adding("members", values(bob)), operation]
    error = await refusal(patch(scim, group, *operations, adding("members", values(ann))))
    assert (error.kind, error.code) == (ErrorKind.INVALID_REQUEST, code)
    assert await scim.shown_group(group) == before
    assert scim.accounts.heard == []


async def test_an_add_loads_no_other_member(scim: Provisioning) -> None:
    ann, bob = await people(scim, "ann", "bob")
    group = await scim.add_group("Staff", ann)
    scim.directory.asked.clear()
    await patch(scim, group, adding("members", values(bob)))
    await patch(scim, group, removing(f'members[value eq "{bob}"]'))
    assert "list_members_of" not in scim.directory.asked


async def test_hand_made_members_are_neither_seen_nor_touched(scim: Provisioning) -> None:
    ann, bob = await people(scim, "ann", "bob")
    group = await scim.add_group("Staff", ann)
    await scim.accounts.groups.add_members(group, [ann, bob])
    assert await members(scim, group) == [ann]
    assert await scim.found_groups(f'members eq "{bob}"') == []
    assert await patch(scim, group, removing("members")) == "members -1"
    assert await patch(scim, group, removing(f'members[value eq "{bob}"]')) == ""
    assert await scim.sources(group) == {ann: [MembershipSource.MANUAL], bob: [MembershipSource.MANUAL]}
    assert await patch(scim, group, adding("members", values(bob))) == "members +1"
    assert (await scim.sources(group))[bob] == [MembershipSource.MANUAL, MembershipSource.SCIM]


async def test_a_write_that_changes_nothing_writes_nothing(scim: Provisioning) -> None:
    ann = await scim.add_user()
    group = await scim.add_group("Staff", ann, externalId="9")
    before = await scim.shown_group(group)
    scim.accounts.time += 100
    for attempt in (
        lambda: scim.groups.replace(group, before),
        lambda: patch(scim, group),
        lambda: patch(scim, group, adding("members", values(ann)), replacing("displayName", "Staff")),
        lambda: patch(scim, group, replacing("members", values(ann))),
        lambda: patch(scim, group, removing("members", value=[])),
    ):
        await attempt()
        assert await scim.shown_group(group) == before


async def test_every_write_moves_last_modified(scim: Provisioning) -> None:
    ann = await scim.add_user()
    group = await scim.add_group()
    seen = [(await scim.groups.get(group, with_members=False)).group.modified_us]
    for operation in (
        replacing("displayName", "Crew"),
        adding("members", values(ann)),
        removing("members"),
        replacing("externalId", "9"),
    ):
        written = await scim.groups.patch(group, {"Operations": [operation]})
        seen.append(written.entry.group.modified_us)
    assert seen == sorted(set(seen))


async def test_patches_at_the_same_time_lose_nothing(scim: Provisioning) -> None:
    ids = await people(scim, *(f"u{number}" for number in range(8)))
    group = await scim.add_group()
    attempts = [patch(scim, group, adding("members", values(each))) for each in ids]
    await asyncio.gather(
        *attempts,
        patch(scim, group, replacing("displayName", "Crew")),
        patch(scim, group, replacing("externalId", "9")),
    )
    shown = await scim.shown_group(group)
    assert (shown["displayName"], shown["externalId"]) == ("Crew", "9")
    assert [member["value"] for member in shown["members"]] == sorted(ids)


async def test_rights_follow_the_members(scim: Provisioning) -> None:
    ann = await scim.add_user()
    group = await scim.add_group()
    scim.accounts.heard.clear()
    await patch(scim, group, adding("members", values(ann)))
    assert scim.accounts.heard == [AccountChange(ann)]
    await patch(scim, group, removing("members"))
    assert AccountChange(None) in scim.accounts.heard


async def test_a_removed_group_is_gone_and_its_members_are_not(scim: Provisioning) -> None:
    ann = await scim.add_user()
    group = await scim.add_group("Staff", ann)
    written = await scim.groups.remove(group)
    assert (written.entry.group.name, written.after) == ("Staff", {})
    assert written.before is not None
    assert written.before["displayName"] == "Staff"
    assert (await refusal(scim.groups.remove(group))).kind is ErrorKind.NOT_FOUND
    assert (await scim.shown_user(ann))["groups"] == []


async def test_without_a_provider_external_ids_are_refused_before_anything_is_written() -> None:
    scim = Provisioning(provider="")
    group = await scim.add_group()
    for attempt in (
        scim.groups.create({"displayName": "Crew", "externalId": "7"}),
        scim.groups.replace(group, {"displayName": "Crew", "externalId": "7"}),
        patch(scim, group, replacing("displayName", "Crew"), replacing("externalId", "7")),
        patch(scim, group, {"op": "add", "value": {"displayName": "Crew", "externalid": "7"}}),
        scim.found_groups('externalId eq "7"'),
        scim.found_groups(sort_by="externalId"),
    ):
        assert (await refusal(attempt)).kind is ErrorKind.NOT_CONFIGURED
    assert await scim.found_groups() == ["Staff"]
    await scim.groups.replace(group, {"displayName": "Crew", "externalId": None})
    assert await scim.found_groups() == ["Crew"]


async def test_searches(scim: Provisioning) -> None:
    ann = await scim.add_user()
    for name in ("c", "a", "b"):
        await scim.add_group(name, ann, externalId=name)
    await scim.accounts.groups.create(NewGroup("hand-made"))
    assert await scim.found_groups() == ["c", "a", "b", "hand-made"]
    assert await scim.found_groups(sort_by="displayName", count=2) == ["a", "b"]
    assert await scim.found_groups('DISPLAYNAME eq "A"') == ["a"]
    assert await scim.found_groups(f'members.value eq "{ann}" and externalId eq "b"') == ["b"]
    assert await scim.found_groups('externalId eq "nobody"') == []


async def test_members_are_loaded_once_and_only_when_wanted(scim: Provisioning) -> None:
    ann = await scim.add_user()
    for name in ("c", "a", "b"):
        await scim.add_group(name, *([ann] if name == "a" else []))
    scim.directory.asked.clear()
    found = await scim.groups.search(SearchParameters(start_index=2), with_members=True)
    assert [len(entry.members or ()) for entry in found.entries] == [1, 0]
    assert (found.total, found.start_index) == (3, 2)
    bare = await scim.groups.search(SearchParameters(), with_members=False)
    assert {entry.members for entry in bare.entries} == {None}
    assert scim.directory.asked == ["list_groups", "list_members_of", "list_groups"]


@pytest.mark.parametrize(
    ("most", "pages"),
    [(6, [[3, 0, 2, 1]]), (5, [[3, 0, 2], [1]]), (4, [[3, 0], [2, 1]]), (2, [[3], [0, 2], [1]])],
)
async def test_a_page_ends_before_it_has_too_many_members(
    scim: Provisioning, monkeypatch: pytest.MonkeyPatch, most: int, pages: list[list[int]]
) -> None:
    monkeypatch.setattr(module, "MAX_LISTED_MEMBERS", most)
    ids = await people(scim, "ann", "bob", "cat")
    for size in (3, 0, 2, 1):
        await scim.add_group(f"of {size}", *ids[:size])
    loaded: list[int] = []
    list_members_of = scim.directory.list_members_of

    async def load(group_ids: Any) -> Any:
        loaded.append(len(group_ids))
        return await list_members_of(group_ids)

    monkeypatch.setattr(scim.directory, "list_members_of", load)
    met: list[list[int]] = []
    while sum(map(len, met)) < 4:
        start = 1 + sum(map(len, met))
        found = await scim.groups.search(SearchParameters(start_index=start), with_members=True)
        assert (found.total, found.start_index) == (4, start)
        met.append([len(entry.members or ()) for entry in found.entries])
    assert met == pages
    assert loaded == [len(page) for page in pages], "the members of other groups are not loaded"
    everything = await scim.groups.search(SearchParameters(), with_members=False)
    assert len(everything.entries) == 4
