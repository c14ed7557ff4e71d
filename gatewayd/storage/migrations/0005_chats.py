"""Stored chats, plugins with what users set in them, and tool servers."""

from typing import Any

from tortoise import fields, migrations
from tortoise.fields.base import OnDelete
from tortoise.indexes import Index
from tortoise.migrations import operations as ops

from gatewayd.storage.engine.fields import IntegerColumn, JsonColumn, NameColumn, TextColumn


def _named_id(length: int = 64) -> tuple[str, Any]:
    return "id", NameColumn(primary_key=True, unique=True, db_index=True, max_length=length)


def _numbered(name: str = "id") -> tuple[str, Any]:
    return name, fields.BigIntField(generated=True, primary_key=True, unique=True, db_index=True)


def _reference(name: str, row: str, related_name: str, *, to_field: str = "id") -> tuple[str, Any]:
    return name, fields.ForeignKeyField(
        f"gatewayd.{row}",
        source_field=f"{name}_id",
        db_constraint=True,
        to_field=to_field,
        related_name=related_name,
        on_delete=OnDelete.CASCADE,
    )


def _text(name: str, *, null: bool = False) -> tuple[str, Any]:
    return name, TextColumn(null=null, unique=False)


def _json(name: str, *, null: bool = False) -> tuple[str, Any]:
    return name, JsonColumn(null=null, unique=False)


def _options(table: str, description: str, *, key: str = "id", **more: Any) -> dict[str, Any]:
    return {"table": table, "app": "gatewayd", **more, "pk_attr": key, "table_description": description}


class Migration(migrations.Migration):
    """Make the tables of chats, plugins and tool servers."""

    dependencies = [("gatewayd", "0004_words")]

    operations = [
        ops.CreateModel(
            name="ChatRow",
            fields=[
                _named_id(),
                _reference("user", "UserRow", "chats"),
                _text("title"),
                _text("title_key"),
                _json("head"),
                ("current_id", NameColumn(null=True, max_length=255)),
                ("archived", fields.BooleanField()),
                ("pinned", fields.BooleanField()),
                ("folder_id", NameColumn(null=True, max_length=64)),
                _json("meta"),
                ("last_read_at", IntegerColumn(null=True)),
                ("updated_at", IntegerColumn(db_index=True)),
                ("created_at", IntegerColumn()),
            ],
            options=_options(
                "chats",
                "One chat without its messages, whose title_key is the title folded to one case.",
                indexes=[Index(fields=["user_id", "updated_at", "id"])],
            ),
            bases=["Model"],
        ),
        ops.CreateModel(
            name="ChatTagRow",
            fields=[
                _numbered(),
                _reference("chat", "ChatRow", "tags"),
                ("tag", NameColumn(max_length=255)),
                ("name", NameColumn(max_length=255)),
            ],
            options=_options(
                "chat_tags",
                "One tag of one chat, with the name that it was given by.",
                unique_together=(("chat", "tag"),),
            ),
            bases=["Model"],
        ),
        ops.CreateModel(
            name="ChatMessageRow",
            fields=[
                _numbered("number"),
                _reference("chat", "ChatRow", "messages"),
                ("id", NameColumn(max_length=255)),
                ("parent_id", NameColumn(null=True, max_length=255)),
                ("role", NameColumn(max_length=64)),
                _text("content"),
                _text("content_key"),
                _json("parts", null=True),
                ("done", fields.BooleanField(null=True)),
                ("state", NameColumn(db_index=True, max_length=16)),
                _json("attributes"),
                ("timestamp", IntegerColumn()),
            ],
            options=_options(
                "chat_messages",
                "One message, numbered in the order of making, "
                "whose content_key is its text folded to one case.",
                key="number",
                unique_together=(("chat", "id"),),
                indexes=[Index(fields=["chat_id", "number"]), Index(fields=["chat_id", "parent_id"])],
            ),
            bases=["Model"],
        ),
        ops.CreateModel(
            name="ChatMessageItemRow",
            fields=[
                _numbered(),
                _reference("message", "ChatMessageRow", "items", to_field="number"),
                ("kind", NameColumn(max_length=32)),
                _json("value"),
            ],
            options=_options(
                "chat_message_items",
                "One value of a list of a message, in the order of adding.",
                indexes=[Index(fields=["message_id", "kind", "id"])],
            ),
            bases=["Model"],
        ),
        ops.CreateModel(
            name="SharedChatRow",
            fields=[
                _named_id(),
                (
                    "chat",
                    fields.OneToOneField(
                        "gatewayd.ChatRow",
                        source_field="chat_id",
                        db_constraint=True,
                        to_field="id",
                        related_name="shared",
                        on_delete=OnDelete.CASCADE,
                    ),
                ),
                ("user_id", NameColumn(max_length=64)),
                _json("document"),
                ("created_at", IntegerColumn()),
            ],
            options=_options("shared_chats", "One chat as it was when it was shared."),
            bases=["Model"],
        ),
        ops.CreateModel(
            name="PluginRow",
            fields=[
                _numbered("number"),
                ("family", NameColumn(max_length=16)),
                ("id", NameColumn(max_length=255)),
                ("kind", NameColumn(max_length=16)),
                ("user_id", NameColumn(max_length=64)),
                _text("name"),
                _text("content"),
                _text("description"),
                _json("manifest"),
                _json("meta"),
                _json("specs"),
                _json("valves"),
                ("is_active", fields.BooleanField()),
                ("is_global", fields.BooleanField()),
                ("origin", NameColumn(max_length=16)),
                _text("path", null=True),
                _json("missing"),
                _json("problem", null=True),
                ("updated_at", IntegerColumn()),
                ("created_at", IntegerColumn()),
            ],
            options=_options(
                "plugins",
                "One plugin. Its valves are an object, or a text when they are sealed.",
                key="number",
                unique_together=(("family", "id"),),
            ),
            bases=["Model"],
        ),
        ops.CreateModel(
            name="UserValvesRow",
            fields=[
                _numbered(),
                _reference("user", "UserRow", "valves"),
                ("family", NameColumn(max_length=16)),
                ("plugin_id", NameColumn(max_length=255)),
                _json("valves"),
            ],
            options=_options(
                "user_valves",
                "What one user set in one plugin: an object, or a text when it is sealed.",
                unique_together=(("user", "family", "plugin_id"),),
                indexes=[Index(fields=["family", "plugin_id"])],
            ),
            bases=["Model"],
        ),
        ops.CreateModel(
            name="ToolServerRow",
            fields=[
                _named_id(255),
                _text("name"),
                _text("url"),
                ("type", NameColumn(max_length=16)),
                _text("description"),
                _text("path"),
                _text("key"),
                _json("headers"),
                _json("spec", null=True),
                _json("functions"),
                ("timeout", fields.FloatField(null=True)),
                ("is_active", fields.BooleanField()),
                ("updated_at", IntegerColumn()),
                ("created_at", IntegerColumn()),
            ],
            options=_options("tool_servers", "One server whose operations are tools."),
            bases=["Model"],
        ),
    ]
