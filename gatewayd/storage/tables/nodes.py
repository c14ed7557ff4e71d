"""Tables of the cluster: nodes, leases, and the answers that nodes are making.

Times named `until` are milliseconds since the epoch by the clock of the database.
"""

from tortoise import fields

from gatewayd.storage.engine.fields import IntegerColumn, NameColumn
from gatewayd.storage.tables.row_model import RowModel


class NodeRow(RowModel):
    """One process of the gateway, which owns what it works on until the end of its lease."""

    id = NameColumn(max_length=64, primary_key=True)
    name = NameColumn(max_length=255, db_index=True)
    version = NameColumn(max_length=64)
    migration = NameColumn(max_length=255)
    address = NameColumn(max_length=1024)
    configuration = NameColumn(max_length=64)
    secrets = NameColumn(max_length=64)
    plugins = NameColumn(max_length=64)
    is_draining = fields.BooleanField()
    started_at = IntegerColumn()
    until = IntegerColumn()

    class Meta:
        table = "nodes"


class LeaseRow(RowModel):
    """One duty that a single node does, with a fence that rises with each holder."""

    name = NameColumn(max_length=255, primary_key=True)
    node_id = NameColumn(max_length=64)
    fence = IntegerColumn()
    until = IntegerColumn()

    class Meta:
        table = "leases"


class AnswerRunRow(RowModel):
    """One message that a node is answering, whose id is the fence of the run."""

    id = fields.BigIntField(primary_key=True)
    task_id = NameColumn(max_length=64, db_index=True)
    user_id = NameColumn(max_length=255)
    chat_id = NameColumn(max_length=255)
    message_id = NameColumn(max_length=255)
    node_id = NameColumn(max_length=64, db_index=True)
    is_stopped = fields.BooleanField()
    started_at = IntegerColumn()

    class Meta:
        table = "answer_runs"
        unique_together = (("user_id", "chat_id", "message_id"),)
