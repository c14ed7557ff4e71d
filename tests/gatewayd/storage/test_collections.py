from dataclasses import replace
from typing import Any

import pytest

from gatewayd.catalog.records import Grant
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.records import FileStatus
from gatewayd.knowledge.records import Collection
from gatewayd.storage.collections import TortoiseCollections
from gatewayd.storage.engine.database import Database
from gatewayd.storage.files import TortoiseFiles
from gatewayd.storage.tables.accounts import GrantRow
from gatewayd.storage.tables.documents import CollectionRow, DirectoryRow, LinkRow
from gatewayd.storage.users import TortoiseUsers
from tests.fakes.accounts.records import user
from tests.fakes.documents.records import collection, directory, file, link

FULL = Collection(
    id="c1",
    user_id="u1",
    name="Straßen & Wege",
    description="Pläne, 100 %\nvon allen",
    meta={"tags": ["a"], "x": None},
    grants=(Grant("user", "*", "read"), Grant("group", "g1", "write")),
    updated_at=2,
    created_at=1,
)


@pytest.fixture
def collections(database: Database) -> TortoiseCollections:
    return TortoiseCollections()


async def listed(collections: TortoiseCollections, **how: Any) -> list[str]:
    found, total = await collections.list(**how)
    assert total == len(found)
    return [each.id for each in found]


async def word_tables(database: Database) -> set[str]:
    columns = await database.engine.columns()
    return {row["table"] for row in columns if row["table"].startswith("words_")}


async def test_a_collection_comes_back_as_it_was(collections: TortoiseCollections) -> None:
    await collections.add(FULL)
    assert await collections.find("c1") == FULL
    assert await collections.list() == ([replace(FULL, file_count=0)], 1)


async def test_collections_of_removed_users_are_listed(collections: TortoiseCollections) -> None:
    users = TortoiseUsers()
    for name in ("u1", "u2"):
        await users.add(user(name), None)
        await collections.add(collection(f"of {name}", user_id=name))
    assert await listed(collections, orphaned=True) == []
    await users.remove("u2")
    assert await listed(collections, orphaned=True) == ["of u2"]
    assert await listed(collections, orphaned=True, query="of u1") == []
    given = replace(collection("of u2"), user_id="u1")
    assert await collections.change(given)
    assert await listed(collections, orphaned=True) == []
    found = await collections.find("of u2")
    assert found is not None
    assert found.user_id == "u1"


async def test_what_is_absent_is_none_or_false(collections: TortoiseCollections) -> None:
    for collection_id in ("x", "\x00", "x" * 65):
        assert await collections.find(collection_id) is None
        assert await collections.find_by_name(collection_id) == []
        assert not await collections.change(collection(collection_id, name="n"))
        assert not await collections.remove(collection_id)
    assert await collections.find_by_name("x" * 256) == []
    assert await collections.list(query="\x00") == ([], 0)
    assert await collections.list(reader=("\x00", [])) == ([], 0)


async def test_an_id_is_taken_once(collections: TortoiseCollections) -> None:
    await collections.add(FULL)
    with pytest.raises(GatewayError) as caught:
        await collections.add(collection("c1"))
    assert caught.value.kind is ErrorKind.CONFLICT
    assert await collections.find("c1") == FULL


async def test_a_bad_grant_adds_nothing(collections: TortoiseCollections, database: Database) -> None:
    with pytest.raises(GatewayError) as caught:
        await collections.add(replace(FULL, grants=(Grant("user", "\x00", "read"),)))
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    assert await collections.list() == ([], 0)
    assert len(await word_tables(database)) == 0


async def test_collections_of_one_name_are_the_oldest_first(collections: TortoiseCollections) -> None:
    await collections.add(collection("c1", name="Notes", created_at=2))
    await collections.add(collection("c2", name="Notes", created_at=1))
    await collections.add(collection("c3", name="notes", created_at=0))
    assert [each.id for each in await collections.find_by_name("Notes")] == ["c2", "c1"]


async def test_a_change_writes_what_may_change(collections: TortoiseCollections) -> None:
    await collections.add(FULL)
    await collections.add(collection("c2", grants=FULL.grants))
    fresh = replace(
        FULL,
        user_id="u2",
        name="New",
        description="",
        meta={},
        grants=(Grant("user", "u2", "read"),),
        updated_at=9,
    )
    assert await collections.change(replace(fresh, created_at=5))
    assert await collections.find("c1") == fresh
    assert await collections.find("c2") == collection("c2", grants=FULL.grants)
    assert await listed(collections, query="wege") == []


async def test_a_removed_collection_leaves_the_files_alone(
    collections: TortoiseCollections, database: Database
) -> None:
    await TortoiseFiles().add(file("f1"))
    for collection_id in ("c1", "c2"):
        await collections.add(collection(collection_id, grants=FULL.grants))
        await collections.link(link(collection_id, "f1"))
        await collections.add_directory(directory(f"in {collection_id}", collection_id=collection_id))
    assert len(await word_tables(database)) >= 2 * database.location.is_sqlite
    assert await collections.remove("c1")
    assert not await collections.remove("c1")
    for table in (LinkRow, DirectoryRow):
        left: Any = await table.all().values_list("collection_id", flat=True)
        assert left == ["c2"]
    assert {row.resource_id for row in await GrantRow.all()} == {"c2"}
    assert await TortoiseFiles().find("f1") == file("f1")
    [row] = await CollectionRow.all()
    assert all(name.startswith(f"words_{row.number}") for name in await word_tables(database))
    await collections.add(collection("c1"))
    assert (await collections.find("c1")) == collection("c1")


