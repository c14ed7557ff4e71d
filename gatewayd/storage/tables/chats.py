"""Tables of stored chats; the rules are in `accounts`."""

from typing import Any

from tortoise import fields

from gatewayd.storage.engine.fields import IntegerColumn, JsonColumn, NameColumn, TextColumn
from gatewayd.storage.tables.accounts import KEY_LENGTH
from gatewayd.storage.tables.row_model import RowModel

# Clients choose the ids of messages.
MESSAGE_ID_LENGTH = 255


class ChatRow(RowModel):
    """One chat without its messages, whose title_key is the title folded to one case."""

    id = NameColumn(max_length=64, primary_key=True)
    user: Any = fields.ForeignKeyField("gatewayd.UserRow", related_name="chats")
    title = TextColumn()
    title_key = TextColumn()
    head = JsonColumn()
    current_id = NameColumn(max_length=MESSAGE_ID_LENGTH, null=True)
    archived = fields.BooleanField()
    pinned = fields.BooleanField()
    folder_id = NameColumn(max_length=64, null=True)
    meta = JsonColumn()
    last_read_at = IntegerColumn(null=True)
    updated_at = IntegerColumn(db_index=True)
    created_at = IntegerColumn()

    class Meta:
        table = "chats"
        # The last changed chats of a user.
        indexes = (("user_id", "updated_at", "id"),)


class ChatTagRow(RowModel):
    """One tag of one chat, with the name that it was given by."""

    id = fields.BigIntField(primary_key=True)
    chat: Any = fields.ForeignKeyField("gatewayd.ChatRow", related_name="tags")
    tag = NameColumn(max_length=255)
    name = NameColumn(max_length=255)

    class Meta:
        table = "chat_tags"
        unique_together = (("chat", "tag"),)


class ChatMessageRow(RowModel):
    """One message, numbered in the order of making, whose content_key is its text folded to one case."""

    number = fields.BigIntField(primary_key=True)
    chat: Any = fields.ForeignKeyField("gatewayd.ChatRow", related_name="messages")
    id = NameColumn(max_length=MESSAGE_ID_LENGTH)
    parent_id = NameColumn(max_length=MESSAGE_ID_LENGTH, null=True)
    role = NameColumn(max_length=64)
    content = TextColumn()
    content_key = TextColumn()
    parts = JsonColumn(null=True)
    done = fields.BooleanField(null=True)
    state = NameColumn(max_length=16, db_index=True)
    attributes = JsonColumn()
    timestamp = IntegerColumn()

    class Meta:
        table = "chat_messages"
        unique_together = (("chat", "id"),)
        # The messages of a chat in order, and the children of a message.
        indexes = (("chat_id", "number"), ("chat_id", "parent_id"))


class ChatMessageItemRow(RowModel):
    """One value of a list of a message, in the order of adding."""

    id = fields.BigIntField(primary_key=True)
    message: Any = fields.ForeignKeyField("gatewayd.ChatMessageRow", related_name="items")
    kind = NameColumn(max_length=32)
    value = JsonColumn()

    class Meta:
        table = "chat_message_items"
        indexes = (("message_id", "kind", "id"),)


class SharedChatRow(RowModel):
    """One chat as it was when it was shared."""

    id = NameColumn(max_length=64, primary_key=True)
    chat: Any = fields.OneToOneField("gatewayd.ChatRow", related_name="shared")
    user_id = NameColumn(max_length=64)
    document = JsonColumn()
    created_at = IntegerColumn()

    class Meta:
        table = "shared_chats"


class FolderRow(RowModel):
    """One folder of chats, whose name_key finds it by name."""

    id = NameColumn(max_length=64, primary_key=True)
    user: Any = fields.ForeignKeyField("gatewayd.UserRow", related_name="chat_folders")
    parent_id = NameColumn(max_length=64, null=True)
    name = NameColumn(max_length=255)
    name_key = NameColumn(max_length=KEY_LENGTH)
    is_expanded = fields.BooleanField()
    meta = JsonColumn()
    data = JsonColumn()
    updated_at = IntegerColumn()
    created_at = IntegerColumn()

    class Meta:
        table = "chat_folders"
        indexes = (("user_id", "name_key"),)
