"""Full-text indexes of collections on SQLite: one contentless FTS5 table per collection.

On PostgreSQL the words are a column of the passages, and these functions do nothing. `client` is the value of
`transactions.write_transaction`; `number` is the collection's. The texts are only in the passages, so words
must be removed from the index before their passages.
"""

from collections.abc import Sequence
from typing import Any, Final

from gatewayd.storage.engine.statements import SqlStatement
from gatewayd.storage.tables.documents import REMOVED

TOKENIZER: Final = "porter unicode61"
INDEXED: Final = "COALESCE(segmented, text)"
"""SQL for the indexed text of a passage."""
# The unary + makes SQLite scan the range of ids instead of all passages of the file.
IN_ID_RANGE: Final = "+file_id = ?1 AND id BETWEEN ?2 AND ?3"
# The condition for visible hits in the collection ?3: its table may also contain words of staged passages and
# of files that are no longer linked.
IS_VISIBLE: Final = (
    "EXISTS (SELECT 1 FROM passages p JOIN collection_files l ON l.file_id = p.file_id "
    "WHERE p.id = {id} AND NOT p.staged AND l.collection_id = ?3)"
)


def table(number: int) -> str:
    """Return the name of the table with the words of a collection."""
    return f"words_{int(number)}"


def ranked_query(name: str, *, visible: bool = False) -> str:
    """Return the query for the best `?2` passages of a table that match `?1`, with scores (higher is better).

    With `visible` it returns only visible passages of the collection `?3`, which is slower.
    """
    only = f" AND {IS_VISIBLE.format(id=f'{name}.rowid')}" if visible else ""
    return f"SELECT rowid, -rank FROM {name} WHERE {name} MATCH ?1{only} ORDER BY rank, rowid LIMIT ?2"  # noqa: S608


async def create(client: Any, number: int) -> None:
    """Create the empty table of a new collection."""
    if has_tables(client):
        await client.execute_query(
            f"CREATE VIRTUAL TABLE {table(number)} USING fts5(text, content='', tokenize='{TOKENIZER}')"
        )


async def drop(client: Any, number: int) -> None:
    """Drop the table of a collection, if it exists."""
    if has_tables(client):
        await client.execute_query(f"DROP TABLE IF EXISTS {table(number)}")


async def collection_numbers(client: Any, file_id: str) -> Sequence[int]:
    """Return the numbers of the collections that contain a file."""
    statement = SqlStatement(client)
    rows = await statement.run(
        "SELECT c.number AS number FROM collection_files l JOIN collections c ON c.id = l.collection_id "  # noqa: S608
        f"WHERE l.file_id = {statement.bind(file_id)} ORDER BY l.id"
    )
    return [row["number"] for row in rows]


async def add(client: Any, number: int, file_id: str) -> None:
    """Add the words of a file's published passages to a collection, except those already in it."""
    if has_tables(client):
        await _add(client, number, "file_id = ?1 AND staged = 0", [file_id])


async def add_staged(client: Any, number: int, file_id: str, first: int, last: int) -> None:
    """Add the words of a file's staged passages with ids from `first` to `last`."""
    await _add(client, number, f"{IN_ID_RANGE} AND staged = 1", [file_id, first, last])


async def remove(client: Any, number: int, file_id: str, *, staged: bool | None = None) -> None:
    """Remove the words of a file's passages from a collection.

    `staged` restricts this to staged (True) or published (False) passages, None selects both.
    """
    if has_tables(client):
        which = "" if staged is None else f" AND staged = {int(staged)}"
        await _remove_where(client, number, f"file_id = ?1{which}", [file_id])


async def remove_between(client: Any, number: int, file_id: str, first: int, last: int) -> None:
    """Remove the words of a file's passages with ids from `first` to `last`."""
    await _remove_where(client, number, IN_ID_RANGE, [file_id, first, last])


async def _add(client: Any, number: int, which: str, values: Sequence[Any]) -> None:
    name = table(number)
    await client.execute_query(
        f"INSERT INTO {name} (rowid, text) SELECT id, {INDEXED} FROM passages "  # noqa: S608 - a number
        f"WHERE {which} AND NOT {_is_in(name)} ORDER BY id",
        list(values),
    )


async def _remove_where(client: Any, number: int, which: str, values: Sequence[Any]) -> None:
    name = table(number)
    # A contentless FTS5 table needs the text to delete, which must be the text that was inserted.
    await client.execute_query(
        f"INSERT INTO {name} ({name}, rowid, text) SELECT 'delete', id, {INDEXED} FROM passages "  # noqa: S608
        f"WHERE {which} AND {_is_in(name)}",
        list(values),
    )


async def rebuild_if_different(client: Any, collection_id: str, number: int) -> Sequence[str]:
    """Rebuild or complete the words of a collection; return a sentence for each difference."""
    if not has_tables(client):
        return []
    name = table(number)
    there = await client.execute_query_dict("SELECT 1 FROM sqlite_master WHERE name = ?1", [name])
    strays = await client.execute_query_dict(_strays(name), [collection_id]) if there else []
    sentences = []
    if not there or strays[0]["strays"]:
        reason = f"{strays[0]['strays']} passages that are not in it" if there else "no table of words"
        sentences.append(f"collection {collection_id} had {reason}; its words were rebuilt")
        await drop(client, number)
        await create(client, number)
    missing = await client.execute_query_dict(_files_without_words(name), [collection_id])
    if missing and not sentences:
        sentences.append(f"collection {collection_id} lacked the words of {len(missing)} files")
    for row in missing:
        await add(client, number, row["file_id"])
    return sentences


def _strays(name: str) -> str:
    return (
        f"SELECT COUNT(*) AS strays FROM {name}_docsize d WHERE NOT EXISTS (SELECT 1 FROM passages p "  # noqa: S608
        "JOIN collection_files l ON l.file_id = p.file_id "
        "WHERE p.id = d.id AND l.collection_id = ?1)"
        # Passages of a marker are being removed.
        " AND NOT EXISTS (SELECT 1 FROM passages p JOIN files f ON f.id = p.file_id "
        f"WHERE p.id = d.id AND f.status = '{REMOVED}')"
    )


def _files_without_words(name: str) -> str:
    return (
        "SELECT DISTINCT p.file_id AS file_id FROM collection_files l "  # noqa: S608 - a number
        "JOIN passages p ON p.file_id = l.file_id WHERE l.collection_id = ?1 AND NOT p.staged "
        f"AND NOT EXISTS (SELECT 1 FROM {name}_docsize d WHERE d.id = p.id)"
    )


def _is_in(name: str) -> str:
    # With IN, SQLite would scan the whole collection for every file.
    return f"EXISTS (SELECT 1 FROM {name}_docsize WHERE {name}_docsize.id = passages.id)"  # noqa: S608


def has_tables(client: Any) -> bool:
    """Return whether collections have tables of words, as on SQLite."""
    return bool(client.capabilities.dialect == "sqlite")
