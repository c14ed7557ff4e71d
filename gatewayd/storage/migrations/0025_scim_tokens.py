"""Tokens of SCIM clients, which were in a file of each node, and their rows in the change log."""

from typing import Any, Final

from tortoise import fields, migrations
from tortoise.migrations import operations as ops

from gatewayd.storage.engine.fields import IntegerColumn, NameColumn

TRIGGERS: Final = (
    "CREATE TRIGGER cluster_scim_token_insert AFTER INSERT ON scim_tokens"
    " REFERENCING NEW TABLE AS changed FOR EACH STATEMENT"
    " EXECUTE FUNCTION cluster_note_rows('scim_token', 'id')",
    "CREATE TRIGGER cluster_scim_token_delete AFTER DELETE ON scim_tokens"
    " REFERENCING OLD TABLE AS changed FOR EACH STATEMENT"
    " EXECUTE FUNCTION cluster_note_rows('scim_token', 'id')",
    "CREATE TRIGGER cluster_scim_token_update AFTER UPDATE ON scim_tokens"
    " FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*)"
    " EXECUTE FUNCTION cluster_note_row('scim_token', 'id')",
    "CREATE TRIGGER cluster_scim_token_truncate AFTER TRUNCATE ON scim_tokens FOR EACH STATEMENT"
    " EXECUTE FUNCTION cluster_note_all('scim_token')",
)


async def watch_tokens(_: Any, editor: Any) -> None:
    """Log the changes of the table on PostgreSQL."""
    client = editor.client
    if client.capabilities.dialect != "postgres":
        return
    for statement in TRIGGERS:
        await client.execute_query(statement)


class Migration(migrations.Migration):
    """Make the table; the daemon takes over the tokens of the file."""

    dependencies = [("gatewayd", "0021_cluster_changes")]

    operations = [
        ops.CreateModel(
            name="ScimTokenRow",
            fields=[
                ("id", fields.BigIntField(generated=True, primary_key=True, unique=True, db_index=True)),
                ("digest", NameColumn(unique=True, max_length=64)),
                ("created_at", IntegerColumn()),
                ("retired_at", IntegerColumn(null=True)),
            ],
            options={
                "table": "scim_tokens",
                "app": "gatewayd",
                "pk_attr": "id",
                "table_description": "One token of SCIM clients, as its digest. The highest id is the newest."
                " Retired ones stay refused.",
            },
            bases=["Model"],
        ),
        ops.RunPython(watch_tokens),
    ]
