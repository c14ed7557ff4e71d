"""Runs what a plugin would: its code in threads, its coroutines on a loop that is not the daemon's."""

import ast
import asyncio
import types
from collections.abc import Awaitable, Callable
from typing import Any

from gatewayd.plugins.open_webui.import_rewriter import MissingNames, collect_missing_names, defer_imports


async def in_thread(work: Callable[..., Any], *args: Any) -> Any:
    """Run plain code of a plugin in a thread."""
    return await asyncio.to_thread(work, *args)


async def at_home(work: Callable[[], Awaitable[Any]]) -> Any:
    """Run a coroutine of a plugin on a loop of its own in another thread."""

    async def run() -> Any:
        return await work()

    return await asyncio.to_thread(asyncio.run, run())


def load(source: str, plugin_id: str = "p") -> tuple[types.ModuleType, MissingNames]:
    """Run a module of a plugin as loading does, here and now; return it with what it found missing."""
    module = types.ModuleType(plugin_id)
    code = compile(defer_imports(ast.parse(source)), f"{plugin_id}.py", "exec")
    with collect_missing_names(plugin_id) as noted:
        exec(code, module.__dict__)
    return module, noted


async def load_at_home(source: str, plugin_id: str = "p") -> tuple[types.ModuleType, MissingNames]:
    """Run a module of a plugin in a thread, as loading does."""
    return await asyncio.to_thread(load, source, plugin_id)
