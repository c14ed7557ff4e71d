"""Databases as the version before segmented words left them: passages, and the words of each collection."""

import importlib
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gatewayd.ingest.records import File, FileStatus
from gatewayd.knowledge.records import Collection, CollectionLink
from gatewayd.storage import migrations
from gatewayd.storage.collections import TortoiseCollections
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import DatabaseLocation
from gatewayd.storage.engine.migrate import migrate_open
from gatewayd.storage.engine.transactions import placeholder
from gatewayd.storage.files import columns_of
from gatewayd.storage.search.fts import table
from gatewayd.storage.tables.documents import CollectionRow
from tests.fakes.storage.passages import document

MIGRATION = "0008_segmented_words"
PACKAGE = "former_migrations"


def write_package(folder: Path) -> None:
    """Make the package of the migrations up to the former version in a folder, which is to be importable."""
    present = Path(migrations.__file__).parent
    later = [path.name for path in present.glob("0*.py") if path.stem >= MIGRATION]
    shutil.copytree(present, folder / PACKAGE, ignore=shutil.ignore_patterns(*later, "__pycache__"))
    # That of an earlier test was in a folder that is gone.
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]
    importlib.invalidate_caches()


async def make_former(location: DatabaseLocation, files: Mapping[str, Sequence[str]]) -> None:
    """Make a database with the collection `a` of files, each given by the texts of its passages."""
    async with Database.open(location) as database:
        await migrate_open(database, PACKAGE)
        await TortoiseCollections().add(Collection("a", "u", "a"))
        for file_id, texts in files.items():
            file = document(file_id, status=FileStatus.COMPLETED, chunks=len(texts))
            await _add_file(database.engine, file)
            await _add_passages(database.engine, file_id, texts)
            await _link(database.engine, file_id)
        if location.is_sqlite:
            await _make_words(database.engine)


async def find_former(database: Database, word: str) -> list[int]:
    """Return the ids of the passages with a word, as the former version finds them."""
    name = await _table()
    query = f"SELECT rowid AS id FROM {name} WHERE text MATCH ?1 ORDER BY rowid"
    if not database.location.is_sqlite:
        query = "SELECT id FROM passages WHERE words @@ plainto_tsquery('english', $1) ORDER BY id"
    return [row["id"] for row in await database.engine.execute_query_dict(query, [word])]


async def _add_file(client: Any, file: File) -> None:
    columns = {"id": file.id, **columns_of(file)}
    # These are of later versions.
    del columns["blank_pages"], columns["blob"]
    places = ", ".join(placeholder(client, place) for place in range(1, len(columns) + 1))
    await client.execute_query(
        f"INSERT INTO files ({', '.join(columns)}) VALUES ({places})", [*columns.values()]
    )


async def _add_passages(client: Any, file_id: str, texts: Sequence[str]) -> None:
    places = ", ".join(placeholder(client, place) for place in range(1, 6))
    columns = "file_id, staged, number, start, text"
    rows = [(file_id, False, number, 0, text) for number, text in enumerate(texts)]
    await client.execute_many(f"INSERT INTO passages ({columns}) VALUES ({places})", rows)


async def _link(client: Any, file_id: str) -> None:
    link = CollectionLink("a", file_id, "u")
    places = ", ".join(placeholder(client, place) for place in range(1, 8))
    columns = "collection_id, file_id, user_id, origin, path, place, created_at"
    values = [link.collection_id, file_id, link.user_id, "", "", "", 0]
    await client.execute_query(f"INSERT INTO collection_files ({columns}) VALUES ({places})", values)


async def _make_words(client: Any) -> None:
    name = await _table()
    for statement in (
        f"DROP TABLE {name}",
        f"CREATE VIRTUAL TABLE {name} USING fts5("
        "text, content='passages', content_rowid='id', tokenize='porter unicode61')",
        f"INSERT INTO {name} (rowid, text) SELECT id, text FROM passages ORDER BY id",
    ):
        await client.execute_query(statement)


async def _table() -> str:
    return table((await CollectionRow.get(id="a")).number)
