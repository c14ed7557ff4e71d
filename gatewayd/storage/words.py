"""The words of collections on SQLite: one FTS5 table for each, over the texts of the passages.

On PostgreSQL the words are a column of the passages, and nothing is done here. `client` is what
`transactions.writing` yields; `number` is the collection's. The texts stay in the table of the passages, so
words must be taken out before the passages that they come from are removed.
"""

from typing import Any, Final

TOKENIZER: Final = "porter unicode61"


def table(number: int) -> str:
    """Return the name of the table with the words of a collection."""
    return f"words_{int(number)}"


async def create(client: Any, number: int) -> None:
    """Make the empty table of a new collection."""
    if _has_tables(client):
        await client.execute_query(
            f"CREATE VIRTUAL TABLE {table(number)} USING fts5("
            f"text, content='passages', content_rowid='id', tokenize='{TOKENIZER}')"
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
            f"INSERT INTO {name} (rowid, text) SELECT id, text FROM passages "  # noqa: S608 - a number
            f"WHERE file_id = ?1 AND staged = 0 AND NOT {_is_in(name)} ORDER BY id",
            [file_id],
        )


async def take(client: Any, number: int, file_id: str) -> None:
    """Take the words of a file's published passages out of a collection, those of them that are in."""
    if _has_tables(client):
        name = table(number)
        # FTS5 has to be told the text that it is to forget, and must never be told one it does not know.
        await client.execute_query(
            f"INSERT INTO {name} ({name}, rowid, text) SELECT 'delete', id, text FROM passages "  # noqa: S608
            f"WHERE file_id = ?1 AND staged = 0 AND {_is_in(name)}",
            [file_id],
        )


def _is_in(name: str) -> str:
    # As an IN, SQLite would go through the whole collection for every file.
    return f"EXISTS (SELECT 1 FROM {name}_docsize WHERE {name}_docsize.id = passages.id)"  # noqa: S608


def _has_tables(client: Any) -> bool:
    return bool(client.capabilities.dialect == "sqlite")
