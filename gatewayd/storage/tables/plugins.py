"""Tables of plugins and tool servers; the rules are in `accounts`."""

from typing import Any

from tortoise import fields

from gatewayd.storage.engine.fields import IntegerColumn, JsonColumn, NameColumn, TextColumn
from gatewayd.storage.tables.row_model import RowModel


class PluginRow(RowModel):
    """One plugin. Its valves are an object, or a text when they are sealed."""

    number = fields.BigIntField(primary_key=True)
    family = NameColumn(max_length=16)
    id = NameColumn(max_length=255)
    kind = NameColumn(max_length=16)
    user_id = NameColumn(max_length=64)
    name = TextColumn()
    content = TextColumn()
    description = TextColumn()
    manifest = JsonColumn()
    meta = JsonColumn()
    specs = JsonColumn()
    valves = JsonColumn()
    is_active = fields.BooleanField()
    is_global = fields.BooleanField()
    origin = NameColumn(max_length=16)
    path = TextColumn(null=True)
    missing = JsonColumn()
    problem = JsonColumn(null=True)
    updated_at = IntegerColumn()
    created_at = IntegerColumn()

    class Meta:
        table = "plugins"
        unique_together = (("family", "id"),)


class UserValvesRow(RowModel):
    """What one user set in one plugin: an object, or a text when it is sealed."""

    id = fields.BigIntField(primary_key=True)
    user: Any = fields.ForeignKeyField("gatewayd.UserRow", related_name="valves")
    family = NameColumn(max_length=16)
    plugin_id = NameColumn(max_length=255)
    valves = JsonColumn()

    class Meta:
        table = "user_valves"
        unique_together = (("user", "family", "plugin_id"),)
        indexes = (("family", "plugin_id"),)


class ToolServerRow(RowModel):
    """One server whose operations are tools."""

    id = NameColumn(max_length=255, primary_key=True)
    name = TextColumn()
    url = TextColumn()
    type = NameColumn(max_length=16)
    description = TextColumn()
    path = TextColumn()
    key = TextColumn()
    headers = JsonColumn()
    spec = JsonColumn(null=True)
    functions = JsonColumn()
    timeout = fields.FloatField(null=True)
    is_active = fields.BooleanField()
    updated_at = IntegerColumn()
    created_at = IntegerColumn()

    class Meta:
        table = "tool_servers"
