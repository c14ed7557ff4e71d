"""Tests for gatewayd.knowledge.collections."""

from collections.abc import Awaitable, Callable

import pytest

from gatewayd.accounts.records import Role
from gatewayd.catalog.records import Grant
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.records import ScopeKind, SearchScope
from gatewayd.knowledge.collections import CollectionChange, NewCollection
from tests.fakes.documents.collections import World, a_file, person

ANN, BOB = person("ann"), person("bob")
ROOT = person("root", role=Role.ADMIN, permissions={})
READ, WRITE = Grant("user", "bob", "read"), Grant("user", "bob", "write")
PUBLIC = Grant("user", "*", "read")


async def refused(work: Awaitable[object]) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await work
    return caught.value


async def test_creating_needs_the_permission(world: World) -> None:
    error = await refused(world.collections.create(person("eve", permissions={}), NewCollection("x")))
    assert error.kind is ErrorKind.FORBIDDEN
    assert "workspace.knowledge" in error.message
    made = await world.collections.create(ROOT, NewCollection("  x ", " about ", {"a": 1}))
    assert (made.user_id, made.name, made.description, made.meta) == ("root", "x", "about", {"a": 1})
    assert await world.collections.get(ROOT, made.id) == made


async def test_only_administrators_give_collections_away(world: World) -> None:
    made = await world.collections.create(ROOT, NewCollection("x", grants=[READ]), owner_id="ann")
    assert (await refused(world.collections.give(ANN, made.id, "bob"))).kind is ErrorKind.FORBIDDEN
    given = await world.collections.give(ROOT, made.id, "bob")
    assert (given.user_id, given.name, given.grants) == ("bob", "x", (READ,))
    assert await world.collections.get_writable(BOB, made.id) == given
    assert (await refused(world.collections.get(ANN, made.id))).kind is ErrorKind.NOT_FOUND
    assert await world.collections.give(ROOT, made.id, "bob") == given
    assert (await refused(world.collections.give(ROOT, "none", "bob"))).kind is ErrorKind.NOT_FOUND


async def test_only_administrators_make_collections_for_others(world: World) -> None:
    made = await world.collections.create(ROOT, NewCollection("x"), owner_id="bob")
    assert made.user_id == "bob"
    assert await world.collections.get_writable(BOB, made.id) == made
    error = await refused(world.collections.create(ANN, NewCollection("x"), owner_id="bob"))
    assert error.kind is ErrorKind.FORBIDDEN


async def test_files_are_counted_when_asked_for(world: World) -> None:
    docs, other = await world.collection(ANN), await world.collection(ANN, "other")
    await world.shelve(a_file("f1"), "some text", docs)
    for collection_id, count in ((docs, 1), (other, 0)):
        made = await world.collections.get(ANN, collection_id)
        assert made.file_count is None
        assert await world.collections.count_files(made) == count
        assert await world.collections.has_files(made) is (count > 0)
    assert [each.id for each in (await world.collections.holding(["f1", "f2"]))["f1"]] == [docs]
    found, _ = await world.collections.list(ANN)
    assert {each.id: each.file_count for each in found} == {docs: 1, other: 0}


async def test_grants_are_filtered_by_permission(world: World) -> None:
    made = await world.collections.create(ANN, NewCollection("x", grants=(PUBLIC, READ)))
    assert made.grants == ()
    may = person(
        "ann", permissions={"workspace": {"knowledge": True}, "access_grants": {"allow_users": True}}
    )
    made = await world.collections.create(may, NewCollection("x", grants=(PUBLIC, READ)))
    assert made.grants == (READ,)
    kept = await world.collections.set_grants(ANN, made.id, [READ, PUBLIC, WRITE])
    assert kept.grants == (READ,)
    made = await world.collections.set_grants(ROOT, made.id, [PUBLIC])
    assert made.grants == (PUBLIC,)
    error = await refused(world.collections.set_grants(ROOT, made.id, [Grant("host", "x", "read")]))
    assert error.kind is ErrorKind.INVALID_REQUEST