async def test_numbers_differ_and_are_kept(collections: TortoiseCollections) -> None:
    for number in range(50):
        await collections.add(collection(f"c{number}"))
    before = {row.id: row.number for row in await CollectionRow.all()}
    assert len(set(before.values())) == 50
    assert all(0 <= number < 2**63 for number in before.values())
    await collections.change(collection("c7", name="other"))
    assert {row.id: row.number for row in await CollectionRow.all()} == before


async def test_pages_are_the_last_changed_first(collections: TortoiseCollections) -> None:
    for number in range(5):
        await collections.add(collection(f"c{number}", updated_at=number // 2, grants=FULL.grants))
    page, total = await collections.list(offset=1, limit=2)
    assert ([each.id for each in page], total) == (["c3", "c2"], 5)
    assert all(each.grants == FULL.grants for each in page)
    assert await collections.list(offset=9, limit=1) == ([], 5)
    assert await collections.list(limit=0) == ([], 5)
    assert await listed(collections) == ["c4", "c3", "c2", "c1", "c0"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("STRASSEN", ["c1"]),
        ("PLÄNE", ["c1"]),
        ("0 %", ["c1"]),
        ("0_%", []),
        ("c", ["c2"]),
        ("", ["c2", "c1"]),
    ],
)
async def test_a_part_of_name_or_description_finds_in_any_case(
    collections: TortoiseCollections, query: str, expected: list[str]
) -> None:
    await collections.add(FULL)
    await collections.add(collection("c2", updated_at=3))
    assert await listed(collections, query=query) == expected


@pytest.mark.parametrize(
    ("reader", "expected"),
    [
        (("u1", []), ["own", "public", "shared"]),
        (("u2", []), ["public"]),
        (("u2", ["g1", "g3", "\x00"]), ["group", "public"]),
        (("g1", ["u1"]), ["public"]),
        (None, ["closed", "group", "own", "public", "shared"]),
    ],
)
async def test_a_reader_sees_what_is_his_or_granted(
    collections: TortoiseCollections, reader: tuple[str, list[str]] | None, expected: list[str]
) -> None:
    granted = {
        "own": (),
        "shared": (Grant("user", "u1", "write"), Grant("user", "u1", "read")),
        "public": (Grant("user", "*", "read"),),
        "group": (Grant("group", "g1", "read"), Grant("group", "g3", "write")),
        "closed": (Grant("group", "g2", "read"), Grant("user", "u3", "write")),
    }
    for collection_id, access in granted.items():
        owner = "u1" if collection_id == "own" else "u9"
        await collections.add(collection(collection_id, user_id=owner, grants=access))
    # A model of the same id gives nothing.
    await GrantRow(
        resource_type="model",
        resource_id="closed",
        principal_type="user",
        principal_id="*",
        permission="read",
    ).save(force_create=True)
    assert sorted(await listed(collections, reader=reader)) == expected
    page, total = await collections.list(reader=reader, limit=1)
    assert (len(page), total) == (1, len(expected))


async def test_only_completed_files_count(collections: TortoiseCollections) -> None:
    for collection_id in ("c1", "c2", "c3"):
        await collections.add(collection(collection_id))
    for number, status in enumerate([*FileStatus, FileStatus.COMPLETED]):
        await TortoiseFiles().add(file(f"f{number}", status=status))
        await collections.link(link("c1", f"f{number}"))
        if status is not FileStatus.COMPLETED:
            await collections.link(link("c2", f"f{number}"))
    counts = {each.id: each.file_count for each in (await collections.list())[0]}
    assert counts == {"c1": 2, "c2": 0, "c3": 0}
    for collection_id, count in counts.items():
        assert await collections.count_files(collection_id) == count
        assert await collections.has_files(collection_id) is (count > 0)
    for collection_id in ("x", "\x00"):
        assert await collections.count_files(collection_id) == 0
        assert not await collections.has_files(collection_id)


async def test_finding_counts_nothing(collections: TortoiseCollections) -> None:
    await collections.add(FULL)
    await TortoiseFiles().add(file("f1", status=FileStatus.COMPLETED))
    await collections.link(link("c1", "f1"))
    assert await collections.find("c1") == FULL
    assert await collections.find_by_name(FULL.name) == [FULL]
    assert await collections.holding(["f1"]) == {"f1": [FULL]}


async def test_files_name_the_collections_that_hold_them(collections: TortoiseCollections) -> None:
    for collection_id in ("c1", "c2"):
        await collections.add(collection(collection_id, grants=FULL.grants))
    for file_id in ("f1", "f2", "f3"):
        await TortoiseFiles().add(file(file_id))
    for collection_id, file_id in (("c2", "f1"), ("c1", "f1"), ("c1", "f2")):
        await collections.link(link(collection_id, file_id))
    found = await collections.holding(["f1", "f2", "f3", "x", "\x00", "f1"])
    assert {key: [each.id for each in value] for key, value in found.items()} == {
        "f1": ["c2", "c1"],
        "f2": ["c1"],
    }
    assert found["f1"][0].grants == FULL.grants
    assert await collections.holding([]) == {}


async def test_listing_takes_as_many_statements_for_many_as_for_one(
    collections: TortoiseCollections, monkeypatch: pytest.MonkeyPatch, database: Database
) -> None:
    seen: list[str] = []
    run = type(database.engine).execute_query_dict

    async def counted(self: Any, query: str, values: list[Any] | None = None) -> Any:
        seen.append(query)
        return await run(self, query, values)

    for number in range(40):
        await collections.add(collection(f"c{number}", grants=FULL.grants))
    monkeypatch.setattr(type(database.engine), "execute_query_dict", counted)
    assert len(await listed(collections, reader=("u1", ["g1"]))) == 40
    assert len(seen) == 5
