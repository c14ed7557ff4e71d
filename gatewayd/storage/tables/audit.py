"""Tables of the audit log."""

from tortoise.models import Model

from gatewayd.storage.engine.fields import IntegerColumn, NameColumn, TextColumn


class AuditLogRow(Model):
    """One row of the audit log. Triggers refuse every change, and deletion of rows after the base."""

    sequence = IntegerColumn(primary_key=True, generated=False)
    at = IntegerColumn(db_index=True)
    actor_kind = NameColumn(max_length=16)
    actor = NameColumn(max_length=300)
    actor_id = NameColumn(max_length=300)
    key = NameColumn(max_length=300)
    address = NameColumn(max_length=300)
    action = NameColumn(max_length=300)
    target = TextColumn()
    subject = TextColumn()
    before = TextColumn()
    after = TextColumn()
    request_id = NameColumn(max_length=300)
    result = NameColumn(max_length=16)
    detail = TextColumn()
    previous = NameColumn(max_length=64)
    hash = NameColumn(max_length=64)

    class Meta:
        table = "audit_log"


class AuditBaseRow(Model):
    """The place of the last row that retention removed: one row at most."""

    id = IntegerColumn(primary_key=True, generated=False)
    sequence = IntegerColumn()
    hash = NameColumn(max_length=64)

    class Meta:
        table = "audit_base"
