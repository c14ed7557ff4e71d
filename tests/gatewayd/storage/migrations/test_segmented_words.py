"""The words of what was there before words of every script."""

import logging
from pathlib import Path

import pytest

from gatewayd.ingest.records import ScopeKind, SearchScope
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import parse
from gatewayd.storage.engine.migrate import migrate_open
from gatewayd.storage.tables.documents import CollectionRow
from tests.fakes.storage.former_words import MIGRATION, make_former, write_package
from tests.fakes.storage.passages import open_shelf
from tests.fakes.storage.postgres import Postgres
from tests.fakes.storage.word_tables import indexed_texts

LATIN = [f"passage {number} about a fox" for number in range(40)]
FILES = {"latin": LATIN, "mixed": ["机器学习 with Python", "plain"], "empty": []}


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_passages_that_were_there_are_found_by_words_of_every_script(
    engine: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    caplog: pytest.LogCaptureFixture,
) -> None:
    url = f"sqlite:///{tmp_path}/gatewayd.db"
    if engine == "postgres":
        postgres: Postgres = request.getfixturevalue("postgres")
        url = postgres.create_database()
    write_package(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    location = parse(url)
    await make_former(location, FILES)
    with caplog.at_level(logging.INFO):
        async with Database.open(location) as database:
            assert (await migrate_open(database))[0] == MIGRATION
    assert "segmented the texts: 42 of 42 passages" in caplog.text
    told = {
        "sqlite": "indexed collection a: 42 of 42 passages",
        "postgres": "making the words of all passages anew",
    }
    assert told[engine] in caplog.text
    async with Database.open(location) as database, open_shelf(database) as shelf:
        scope = SearchScope(ScopeKind.COLLECTION, "a")
        assert await shelf.find(scope, "学习") == [FILES["mixed"][0]]
        assert len(await shelf.find(scope, "foxes", 100)) == len(LATIN)
        assert await shelf.words.check(scope) == []
        if location.is_sqlite:
            row = await CollectionRow.get(id="a")
            assert await indexed_texts(database, row.number) == [*LATIN, *FILES["mixed"]]
