"""Reader of plugin files: the directory of the administrator, and the built-in functions."""

import importlib.resources
import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from gatewayd.errors import GatewayError, invalid
from gatewayd.plugins.records import Plugin, PluginFamily, PluginKind, PluginOrigin
from gatewayd.plugins.source import code as source_code
from gatewayd.plugins.source import frontmatter

log = logging.getLogger(__name__)

_CLASS: Final = re.compile(r"^class\s+(\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PluginFiles:
    """Content of a directory; `faults` maps the path of each unusable file to the reason."""

    plugins: Sequence[Plugin]
    faults: dict[str, str]


def read_directory(directory: Path) -> PluginFiles:
    """Return the plugins of the `*.py` files of a directory, sorted by name; none when it does not exist.

    The id of a plugin is its file name in lower case. A plugin is active unless its header has
    `active: false`; a filter or action applies to all models unless its header has `global: false`.
    """
    faults: dict[str, str] = {}
    plugins: list[Plugin] = []
    try:
        paths = sorted(path for path in directory.iterdir() if _is_source(path))
    except FileNotFoundError:
        return PluginFiles([], {})
    except OSError as error:
        return PluginFiles((), {str(directory): f"cannot read the directory: {error.strerror}"})
    for path in paths:
        try:
            content, changed_at = _read(path)
            plugins.append(_plugin(path.stem, content, PluginOrigin.FILE, str(path), changed_at))
        except (OSError, UnicodeDecodeError) as error:
            faults[str(path)] = f"cannot read the file: {error}"
        except GatewayError as error:
            faults[str(path)] = error.message
    return PluginFiles(_drop_duplicates(plugins, faults), faults)


def _is_source(path: Path) -> bool:
    return path.suffix == ".py" and not path.name.startswith((".", "_"))


def _read(path: Path) -> tuple[str, int]:
    """Return the source and its modification time; invalid_request when not a regular file or too large."""
    if path.exists() and not path.is_file():
        # Reading from a named pipe or a device may never end.
        raise invalid("cannot read the file: it is not a regular file")
    facts = path.stat()
    if facts.st_size > source_code.MAX_SOURCE_BYTES:
        raise invalid(f"cannot read the file: it has more than {source_code.MAX_SOURCE_BYTES} bytes")
    return path.read_text("utf-8-sig"), int(facts.st_mtime)


def read_builtin() -> Sequence[Plugin]:
    """Return the built-in functions, inactive by default."""
    folder = importlib.resources.files("gatewayd.plugins").joinpath("builtin")
    return [
        _plugin(Path(entry.name).stem, entry.read_text("utf-8"), PluginOrigin.BUILTIN, None, 0)
        for entry in _sources(folder)
    ]


def _sources(folder: Traversable) -> Iterator[Traversable]:
    if folder.is_dir():
        entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
        yield from (one for one in entries if one.name.endswith(".py") and not one.name.startswith("_"))


def _plugin(name: str, content: str, origin: PluginOrigin, path: str | None, changed_at: int) -> Plugin:
    plugin_id = source_code.check_id(name)
    manifest = frontmatter.parse_frontmatter(content)
    family, kind = _kind(content)
    is_file = origin is PluginOrigin.FILE
    for_all = is_file and kind in (PluginKind.FILTER, PluginKind.ACTION)
    return Plugin(
        id=plugin_id,
        family=family,
        kind=kind,
        user_id="",
        name=manifest.get("title") or plugin_id,
        content=content,
        description=manifest.get("description", ""),
        manifest=manifest,
        is_active=is_file and frontmatter.read_switch(manifest, "active", default=True),
        is_global=frontmatter.read_switch(manifest, "global", default=for_all),
        origin=origin,
        path=path,
        updated_at=changed_at,
        created_at=changed_at,
    )


def _kind(content: str) -> tuple[PluginFamily, PluginKind]:
    """Return family and kind, also of a source that does not compile: the plugin is listed with its fault."""
    try:
        return source_code.detect_kind(content)
    except GatewayError:
        names = set(_CLASS.findall(content))
        for family, rows in source_code.CLASSES.items():
            for name, kind in rows:
                if name in names:
                    return family, kind
        raise


def _drop_duplicates(plugins: Sequence[Plugin], faults: dict[str, str]) -> Sequence[Plugin]:
    kept: dict[tuple[PluginFamily, str], Plugin] = {}
    for plugin in plugins:
        first = kept.setdefault((plugin.family, plugin.id), plugin)
        if first is not plugin:
            faults[str(plugin.path)] = f"cannot use the id {plugin.id!r}: {first.path} has it already"
    return list(kept.values())
