"""Load each plugin of a folder as the gateway does, one after the other, and tell why one does not load.

Run from the top of the repository: python -m tests.load_plugins [--processes] FOLDER

The gateway has a state of its own and no network is needed; packages that plugins import have to be there.
Exits with 1 when one does not load.
"""

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from gatewayd.assembly.gateway import assemble
from gatewayd.errors import GatewayError
from gatewayd.plugins.directory import read_directory
from gatewayd.plugins.records import Plugin
from gatewayd.plugins.registry import PluginManager
from gatewayd.settings import load
from tests.fakes.storage.migrated import migrated_copy

END_SECONDS = 5.0


@dataclass
class Result:
    """How many plugins of each kind have loaded, why others have not by file, and imports of nothing."""

    loaded: Counter[str] = field(default_factory=Counter)
    failed: dict[str, str] = field(default_factory=dict)
    missing: Counter[str] = field(default_factory=Counter)


async def load_all(folder: Path, state: Path, isolation: str = "thread") -> Result:
    """Load the plugins of a folder in a gateway with its state below another one."""
    state.mkdir(parents=True, exist_ok=True)
    migrated_copy(state)
    settings = {"DATA_DIR": str(state), "PLUGINS_DIR": str(state / "none"), "PLUGIN_ISOLATION": isolation}
    async with AsyncExitStack() as stack:
        gateway = await assemble(load(None, {**settings, "ENABLE_BUILTIN_MODEL": "false"}), stack)
        found = await asyncio.to_thread(read_directory, folder)
        result = Result(failed={Path(path).name: fault for path, fault in found.faults.items()})
        for plugin in found.plugins:
            await _load(gateway.services.extensions.registry, plugin, result)
    return result


async def _load(registry: PluginManager, plugin: Plugin, result: Result) -> None:
    try:
        handle = await registry.probe(plugin)
    except GatewayError as error:
        result.failed[Path(plugin.path or plugin.id).name] = error.message
        return
    result.loaded[handle.plugin.kind.value] += 1
    result.missing.update(handle.plugin.missing)
    await handle.end(END_SECONDS)


def main(given: Sequence[str] | None = None) -> int:
    """Read the command line, load, and print counts and reasons."""
    parser = argparse.ArgumentParser("python -m tests.load_plugins", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--processes", action="store_true", help="load each in a process of its own")
    wanted = parser.parse_args(given)
    with tempfile.TemporaryDirectory(prefix="gatewayd-load-") as state:
        isolation = "process" if wanted.processes else "thread"
        result = asyncio.run(load_all(wanted.folder, Path(state), isolation))
    for name, reason in sorted(result.failed.items()):
        sys.stdout.write(f"fails    {name}: {reason}\n")
    for name, count in sorted(result.missing.items()):
        sys.stdout.write(f"missing  {name} ({count})\n")
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(result.loaded.items()))
    total = result.loaded.total()
    sys.stdout.write(f"{total} of {total + len(result.failed)} load ({kinds or 'none'})\n")
    return 1 if result.failed else 0


if __name__ == "__main__":
    sys.exit(main())
