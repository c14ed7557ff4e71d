"""What the table of words of a collection on SQLite holds, compared with the passages that it is of."""

from gatewayd.storage.engine.database import Database
from gatewayd.storage.search.fts import INDEXED, TOKENIZER, table

INSTANCES = "SELECT doc, offset, term FROM temp.{} ORDER BY doc, offset"


async def indexed_texts(database: Database, number: int) -> list[str]:
    """Return the texts of the passages of a table, in order; fails unless their words are all that it has."""
    run = database.engine.execute_query_dict
    name = table(number)
    await run(f"INSERT INTO {name} ({name}) VALUES ('integrity-check')")
    for made in (
        f"CREATE VIRTUAL TABLE temp.wanted USING fts5(text, tokenize='{TOKENIZER}')",
        f"INSERT INTO temp.wanted (rowid, text) SELECT id, {INDEXED} FROM passages "
        f"WHERE id IN (SELECT id FROM {name}_docsize)",
        "CREATE VIRTUAL TABLE temp.wanted_words USING fts5vocab('wanted', 'instance')",
        f"CREATE VIRTUAL TABLE temp.found_words USING fts5vocab('main', '{name}', 'instance')",
    ):
        await run(made)
    wanted, found = [await run(INSTANCES.format(one)) for one in ("wanted_words", "found_words")]
    for one in ("wanted_words", "found_words", "wanted"):
        await run(f"DROP TABLE temp.{one}")
    assert found == wanted
    rows = await run(f"SELECT p.text FROM {name}_docsize d JOIN passages p ON p.id = d.id ORDER BY d.id")
    return [row["text"] for row in rows]
