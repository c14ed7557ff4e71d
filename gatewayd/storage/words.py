"""The words of collections on SQLite: one FTS5 table for each, of the words of the passages and nothing else.

On PostgreSQL the words are a column of the passages, and nothing is done here. `client` is what
`transactions.writing` yields; `number` is the collection's. The texts stay in the table of the passages, so
words must be taken out before the passages that they come from are removed.
"""

from collections.abc import Sequence
from typing import Any, Final

TOKENIZER: Final = "porter unicode61"
INDEXED: Final = "COALESCE(segmented, text)"
"""What of a passage is indexed."""


def table(number: int) -> str:
    """Return the name of the table with the words of a collection."""
    return f"words_{int(number)}"


def matching(name: str) -> str:
    """Return the query for the best `?2` passages of a table that match `?1`, with scores: more is better."""
    return f"SELECT rowid, -rank FROM {name} WHERE {name} MATCH ?1 ORDER BY rank, rowid LIMIT ?2"  # noqa: S608


async def create(client: Any, number: int) -> None:
    """Make the empty table of a new collection."""
    if _has_tables(client):
        await client.execute_query(
            f"CREATE VIRTUAL TABLE {table(number)} USING fts5(text, content='', tokenize='{TOKENIZER}')"
        )


async def drop(client: Any, number: int) -> None:
    """Remove the table of a collection, if it is there."""
    if _has_tables(client):
        await client.execute_query(f"DROP TABLE IF EXISTS {table(number)}")


async def add(client: Any, number: int, file_id: str) -> None:
    """Put the words of a file's published passages into a collection; those that are in stay as they are."""
    if _has_tables(client):
        name = table(number)
        await client.execute_query(
            f"INSERT INTO {name} (rowid, text) SELECT id, {INDEXED} FROM passages "  # noqa: S608 - a number
            f"WHERE file_id = ?1 AND staged = 0 AND NOT {_is_in(name)} ORDER BY id",
            [file_id],
        )


async def take(client: Any, number: int, file_id: str) -> None:
    """Take the words of a file's published passages out of a collection, those of them that are in."""
    if _has_tables(client):
        name = table(number)
        # FTS5 has to be told the text that it is to forget, and must never be told one it does not know.
        await client.execute_query(
            f"INSERT INTO {name} ({name}, rowid, text) SELECT 'delete', id, {INDEXED} FROM passages "  # noqa: S608
            f"WHERE file_id = ?1 AND staged = 0 AND {_is_in(name)}",
            [file_id],
        )


async def mend(client: Any, collection_id: str, number: int) -> Sequence[str]:
    """Make the words of a collection those of its passages; return a sentence for each difference."""
    if not _has_tables(client):
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
        "WHERE p.id = d.id AND NOT p.staged AND l.collection_id = ?1)"
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


def _has_tables(client: Any) -> bool:
    return bool(client.capabilities.dialect == "sqlite")
