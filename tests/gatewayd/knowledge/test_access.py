"""Tests for gatewayd.knowledge.access."""

from pathlib import Path

import pytest

from gatewayd.accounts.records import CredentialKind, Role
from gatewayd.catalog.records import Grant
from gatewayd.knowledge.records import Collection
from tests.fakes.documents.collections import World, a_file, build_world, person

ANN, BOB, SUE = person("ann"), person("bob"), person("sue", groups=("staff",))
ROOT = person("root", role=Role.ADMIN)


def collection(*grants: Grant) -> Collection:
    return Collection("c1", "ann", "docs", grants=grants)


@pytest.mark.parametrize(
    ("grants", "readers", "writers"),
    [
        ((), "ann root", "ann root"),
        ((Grant("user", "bob", "read"),), "ann bob root", "ann root"),
        ((Grant("user", "bob", "write"),), "ann bob root", "ann bob root"),
        ((Grant("group", "staff", "read"),), "ann sue root", "ann root"),
        ((Grant("group", "staff", "write"),), "ann sue root", "ann sue root"),
        ((Grant("user", "*", "read"),), "ann bob sue root", "ann root"),
    ],
)
def test_who_may_do_what(world: World, grants: tuple[Grant, ...], readers: str, writers: str) -> None:
    allows = world.holdings.access.allows
    people = (ANN, BOB, SUE, ROOT)
    made = collection(*grants)
    assert {each.user_id for each in people if allows(each, made, "read")} == set(readers.split())
    assert {each.user_id for each in people if allows(each, made, "write")} == set(writers.split())


async def test_administrators_are_bound_when_the_setting_says_so(tmp_path: Path) -> None:
    access = build_world(tmp_path, bypass_admins=False).holdings.access
    assert not access.allows(ROOT, collection(), "read")
    assert access.reader(ROOT) == ("root", ())
    control = person("root", role=Role.ADMIN, kind=CredentialKind.CONTROL)
    assert access.allows(control, collection(), "write")
    assert access.reader(control) is None
    assert not access.allows(person("bob", kind=CredentialKind.CONTROL), collection(), "read")


async def test_a_file_is_shared_through_the_collections_that_hold_it(world: World) -> None:
    file = await world.shelve(a_file("f1", "ann"), "some text")
    may = world.holdings.access.may
    assert await may(ANN, file, "write")
    assert await may(ROOT, file, "write")
    assert not await may(BOB, file, "read")
    shared = await world.collection(ANN, "docs", Grant("user", "bob", "read"))
    await world.shelve(file, "some text", shared)
    assert await may(BOB, file, "read")
    assert not await may(BOB, file, "write")
    assert not await may(SUE, file, "read")


async def test_only_a_collection_of_the_file_s_owner_gives_the_right_to_write(world: World) -> None:
    own = await world.collection(BOB, "of bob")
    file = await world.shelve(a_file("f1", "ann"), "some text", own)
    assert await world.holdings.access.may(BOB, file, "read")
    assert not await world.holdings.access.may(BOB, file, "write")
    shared = await world.collection(ANN, "of ann", Grant("user", "bob", "write"))
    await world.shelve(file, "some text", shared)
    assert await world.holdings.access.may(BOB, file, "write")


async def test_collections_are_looked_up_together_and_not_counted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = await world.collection(ANN, "docs", Grant("user", "bob", "read"))
    file = await world.shelve(a_file("f1", "ann"), "some text", await world.collection(ANN, "own"), shared)
    for name in ("find", "count_files"):
        monkeypatch.delattr(type(world.store), name)
    assert await world.holdings.access.may(BOB, file, "read")
    assert not await world.holdings.access.may(SUE, file, "read")
