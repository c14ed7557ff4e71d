"""Looks at one plugin without a gateway: `python -m gatewayd.plugins.check FILE` prints what it is as JSON.

It runs in a process of its own, because the plugin's module and constructor run.
"""

import argparse
import ast
import asyncio
import contextlib
import inspect
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

from gatewayd.errors import GatewayError
from gatewayd.plugins import frontmatter, source
from gatewayd.plugins.arguments import Surroundings
from gatewayd.plugins.interfaces import Host
from gatewayd.plugins.loaded import Loaded
from gatewayd.plugins.loading import Loader, Loading
from gatewayd.plugins.names.finder import install
from gatewayd.plugins.records import Family, Origin, Plugin
from gatewayd.plugins.requirements import Installation, Requirements

FAILED: Final = 1
SERVICES: Final = ("users", "chats", "files", "models", "completions", "plugins", "knowledge", "settings")
END: Final = 1.0
_SENDERS: Final = ("emit", "event")


class Absent:
    """Stands for everything that a plugin could ask of a gateway; there is none."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"there is no gateway to ask for {name!r}: the plugin is only checked")


async def check(path: Path, timeout: float = 60.0) -> dict[str, Any]:  # noqa: ASYNC109 - the loader's bound
    """Return what a plugin is; raises GatewayError with the sentence to show when it does not load.

    `{"id", "family", "kind", "name", "manifest", "requirements", "methods": {name: {"parameters": [...],
    "async": bool}}, "specs", "missing", "events", "valves", "user_valves"}`; valves are JSON schemas or null.
    """
    plugin = read(path)
    loop = asyncio.get_running_loop()
    absent = cast("Any", Absent())
    services = dict.fromkeys(SERVICES, absent)
    host = Host(**services, data_dir=Path("/nonexistent"), secret_key="")
    names = install(host, loop)
    try:
        around = Surroundings(loop, absent, absent)
        requirements = Requirements(Installation(Path("/nonexistent")))
        loaded = await Loader(around, Loading(requirements, timeout)).load(plugin, lambda *_: None)
        try:
            return await _describe(loaded)
        finally:
            await loaded.end(END)
    finally:
        names.close()


def read(path: Path) -> Plugin:
    """Return the plugin of a file; raises GatewayError for what is none."""
    try:
        content = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise source.unreadable(error) from error
    source.refuse_pipelines(source.prepare(content, path.name).classes)
    family, kind = source.kind_by_text(content)
    manifest = frontmatter.read(content)
    plugin_id = source.check_id(path.stem)
    name = manifest.get("title") or plugin_id
    plugin = Plugin(plugin_id, family, kind, "", name, content, manifest=manifest)
    return replace(plugin, origin=Origin.FILE, path=str(path.absolute()))


def event_types(content: str) -> list[str]:
    """Return the event types that stand in a source as texts, in the order in which they are found first."""
    return list(dict.fromkeys(_literals(source.parse(content))))


def main(argv: Sequence[str] | None = None) -> int:
    """Check one file; what it prints itself goes to standard error."""
    parser = argparse.ArgumentParser(prog="gatewayd.plugins.check", description="Check one plugin.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds that it may take to load")
    given = parser.parse_args(argv)
    status = 0
    with contextlib.redirect_stdout(sys.stderr):
        try:
            report = asyncio.run(check(given.file, given.timeout))
        except GatewayError as error:
            report, status = {"error": error.message}, FAILED
    sys.stdout.write(json.dumps(report, ensure_ascii=False, default=str, indent=2) + "\n")
    sys.stdout.flush()
    return status


async def _describe(loaded: Loaded) -> dict[str, Any]:
    plugin = loaded.plugin
    return {
        "id": plugin.id,
        "family": plugin.family.value,
        "kind": plugin.kind.value,
        "name": plugin.name,
        "manifest": plugin.manifest,
        "requirements": list(frontmatter.requirements(plugin.manifest)),
        "methods": {name: _method(loaded, name) for name in loaded.methods()},
        "specs": plugin.specs if plugin.family is Family.TOOL else [],
        "missing": list(plugin.missing),
        "events": event_types(plugin.content),
        "valves": await loaded.valves_schema(),
        "user_valves": await loaded.user_valves_schema(),
    }


def _method(loaded: Loaded, name: str) -> dict[str, Any]:
    function = loaded.value(name)
    is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    return {"parameters": sorted(loaded.parameters(name).names), "async": is_async}


def _literals(tree: ast.Module) -> Iterator[str]:
    """Yield the `type` of each dict that has `data` too, or is given to something that sends events."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            fields = _texts(node)
            if "type" in fields and "data" in fields and fields["type"] is not None:
                yield fields["type"]
        elif isinstance(node, ast.Call) and any(word in ast.unparse(node.func) for word in _SENDERS):
            for given in node.args:
                shown = _texts(given).get("type") if isinstance(given, ast.Dict) else None
                if shown is not None:
                    yield shown


def _texts(node: ast.Dict) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
            found[key.value] = cast("ast.Constant", value).value if is_text else None  # type: ignore[assignment]
    return found


if __name__ == "__main__":
    sys.exit(main())
