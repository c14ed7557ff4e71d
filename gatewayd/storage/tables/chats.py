"""The tables of stored chats; what `rows` says of its rows holds for these."""

from typing import Any

from tortoise import fields
from tortoise.models import Model

from gatewayd.storage.engine.fields import Json, Name, Text, Whole

# Clients choose the ids of messages.
MESSAGE_ID_LENGTH = 255


class ChatRow(Model):
    """One chat without its messages, whose title_key is the title folded to one case."""

    id = Name(max_length=64, primary_key=True)
    user: Any = fields.ForeignKeyField("gatewayd.UserRow", related_name="chats")
    title = Text()
    title_key = Text()
    head = Json()
    current_id = Name(max_length=MESSAGE_ID_LENGTH, null=True)
    archived = fields.BooleanField()
    pinned = fields.BooleanField()
    folder_id = Name(max_length=64, null=True)
    meta = Json()
    last_read_at = Whole(null=True)
    updated_at = Whole(db_index=True)
    created_at = Whole()

    class Meta:
        table = "chats"
        # A user's last changed ones.
        indexes = (("user_id", "updated_at", "id"),)


class ChatTagRow(Model):
    """One tag of one chat, with the name that it was given by."""

    id = fields.BigIntField(primary_key=True)
    chat: Any = fields.ForeignKeyField("gatewayd.ChatRow", related_name="tags")
    tag = Name(max_length=255)
    name = Name(max_length=255)

    class Meta:
        table = "chat_tags"
        unique_together = (("chat", "tag"),)


class ChatMessageRow(Model):
    """One message, numbered in the order of making, whose content_key is its text folded to one case."""

    number = fields.BigIntField(primary_key=True)
    chat: Any = fields.ForeignKeyField("gatewayd.ChatRow", related_name="messages")
    id = Name(max_length=MESSAGE_ID_LENGTH)
    parent_id = Name(max_length=MESSAGE_ID_LENGTH, null=True)
    role = Name(max_length=64)
    content = Text()
    content_key = Text()
    parts = Json(null=True)
    done = fields.BooleanField(null=True)
    state = Name(max_length=16, db_index=True)
    attributes = Json()
    timestamp = Whole()

    class Meta:
        table = "chat_messages"
        unique_together = (("chat", "id"),)
        # A whole chat in order, and the children of a message.
        indexes = (("chat_id", "number"), ("chat_id", "parent_id"))


class ChatMessageItemRow(Model):
    """One value of a list of a message, in the order of adding."""

    id = fields.BigIntField(primary_key=True)
    message: Any = fields.ForeignKeyField("gatewayd.ChatMessageRow", related_name="items")
    kind = Name(max_length=32)
    value = Json()

    class Meta:
        table = "chat_message_items"
        indexes = (("message_id", "kind", "id"),)


class SharedChatRow(Model):
    """One chat as it was when it was shared."""

    id = Name(max_length=64, primary_key=True)
    chat: Any = fields.OneToOneField("gatewayd.ChatRow", related_name="shared")
    user_id = Name(max_length=64)
    document = Json()
    created_at = Whole()

    class Meta:
        table = "shared_chats"
