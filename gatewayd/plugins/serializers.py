"""Plugins as clients of this API family and other plugins see them (1.11, 1.12; peer-compatible keys)."""

from typing import Any

from gatewayd.catalog.access_grants import render_grant
from gatewayd.plugins.records import SWITCHES_KEY, Plugin, PluginFamily


def render_plugin(plugin: Plugin, *, has_source: bool = True) -> dict[str, Any]:
    """Return a function or a tool; lists leave the source out."""
    meta = {key: value for key, value in plugin.meta.items() if key != SWITCHES_KEY}
    shown: dict[str, Any] = {
        "id": plugin.id,
        "user_id": plugin.user_id,
        "name": plugin.name,
        **({"content": plugin.content} if has_source else {}),
        "meta": {**meta, "description": plugin.description, "manifest": dict(plugin.manifest)},
        "updated_at": plugin.updated_at,
        "created_at": plugin.created_at,
    }
    if plugin.family is PluginFamily.FUNCTION:
        state = {"type": plugin.kind.value, "is_active": plugin.is_active, "is_global": plugin.is_global}
        return {**shown, **state}
    grants = [render_grant(grant) for grant in plugin.grants]
    return {**shown, "specs": [dict(spec) for spec in plugin.specs], "access_grants": grants}
