"""The words of passages on PostgreSQL; on SQLite each collection has a table for them, made with it."""

from typing import Any, Final

from tortoise import migrations
from tortoise.migrations import operations as ops

# The index is one of all collections: it serves large ones, others are walked through.
STATEMENTS: Final = (
    "ALTER TABLE passages ADD COLUMN words tsvector"
    " GENERATED ALWAYS AS (to_tsvector('english', text)) STORED",
    "CREATE INDEX idx_passages_words ON passages USING gin (words) WHERE NOT staged",
    # Vectors are not to be had any smaller: do not try to compress them.
    "ALTER TABLE vector_batches ALTER COLUMN vectors SET STORAGE EXTERNAL",
)


async def make_words(_: Any, editor: Any) -> None:
    """Add the column."""
    if editor.client.capabilities.dialect == "postgres":
        for statement in STATEMENTS:
            await editor.client.execute_script(statement)


class Migration(migrations.Migration):
    """Make passages searchable by their words."""

    dependencies = [("gatewayd", "0003_documents")]

    operations = [ops.RunPython(make_words)]
