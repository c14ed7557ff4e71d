"""The tables of plugins and tool servers; what `rows` says of its rows holds for these."""

from typing import Any

from tortoise import fields
from tortoise.models import Model

from gatewayd.storage.engine.fields import Json, Name, Text, Whole


class PluginRow(Model):
    """One plugin. Its valves are an object, or a text when they are sealed."""

    number = fields.BigIntField(primary_key=True)
    family = Name(max_length=16)
    id = Name(max_length=255)
    kind = Name(max_length=16)
    user_id = Name(max_length=64)
    name = Text()
    content = Text()
    description = Text()
    manifest = Json()
    meta = Json()
    specs = Json()
    valves = Json()
    is_active = fields.BooleanField()
    is_global = fields.BooleanField()
    origin = Name(max_length=16)
    path = Text(null=True)
    missing = Json()
    problem = Json(null=True)
    updated_at = Whole()
    created_at = Whole()

    class Meta:
        table = "plugins"
        unique_together = (("family", "id"),)


class UserValvesRow(Model):
    """What one user set in one plugin: an object, or a text when it is sealed."""

    id = fields.BigIntField(primary_key=True)
    user: Any = fields.ForeignKeyField("gatewayd.UserRow", related_name="valves")
    family = Name(max_length=16)
    plugin_id = Name(max_length=255)
    valves = Json()

    class Meta:
        table = "user_valves"
        unique_together = (("user", "family", "plugin_id"),)
        indexes = (("family", "plugin_id"),)


class ToolServerRow(Model):
    """One server whose operations are tools."""

    id = Name(max_length=255, primary_key=True)
    name = Text()
    url = Text()
    type = Name(max_length=16)
    description = Text()
    path = Text()
    key = Text()
    headers = Json()
    spec = Json(null=True)
    functions = Json()
    timeout = fields.FloatField(null=True)
    is_active = fields.BooleanField()
    updated_at = Whole()
    created_at = Whole()

    class Meta:
        table = "tool_servers"
