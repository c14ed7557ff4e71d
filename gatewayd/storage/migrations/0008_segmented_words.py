"""The words of scripts without blanks between words: kept beside the texts, and indexed in their place."""

import logging
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from tortoise import migrations
from tortoise.migrations import operations as ops

from gatewayd.storage.engine.fields import TextColumn
from gatewayd.storage.engine.transactions import placeholder
from gatewayd.storage.search.bigrams import segment_text

log = logging.getLogger(__name__)

PAGE: Final = 500
PROGRESS_SECONDS: Final = 5.0
# What the storage indexed, and how, when this migration was written.
INDEXED: Final = "COALESCE(segmented, text)"
TABLE: Final = "CREATE VIRTUAL TABLE {} USING fts5(text, content='', tokenize='porter unicode61')"

# The column is made again once the texts are segmented: each of these changes would make its words anew.
BEFORE: Final = ("ALTER TABLE passages DROP COLUMN words",)
AFTER: Final = (
    "ALTER TABLE passages ADD COLUMN words tsvector"
    f" GENERATED ALWAYS AS (to_tsvector('english', {INDEXED})) STORED",
    "CREATE INDEX idx_passages_words ON passages USING gin (words) WHERE NOT staged",
    # Which words are frequent, searches learn from the statistics.
    "ANALYZE passages",
)

# The files of a collection in the order of their passages, so that the index grows at its end.
LINKED: Final = (
    "SELECT l.file_id AS file_id, COUNT(*) AS passages FROM collection_files l "
    "JOIN passages p ON p.file_id = l.file_id WHERE l.collection_id = ?1 AND NOT p.staged "
    "GROUP BY l.file_id ORDER BY MIN(p.id)"
)


class MigrationProgress:
    """Tells now and then how much of a work is done."""

    def __init__(self, work: str, total: int) -> None:
        self._work = work
        self._total = total
        self._done = 0
        self._told_at = time.monotonic()

    def add(self, count: int) -> None:
        """Count passages that are done."""
        self._done += count
        if self._done >= self._total or time.monotonic() - self._told_at >= PROGRESS_SECONDS:
            self._told_at = time.monotonic()
            log.info("%s: %d of %d passages", self._work, self._done, self._total)


async def make_words(_: Any, editor: Any) -> None:
    """Segment the texts, and index them anew."""
    client = editor.client
    is_postgres = client.capabilities.dialect == "postgres"
    for statement in BEFORE if is_postgres else ():
        await client.execute_script(statement)
    await _segment(client)
    if not is_postgres:
        await _index(client)
        return
    log.info("making the words of all passages anew")
    for statement in AFTER:
        await client.execute_script(statement)


async def _segment(client: Any) -> None:
    [counted] = await client.execute_query_dict("SELECT COUNT(*) AS total FROM passages")
    progress = MigrationProgress("segmented the texts", counted["total"])
    one, two = placeholder(client, 1), placeholder(client, 2)
    query = f"UPDATE passages SET segmented = {one} WHERE id = {two}"  # noqa: S608 - no values
    async for rows in _pages(client):
        found = [(text, row["id"]) for row in rows if (text := segment_text(row["text"])) is not None]
        if found:
            await client.execute_many(query, found)
        progress.add(len(rows))


async def _pages(client: Any) -> AsyncIterator[Sequence[Any]]:
    """Yield all passages, a few in memory at a time."""
    at = 0
    query = f"SELECT id, text FROM passages WHERE id > {placeholder(client, 1)} ORDER BY id LIMIT {PAGE}"  # noqa: S608
    while rows := await client.execute_query_dict(query, [at]):
        yield rows
        at = rows[-1]["id"]


async def _index(client: Any) -> None:
    """Make the table of words of each collection anew; it has the words alone from now on."""
    for collection in await client.execute_query_dict("SELECT id, number FROM collections ORDER BY number"):
        name = f"words_{int(collection['number'])}"
        await client.execute_query(f"DROP TABLE IF EXISTS {name}")
        await client.execute_query(TABLE.format(name))
        files = await client.execute_query_dict(LINKED, [collection["id"]])
        progress = MigrationProgress(
            f"indexed collection {collection['id']}", sum(row["passages"] for row in files)
        )
        for row in files:
            await client.execute_query(
                f"INSERT INTO {name} (rowid, text) SELECT id, {INDEXED} FROM passages "  # noqa: S608 - a number
                "WHERE file_id = ?1 AND NOT staged ORDER BY id",
                [row["file_id"]],
            )
            progress.add(row["passages"])


class Migration(migrations.Migration):
    """Make passages searchable by words of every script."""

    dependencies = [("gatewayd", "0007_response_ids")]

    operations = [
        ops.AddField("PassageRow", "segmented", TextColumn(null=True, unique=False)),
        ops.RunPython(make_words),
    ]
