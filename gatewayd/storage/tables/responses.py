"""Tables of the Responses protocol."""

from typing import Any

from tortoise import fields

from gatewayd.storage.engine.fields import IntegerColumn, JsonColumn, NameColumn
from gatewayd.storage.tables.row_model import RowModel

RESPONSE_ID_LENGTH = 128


class StoredResponseRow(RowModel):
    """One response with the input of its request, which continues the one that previous_id names."""

    id = NameColumn(max_length=RESPONSE_ID_LENGTH, primary_key=True)
    user: Any = fields.ForeignKeyField("gatewayd.UserRow", related_name="stored_responses")
    previous_id = NameColumn(max_length=RESPONSE_ID_LENGTH, null=True)
    model = NameColumn(max_length=256)
    source = NameColumn(max_length=128)
    response = JsonColumn()
    input = JsonColumn()
    events = JsonColumn()
    size = IntegerColumn()
    created_at = IntegerColumn()
    expires_at = IntegerColumn(db_index=True)

    class Meta:
        table = "stored_responses"
        # The newest responses of a user.
        indexes = (("user_id", "created_at", "id"),)
