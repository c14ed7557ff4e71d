"""The audit log: rows that only retention deletes, and the place of the last deleted one."""

from typing import Any, Final

from tortoise import migrations
from tortoise.migrations import operations as ops

from gatewayd.storage.engine.fields import IntegerColumn, NameColumn, TextColumn

SQLITE: Final = (
    "CREATE TRIGGER audit_log_unchanged BEFORE UPDATE ON audit_log"
    " BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END",
    "CREATE TRIGGER audit_log_kept BEFORE DELETE ON audit_log"
    " WHEN OLD.sequence > COALESCE((SELECT MAX(sequence) FROM audit_base), 0)"
    " BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END",
    "CREATE TRIGGER audit_base_grows BEFORE UPDATE ON audit_base"
    " WHEN NEW.sequence <= OLD.sequence"
    " OR NOT EXISTS (SELECT 1 FROM audit_log WHERE sequence = NEW.sequence AND hash = NEW.hash)"
    " BEGIN SELECT RAISE(ABORT, 'the base of the audit log names no row'); END",
    "CREATE TRIGGER audit_base_kept BEFORE DELETE ON audit_base"
    " BEGIN SELECT RAISE(ABORT, 'the base of the audit log is kept'); END",
)
POSTGRES: Final = (
    """
CREATE FUNCTION audit_log_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only';
END $$
""",
    """
CREATE FUNCTION audit_log_keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.sequence > COALESCE((SELECT MAX(sequence) FROM audit_base), 0) THEN
        RAISE EXCEPTION 'the audit log is append-only';
    END IF;
    RETURN OLD;
END $$
""",
    """
CREATE FUNCTION audit_base_grow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.sequence <= OLD.sequence
        OR NOT EXISTS (SELECT 1 FROM audit_log WHERE sequence = NEW.sequence AND hash = NEW.hash) THEN
        RAISE EXCEPTION 'the base of the audit log names no row';
    END IF;
    RETURN NEW;
END $$
""",
    "CREATE TRIGGER audit_log_unchanged BEFORE UPDATE ON audit_log"
    " FOR EACH ROW EXECUTE FUNCTION audit_log_refuse()",
    "CREATE TRIGGER audit_log_not_emptied BEFORE TRUNCATE ON audit_log"
    " FOR EACH STATEMENT EXECUTE FUNCTION audit_log_refuse()",
    "CREATE TRIGGER audit_log_kept BEFORE DELETE ON audit_log FOR EACH ROW EXECUTE FUNCTION audit_log_keep()",
    "CREATE TRIGGER audit_base_grows BEFORE UPDATE ON audit_base"
    " FOR EACH ROW EXECUTE FUNCTION audit_base_grow()",
    "CREATE TRIGGER audit_base_kept BEFORE DELETE ON audit_base"
    " FOR EACH ROW EXECUTE FUNCTION audit_log_refuse()",
)


async def make_triggers(_: Any, editor: Any) -> None:
    """Refuse changes of rows, and deletion of rows that are not before the base."""
    client = editor.client
    is_postgres = client.capabilities.dialect == "postgres"
    for statement in POSTGRES if is_postgres else SQLITE:
        await client.execute_query(statement)


class Migration(migrations.Migration):
    """Make the tables of the audit log and their triggers."""

    dependencies = [("gatewayd", "0018_budgets")]

    operations = [
        ops.CreateModel(
            name="AuditLogRow",
            fields=[
                ("sequence", IntegerColumn(generated=False, primary_key=True, unique=True, db_index=True)),
                ("at", IntegerColumn(db_index=True)),
                ("actor_kind", NameColumn(max_length=16)),
                ("actor", NameColumn(max_length=300)),
                ("actor_id", NameColumn(max_length=300)),
                ("key", NameColumn(max_length=300)),
                ("address", NameColumn(max_length=300)),
                ("action", NameColumn(max_length=300)),
                ("target", TextColumn(unique=False)),
                ("subject", TextColumn(unique=False)),
                ("before", TextColumn(unique=False)),
                ("after", TextColumn(unique=False)),
                ("request_id", NameColumn(max_length=300)),
                ("result", NameColumn(max_length=16)),
                ("detail", TextColumn(unique=False)),
                ("previous", NameColumn(max_length=64)),
                ("hash", NameColumn(max_length=64)),
            ],
            options={
                "table": "audit_log",
                "app": "gatewayd",
                "pk_attr": "sequence",
                "table_description": "One row of the audit log. Triggers refuse every change, and deletion of"
                " rows after the base.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="AuditBaseRow",
            fields=[
                ("id", IntegerColumn(generated=False, primary_key=True, unique=True, db_index=True)),
                ("sequence", IntegerColumn()),
                ("hash", NameColumn(max_length=64)),
            ],
            options={
                "table": "audit_base",
                "app": "gatewayd",
                "pk_attr": "id",
                "table_description": "The place of the last row that retention removed: one row at most.",
            },
            bases=["Model"],
        ),
        ops.RunPython(make_triggers),
    ]