async def test_a_writer_gives_on_what_its_own_permissions_let_it_give(world: World) -> None:
    key = await world.collection(ANN, "docs", WRITE)
    carl = Grant("user", "carl", "write")
    assert (await world.collections.set_grants(BOB, key, [WRITE, carl, PUBLIC])).grants == (WRITE,)
    giver = person("bob", permissions={"access_grants": {"allow_users": True}})
    assert (await world.collections.set_grants(giver, key, [WRITE, carl, PUBLIC])).grants == (WRITE, carl)
    # Whose own right is gone gives nothing more, whatever it gave before.
    await world.collections.set_grants(ROOT, key, [carl])
    assert (await refused(world.collections.set_grants(giver, key, [WRITE]))).kind is ErrorKind.NOT_FOUND


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\x00", "x" * 256])
async def test_bad_names_are_refused(world: World, name: str) -> None:
    error = await refused(world.collections.create(ANN, NewCollection(name)))
    assert (error.kind, error.param) == (ErrorKind.INVALID_REQUEST, "name")


CHANGES: dict[str, Callable[[World, str], Awaitable[object]]] = {
    "change": lambda world, key: world.collections.change(BOB, key, CollectionChange(name="mine")),
    "grants": lambda world, key: world.collections.set_grants(BOB, key, [WRITE]),
    "remove": lambda world, key: world.collections.remove(BOB, key),
    "get_writable": lambda world, key: world.collections.get_writable(BOB, key),
}


@pytest.mark.parametrize("work", CHANGES.values(), ids=CHANGES)
async def test_who_may_not_read_learns_nothing_and_who_may_only_read_changes_nothing(
    world: World, work: Callable[[World, str], Awaitable[object]]
) -> None:
    key = await world.collection(ANN)
    error = await refused(work(world, key))
    assert error.kind is ErrorKind.NOT_FOUND
    assert str(await refused(work(world, "nowhere"))).replace("nowhere", key) == str(error)
    await world.collections.set_grants(ROOT, key, [READ])
    assert (await refused(work(world, key))).kind is ErrorKind.FORBIDDEN
    await world.collections.set_grants(ROOT, key, [WRITE])
    await work(world, key)


@pytest.mark.parametrize("key", ["", "x" * 100, "a\x00b", "\ud800"])
async def test_odd_ids_are_not_found(world: World, key: str) -> None:
    assert (await refused(world.collections.get(ROOT, key))).kind is ErrorKind.NOT_FOUND
    assert (await refused(world.collections.resolve(ROOT, key))).kind is ErrorKind.NOT_FOUND


async def test_list_has_what_the_actor_may_read(world: World) -> None:
    await world.collection(ANN, "private")
    shared = await world.collection(ANN, "shared manual", READ)
    own = await world.collection(BOB, "own")
    found, total = await world.collections.list(BOB)
    assert ({each.id for each in found}, total) == ({shared, own}, 2)
    found, total = await world.collections.list(BOB, query=" MANUAL ")
    assert ([each.id for each in found], total) == ([shared], 1)
    assert (await world.collections.list(ROOT, limit=1))[1] == 3
    assert await world.collections.list(ROOT, query="a\x00") == ([], 0)


async def test_resolve_by_id_or_exact_name(world: World) -> None:
    one = await world.collection(ANN, "docs")
    assert (await world.collections.resolve(ANN, one)).id == one
    assert (await world.collections.resolve(ANN, " docs ")).id == one
    assert (await refused(world.collections.resolve(ANN, "DOCS"))).kind is ErrorKind.NOT_FOUND
    assert (await refused(world.collections.resolve(BOB, "docs"))).kind is ErrorKind.NOT_FOUND
    mine = await world.collection(BOB, "docs")
    assert (await world.collections.resolve(BOB, "docs")).id == mine
    error = await refused(world.collections.resolve(ROOT, "docs"))
    assert error.kind is ErrorKind.CONFLICT
    assert one in error.message
    assert mine in error.message


async def test_change_and_remove(world: World) -> None:
    key = await world.collection(ANN)
    change = CollectionChange(name="new", description="about", meta={"x": 1})
    changed = await world.collections.change(ANN, key, change)
    assert (changed.name, changed.description, changed.meta) == ("new", "about", {"x": 1})
    await world.collections.remove(ANN, key)
    assert world.index.forgotten == [SearchScope(ScopeKind.COLLECTION, key)]
    assert (await refused(world.collections.get(ANN, key))).kind is ErrorKind.NOT_FOUND
