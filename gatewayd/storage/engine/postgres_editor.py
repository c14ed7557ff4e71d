"""Schema editor for PostgreSQL that changes columns which triggers name."""

from typing import Any, Final

from tortoise.migrations.schema_editor import AsyncpgSchemaEditor

TRIGGERS: Final = """
SELECT tgname AS name, pg_get_triggerdef(oid) AS definition FROM pg_trigger
WHERE tgrelid = to_regclass($1) AND NOT tgisinternal ORDER BY tgname
"""


class TriggerKeepingEditor(AsyncpgSchemaEditor):
    """Makes the triggers of a table again around a change of a column.

    PostgreSQL refuses another type for a column that a trigger names.
    """

    async def _alter_field(self, model: Any, old_field: Any, new_field: Any) -> None:
        table = model._meta.db_table
        triggers = await self.client.execute_query_dict(TRIGGERS, [f'"{table}"'])
        for trigger in triggers:
            await self._run_sql(f'DROP TRIGGER "{trigger["name"]}" ON "{table}"')
        await super()._alter_field(model, old_field, new_field)
        for trigger in triggers:
            await self._run_sql(trigger["definition"])
