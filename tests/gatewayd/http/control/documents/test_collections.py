"""`/v1/collections`."""

import asyncio
import logging

import pytest

from gatewayctl.wire import routes
from gatewayctl.wire.collections import CollectionChange, NewCollection
from gatewayctl.wire.files import Gift
from gatewayd.accounts.records import NewGroup
from gatewayd.ingest.records import ScopeKind, SearchScope
from tests.fakes.daemons.control_documents import boss, processed, refused
from tests.fakes.daemons.control_socket import Control


async def test_a_collection_is_made_for_somebody(control: Control, caplog: pytest.LogCaptureFixture) -> None:
    client = control.client
    owner, ann = await boss(control), await control.accounts.add_user("ann")
    await control.accounts.groups.create(NewGroup("Staff"))
    wanted = NewCollection(
        name="docs", description="All of it", user=ann.email, readers=["*", "group:Staff"], writers=[owner.id]
    )
    with caplog.at_level(logging.INFO, "gatewayd.audit"):
        made = await control.call(client.call, routes.CREATE_COLLECTION, body=wanted)
    assert (made.outcome, made.name, made.description, made.files) == ("created", "docs", "All of it", 0)
    assert (made.user_id, made.user) == (ann.id, ann.email)
    assert (made.readers, made.writers) == (["*", "group:Staff"], [owner.email])
    assert [(line.getMessage(), vars(line)["target"]) for line in caplog.records] == [
        ("collection create", "docs")
    ]
    for ref in (made.id, "docs"):
        shown = await control.call(client.call, routes.GET_COLLECTION, ref)
        assert shown.model_dump().items() <= made.model_dump().items()


async def test_the_first_administrator_owns_what_nobody_is_named_for(control: Control) -> None:
    wanted = NewCollection(name="docs")
    failure = await refused(control, control.client.call, routes.CREATE_COLLECTION, body=wanted)
    assert (failure.kind, failure.param) == ("not_configured", "user")
    owner = await boss(control)
    assert (
        await control.call(control.client.call, routes.CREATE_COLLECTION, body=wanted)
    ).user == owner.email


@pytest.mark.parametrize(
    "fields",
    [{"user": "zoe@example.org"}, {"readers": ["zoe@example.org"]}, {"writers": ["group:none"]}],
)
async def test_nobody_unknown_is_named(control: Control, fields: dict[str, object]) -> None:
    await boss(control)
    wanted = NewCollection(name="docs", **fields)
    assert (
        await refused(control, control.client.call, routes.CREATE_COLLECTION, body=wanted)
    ).kind == "not_found"
    assert (await control.call(control.client.call, routes.LIST_COLLECTIONS)).total == 0


async def test_ensuring_makes_one_collection_however_often(control: Control) -> None:
    await boss(control)
    client = control.client
    wanted = NewCollection(name="docs", readers=["*"])
    made = await asyncio.gather(
        *[control.call(client.call, routes.ENSURE_COLLECTION, body=wanted) for _ in range(5)]
    )
    assert sorted(each.outcome for each in made) == ["created", *["unchanged"] * 4]
    assert len({each.id for each in made}) == 1
    other = NewCollection(name="docs", description="other")
    assert (await control.call(client.call, routes.ENSURE_COLLECTION, body=other)).description == ""
    assert (await control.call(client.call, routes.LIST_COLLECTIONS)).total == 1


async def test_of_several_with_one_name_the_id_is_wanted(control: Control) -> None:
    await boss(control)
    client = control.client
    made = [
        await control.call(client.call, routes.CREATE_COLLECTION, body=NewCollection(name="docs"))
        for _ in range(2)
    ]
    for failure in (
        await refused(control, client.call, routes.GET_COLLECTION, "docs"),
        await refused(control, client.call, routes.ENSURE_COLLECTION, body=NewCollection(name="docs")),
    ):
        assert failure.kind == "conflict"
        assert all(each.id in failure.message for each in made)
    assert (await control.call(client.call, routes.GET_COLLECTION, made[0].id)).id == made[0].id


async def test_dry_runs_keep_nothing(control: Control, caplog: pytest.LogCaptureFixture) -> None:
    await boss(control)
    client = control.client
    with caplog.at_level(logging.INFO, "gatewayd.audit"):
        for endpoint in (routes.CREATE_COLLECTION, routes.ENSURE_COLLECTION):
            made = await control.call(client.call, endpoint, body=NewCollection(name="docs"), dry_run=True)
            assert (made.outcome, made.dry_run) == ("created", True)
        assert (await control.call(client.call, routes.LIST_COLLECTIONS)).total == 0
        assert caplog.records == []
        await control.call(client.call, routes.CREATE_COLLECTION, body=NewCollection(name="docs"))
        caplog.clear()
        changed = await control.call(
            client.call, routes.CHANGE_COLLECTION, "docs", body=CollectionChange(name="papers"), dry_run=True
        )
        assert (changed.name, changed.outcome, changed.dry_run) == ("papers", "changed", True)
        removed = await control.call(client.call, routes.REMOVE_COLLECTION, "docs", dry_run=True)
        assert (removed.outcome, removed.dry_run) == ("removed", True)
    assert (await control.call(client.call, routes.GET_COLLECTION, "docs")).name == "docs"
    assert caplog.records == []


