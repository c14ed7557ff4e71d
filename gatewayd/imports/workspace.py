"""Functions, tools and models."""

from dataclasses import dataclass
from typing import Any, Final

from gatewayd.accounts.texts import MAX_NAME, clean, clean_object
from gatewayd.catalog.custom_models import PICTURE, check_family, check_picture
from gatewayd.catalog.records import ModelRecord
from gatewayd.errors import GatewayError, invalid
from gatewayd.imports.accounts import MAX_DESCRIPTION_CHARACTERS
from gatewayd.imports.rows import ForeignRow, plain_text, try_read
from gatewayd.plugins.records import DERIVED_FIELDS, Plugin, PluginFamily
from gatewayd.plugins.source import frontmatter
from gatewayd.plugins.source.code import check_id, guess_kind

MAX_MODEL_ID_CHARACTERS: Final = 256
ENCRYPTED: Final = "its valves are encrypted with the WEBUI_SECRET_KEY there: enter them again"


@dataclass(frozen=True, slots=True)
class ForeignPlugin:
    """A function or tool without its access list."""

    plugin: Plugin
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ForeignModel:
    """The record of a model without its access list."""

    record: ModelRecord
    changes: tuple[str, ...]


def read_plugin(row: ForeignRow, family: PluginFamily, owner_id: str, now: int) -> ForeignPlugin:
    """Return a plugin, which is not loaded; raise invalid_request for a bad id or source."""
    changes: list[str] = []
    plugin_id = check_id(row.text("id"))
    content = row.text("content")
    manifest = frontmatter.parse_frontmatter(content)
    meta = row.optional("meta", changes)
    is_function = family is PluginFamily.FUNCTION
    created_at = row.moment("created_at", now)
    specs = None if is_function else row.json("specs")
    plugin = Plugin(
        id=plugin_id,
        family=family,
        kind=guess_kind(content, family),
        user_id=owner_id,
        name=row.text("name").strip()[:MAX_NAME] or manifest.get("title") or plugin_id,
        content=content,
        description=plain_text(meta.get("description"))[:MAX_DESCRIPTION_CHARACTERS]
        or manifest.get("description", ""),
        manifest=manifest,
        meta={name: value for name, value in meta.items() if name not in DERIVED_FIELDS},
        specs=[each for each in specs if isinstance(each, dict)] if isinstance(specs, list) else [],
        valves=_valves(row, changes),
        is_active=row.flag("is_active") if is_function else True,
        is_global=row.flag("is_global"),
        updated_at=row.moment("updated_at", created_at),
        created_at=created_at,
    )
    return ForeignPlugin(plugin, tuple(changes))


def read_model(row: ForeignRow, owner_id: str, now: int) -> ForeignModel:
    """Return the record of a model; raise invalid_request without a usable id or name."""
    changes: list[str] = []
    model_id = clean(row.text("id"), "id", longest=MAX_MODEL_ID_CHARACTERS)
    base_id = row.text("base_model_id") or None
    if base_id is not None:
        clean(base_id, "base_model_id", longest=MAX_MODEL_ID_CHARACTERS)
    created_at = row.moment("created_at", now)
    record = ModelRecord(
        id=model_id,
        user_id=owner_id,
        name=clean((row.text("name") or model_id)[:MAX_NAME], "name"),
        base_model_id=base_id,
        params=clean_object(row.object("params"), "params"),
        meta=row.object("meta"),
        is_active=row.flag("is_active", default=True),
        updated_at=row.moment("updated_at", created_at),
        created_at=created_at,
    )
    meta = record.meta
    for name, check in ((PICTURE, check_picture), ("family", check_family)):
        try:
            check(record)
        except GatewayError as error:
            changes.append(error.message)
            del meta[name]
    if PICTURE in meta:
        try_read(lambda: clean_object(meta, "meta"), changes, None) or meta.pop(PICTURE)
    clean_object(meta, "meta")
    return ForeignModel(record, tuple(changes))


def _valves(row: ForeignRow, changes: list[str]) -> dict[str, Any]:
    try:
        return _object(row.json("valves"))
    except GatewayError as error:
        text = row.text("valves")
        changes.append(error.message if text.lstrip().startswith(("{", "[")) else ENCRYPTED)
        return {}


def _object(value: Any) -> dict[str, Any]:
    if value is not None and not isinstance(value, dict):
        raise invalid("cannot read valves: it is no JSON object", param="valves")
    return value or {}
