import pytest

from gatewayd.catalog.records import Grant
from gatewayd.storage import grants
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.statements import SqlStatement
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.grants import GrantResource
from gatewayd.storage.tables.accounts import GrantRow

LISTS = {
    "a": (Grant("user", "u1", "write"), Grant("group", "g1", "read")),
    "b": (Grant("user", "*", "read"),),
    "c": (Grant("group", "g2", "write"),),
}


@pytest.fixture(autouse=True)
async def lists(database: Database) -> None:
    async with write_transaction("write access lists"):
        for resource_id, entries in LISTS.items():
            await grants.write(GrantResource.KNOWLEDGE, resource_id, entries)
        await grants.write(GrantResource.MODEL, "a", LISTS["c"])


async def test_lists_are_read_by_resource_in_their_order() -> None:
    assert await grants.read(GrantResource.KNOWLEDGE, ["a", "c", "x"]) == {"a": LISTS["a"], "c": LISTS["c"]}
    assert await grants.read(GrantResource.KNOWLEDGE, []) == {}
    assert await grants.read_all(GrantResource.KNOWLEDGE) == LISTS


async def test_writing_replaces_one_list_alone() -> None:
    fresh = (Grant("user", "u2", "read"),) * 2
    await grants.write(GrantResource.KNOWLEDGE, "a", fresh)
    assert await grants.read_all(GrantResource.KNOWLEDGE) == {**LISTS, "a": fresh[:1]}
    assert await grants.read_all(GrantResource.MODEL) == {"a": LISTS["c"]}


async def test_removing_takes_one_list_alone() -> None:
    await grants.remove(GrantResource.KNOWLEDGE, "a")
    assert await grants.read_all(GrantResource.KNOWLEDGE) == {"b": LISTS["b"], "c": LISTS["c"]}
    assert await grants.read_all(GrantResource.MODEL) == {"a": LISTS["c"]}


@pytest.mark.parametrize(
    ("user_id", "group_ids", "expected"),
    [
        ("u1", [], ["a", "b"]),
        ("u2", [], ["b"]),
        ("u2", ["g1", "g2"], ["a", "b", "c"]),
        ("g1", ["u1"], ["b"]),
    ],
)
async def test_who_reads_what(user_id: str, group_ids: list[str], expected: list[str]) -> None:
    statement = SqlStatement(GrantRow._meta.db)
    condition = grants.readable_condition(statement, GrantResource.KNOWLEDGE, "x.id", (user_id, group_ids))
    rows = await statement.run(
        "SELECT x.id FROM (SELECT 'a' AS id UNION SELECT 'b' UNION SELECT 'c') AS x "
        f"WHERE {condition} ORDER BY x.id"
    )
    assert [row["id"] for row in rows] == expected