async def test_only_what_is_given_changes(control: Control) -> None:
    await boss(control)
    ann = await control.accounts.add_user("ann")
    client = control.client
    made = await control.call(
        client.call,
        routes.CREATE_COLLECTION,
        body=NewCollection(name="docs", readers=["*"], writers=[ann.id]),
    )

    async def change(**fields: object) -> tuple[str, list[str], list[str], str]:
        done = await control.call(
            client.call, routes.CHANGE_COLLECTION, made.id, body=CollectionChange(**fields)
        )
        return done.name, done.readers, done.writers, done.outcome.value

    assert await change(name="papers") == ("papers", ["*"], [ann.email], "changed")
    assert await change(readers=[ann.email]) == ("papers", [ann.email], [ann.email], "changed")
    assert await change(readers=[ann.id, ann.email]) == ("papers", [ann.email], [ann.email], "unchanged")
    assert await change(writers=[]) == ("papers", [ann.email], [], "changed")
    assert await change(name="papers") == ("papers", [ann.email], [], "unchanged")
    assert await change(readers=[], description="x") == ("papers", [], [], "changed")


async def test_who_is_gone_is_shown_by_id(control: Control) -> None:
    await boss(control)
    ann = await control.accounts.add_user("ann")
    group = await control.accounts.groups.create(NewGroup("Staff"))
    client = control.client
    wanted = NewCollection(name="docs", user=ann.id, readers=[ann.id, "group:Staff"])
    await control.call(client.call, routes.CREATE_COLLECTION, body=wanted)
    await control.accounts.users.remove(ann.id, None)
    await control.accounts.groups.remove(group.id)
    shown = await control.call(client.call, routes.GET_COLLECTION, "docs")
    assert (shown.user, shown.user_id) == ("", ann.id)
    assert shown.readers == [ann.id, f"group:{group.id}"]


async def test_lists_count_completed_files(control: Control) -> None:
    await boss(control)
    client = control.client
    for name in ("docs", "papers"):
        await control.call(client.call, routes.CREATE_COLLECTION, body=NewCollection(name=name))
    await processed(control, b"text", collection="docs")
    found = await control.call(client.call, routes.LIST_COLLECTIONS)
    assert {each.name: each.files for each in found.collections} == {"docs": 1, "papers": 0}
    assert found.total == 2
    assert (await control.call(client.call, routes.GET_COLLECTION, "docs")).files == 1
    found = await control.call(client.call, routes.LIST_COLLECTIONS, query="PAP")
    assert [each.name for each in found.collections] == ["papers"]
    page = await control.call(client.call, routes.LIST_COLLECTIONS, limit=1)
    assert (len(page.collections), page.total) == (1, 2)


async def test_removing_leaves_the_files(control: Control, caplog: pytest.LogCaptureFixture) -> None:
    await boss(control)
    client = control.client
    made = await control.call(client.call, routes.CREATE_COLLECTION, body=NewCollection(name="docs"))
    file = await processed(control, b"text", collection="docs")
    with caplog.at_level(logging.INFO, "gatewayd.audit"):
        removed = await control.call(client.call, routes.REMOVE_COLLECTION, "docs")
    assert (removed.outcome, removed.id, removed.files) == ("removed", made.id, 1)
    assert [line.getMessage() for line in caplog.records] == ["collection remove"]
    assert (await refused(control, client.call, routes.GET_COLLECTION, "docs")).kind == "not_found"
    assert (await control.call(client.call, routes.GET_FILE, file.id)).collections == []
    assert control.documents.index.forgotten == [SearchScope(ScopeKind.COLLECTION, made.id)]


async def test_names_may_have_slashes(control: Control) -> None:
    await boss(control)
    client = control.client
    made = await control.call(client.call, routes.CREATE_COLLECTION, body=NewCollection(name="a/b c?"))
    assert (await control.call(client.call, routes.GET_COLLECTION, "a/b c?")).id == made.id


async def test_what_a_removed_user_left_is_given_away(
    control: Control, caplog: pytest.LogCaptureFixture
) -> None:
    owner, client = await boss(control), control.client
    ann = await control.accounts.add_user("ann")
    left = await control.call(
        client.call, routes.CREATE_COLLECTION, body=NewCollection(name="left", user=ann.email, readers=["*"])
    )
    await control.call(client.call, routes.CREATE_COLLECTION, body=NewCollection(name="kept"))
    assert (await control.call(client.call, routes.LIST_COLLECTIONS, orphaned=True)).total == 0
    await control.call(client.call, routes.REMOVE_USER, ann.id)
    found = await control.call(client.call, routes.LIST_COLLECTIONS, orphaned=True)
    assert [(each.id, each.user_id, each.user) for each in found.collections] == [(left.id, ann.id, "")]
    gift = Gift(user=owner.id)
    assert (
        await control.call(client.call, routes.GIVE_COLLECTION, "left", body=gift, dry_run=True)
    ).outcome == "changed"
    assert (await control.call(client.call, routes.LIST_COLLECTIONS, orphaned=True)).total == 1
    with caplog.at_level(logging.INFO, "gatewayd.audit"):
        given = await control.call(client.call, routes.GIVE_COLLECTION, "left", body=gift)
    assert (given.outcome, given.user, given.readers) == ("changed", owner.email, ["*"])
    assert [line.getMessage() for line in caplog.records] == ["collection give"]
    assert (await control.call(client.call, routes.LIST_COLLECTIONS, orphaned=True)).total == 0
    assert (
        await control.call(client.call, routes.GIVE_COLLECTION, left.id, body=gift)
    ).outcome == "unchanged"
    for ref, user in ((left.id, "zoe@example.org"), ("none", owner.id)):
        assert (
            await refused(control, client.call, routes.GIVE_COLLECTION, ref, body=Gift(user=user))
        ).kind == "not_found"
