"""The words of collections on SQLite: one FTS5 table for each, of the words of the passages and nothing else.

On PostgreSQL the words are a column of the passages, and nothing is done here. `client` is what
`transactions.writing` yields; `number` is the collection's. The texts stay in the table of the passages, so
words must be taken out before the passages that they come from are removed.
"""

from collections.abc import Sequence
from typing import Any, Final

from gatewayd.storage.engine.statements import SqlStatement
from gatewayd.storage.tables.documents import (
    REMOVED,
)

TOKENIZER: Final = "porter unicode61"
INDEXED: Final = "COALESCE(segmented, text)"
"""What of a passage is indexed."""
# SQLite goes through the ids, not through all passages of the file.
IN_ID_RANGE: Final = "+file_id = ?1 AND id BETWEEN ?2 AND ?3"
# What a search may find in the table of words of a collection, whose id is ?3. The words of staged passages,
# and of those that left it, may be in it, too.
IS_VISIBLE: Final = (
    "EXISTS (SELECT 1 FROM passages p JOIN collection_files l ON l.file_id = p.file_id "
    "WHERE p.id = {id} AND NOT p.staged AND l.collection_id = ?3)"
)


def table(number: int) -> str:
    """Return the name of the table with the words of a collection."""
    return f"words_{int(number)}"


def ranked_query(name: str, *, visible: bool = False) -> str:
    """Return the query for the best `?2` passages of a table that match `?1`, with scores: more is better.

    With `visible`, of those that a search may find in the collection `?3`, which takes longer.
    """
    only = f" AND {IS_VISIBLE.format(id=f'{name}.rowid')}" if visible else ""
    return f"SELECT rowid, -rank FROM {name} WHERE {name} MATCH ?1{only} ORDER BY rank, rowid LIMIT ?2"  # noqa: S608


async def create(client: Any, number: int) -> None:
    """Make the empty table of a new collection."""
    if has_tables(client):
        await client.execute_query(
            f"CREATE VIRTUAL TABLE {table(number)} USING fts5(text, content='', tokenize='{TOKENIZER}')"
        )


async def drop(client: Any, number: int) -> None:
    """Remove the table of a collection, if it is there."""
    if has_tables(client):
        await client.execute_query(f"DROP TABLE IF EXISTS {table(number)}")


async def collection_numbers(client: Any, file_id: str) -> Sequence[int]:
    """Return the numbers of the collections that hold a file."""
    statement = SqlStatement(client)
    rows = await statement.run(
        "SELECT c.number AS number FROM collection_files l JOIN collections c ON c.id = l.collection_id "  # noqa: S608
        f"WHERE l.file_id = {statement.bind(file_id)} ORDER BY l.id"
    )
    return [row["number"] for row in rows]


async def add(client: Any, number: int, file_id: str) -> None:
    """Add the words of a file's published passages to a collection; those that are in stay as they are."""
    if has_tables(client):
        await _add(client, number, "file_id = ?1 AND staged = 0", [file_id])


async def add_staged(client: Any, number: int, file_id: str, first: int, last: int) -> None:
    """Add the words of those of a file's staged passages that have an id from `first` to `last`."""
    await _add(client, number, f"{IN_ID_RANGE} AND staged = 1", [file_id, first, last])


async def remove(client: Any, number: int, file_id: str, *, staged: bool | None = None) -> None:
    """Remove the words of a file's passages from a collection, those of them that are in; only of the staged
    or the published ones unless `staged` is None."""
    if has_tables(client):
        which = "" if staged is None else f" AND staged = {int(staged)}"
        await _take(client, number, f"file_id = ?1{which}", [file_id])


async def remove_between(client: Any, number: int, file_id: str, first: int, last: int) -> None:
    """Remove the words of those of a file's passages that have an id from `first` to `last`."""
    await _take(client, number, IN_ID_RANGE, [file_id, first, last])


async def _add(client: Any, number: int, which: str, values: Sequence[Any]) -> None:
    name = table(number)
    await client.execute_query(
        f"INSERT INTO {name} (rowid, text) SELECT id, {INDEXED} FROM passages "  # noqa: S608 - a number
        f"WHERE {which} AND NOT {_is_in(name)} ORDER BY id",
        list(values),
    )


async def _take(client: Any, number: int, which: str, values: Sequence[Any]) -> None:
    name = table(number)
    # FTS5 has to be told the text that it is to forget, and must never be told one it does not know.
    await client.execute_query(
        f"INSERT INTO {name} ({name}, rowid, text) SELECT 'delete', id, {INDEXED} FROM passages "  # noqa: S608
        f"WHERE {which} AND {_is_in(name)}",
        list(values),
    )


async def rebuild_if_different(client: Any, collection_id: str, number: int) -> Sequence[str]:
    """Make the words of a collection those of its passages; return a sentence for each difference."""
    if not has_tables(client):
        return []
    name = table(number)
    there = await client.execute_query_dict("SELECT 1 FROM sqlite_master WHERE name = ?1", [name])
    strays = await client.execute_query_dict(_strays(name), [collection_id]) if there else []
    sentences = []
    if not there or strays[0]["strays"]:
        reason = f"{strays[0]['strays']} passages that are not in it" if there else "no table of words"
        sentences.append(f"collection {collection_id} had {reason}; its words were made anew")
        await drop(client, number)
        await create(client, number)
    lacking = await client.execute_query_dict(_lacking(name), [collection_id])
    if lacking and not sentences:
        sentences.append(f"collection {collection_id} lacked the words of {len(lacking)} files")
    for row in lacking:
        await add(client, number, row["file_id"])
    return sentences


def _strays(name: str) -> str:
    return (
        f"SELECT COUNT(*) AS strays FROM {name}_docsize d WHERE NOT EXISTS (SELECT 1 FROM passages p "  # noqa: S608
        "JOIN collection_files l ON l.file_id = p.file_id "
        "WHERE p.id = d.id AND l.collection_id = ?1)"
        # What is marked meanwhile is about to be removed.
        " AND NOT EXISTS (SELECT 1 FROM passages p JOIN files f ON f.id = p.file_id "
        f"WHERE p.id = d.id AND f.status = '{REMOVED}')"
    )


def _lacking(name: str) -> str:
    return (
        "SELECT DISTINCT p.file_id AS file_id FROM collection_files l "  # noqa: S608 - a number
        "JOIN passages p ON p.file_id = l.file_id WHERE l.collection_id = ?1 AND NOT p.staged "
        f"AND NOT EXISTS (SELECT 1 FROM {name}_docsize d WHERE d.id = p.id)"
    )


def _is_in(name: str) -> str:
    # As an IN, SQLite would go through the whole collection for every file.
    return f"EXISTS (SELECT 1 FROM {name}_docsize WHERE {name}_docsize.id = passages.id)"  # noqa: S608


def has_tables(client: Any) -> bool:
    """Tell whether the words of collections are in tables of their own, as they are on SQLite."""
    return bool(client.capabilities.dialect == "sqlite")
