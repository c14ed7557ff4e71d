"""What a plugin costs in a thread and in a process: `python -m tests.bench.plugins` from the root.

A registry loads the same plugins once in threads and once in processes and calls them from one event loop.
Printed are microseconds for a call, the longest pause of that loop while code of a plugin holds its
interpreter, the memory of a process and the time until it has loaded.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import uvloop

from gatewayd.plugins.isolation.loader import IsolationMode
from gatewayd.plugins.isolation.plugin import IsolatedPlugin
from gatewayd.plugins.runtime.interfaces import PluginHandle
from gatewayd.plugins.runtime.iterators import PluginIterator
from tests.fakes.plugins.isolated import Isolating
from tests.fakes.plugins.memory import make_registry, plugin_of, scope_of

MIB: Final = 1 << 20
WARM_UP: Final = 20
PIECES: Final = 200

FILTER: Final = """
    class Filter:
        def inlet(self, body):
            body["messages"].append({"role": "user", "content": "more"})
            return body
        async def outlet(self, body):
            return body
        def stream(self, event):
            delta = event["choices"][0]["delta"]
            delta["content"] = str(delta["content"]).upper()
            return event
"""
PIPE: Final = f"""
    import re
    class Pipe:
        async def pipe(self, body):
            for number in range({PIECES}):
                yield "word "
        def plain(self, body):
            return "answer"
        def a_backtracking_expression(self):
            re.match("(a+)+$", "a" * 24 + "b")
        def a_sum(self):
            sum(range(5 * 10**7))
        def a_large_slice(self):
            data = bytes(400 << 20)
            for _ in range(4):
                len(data[1:])
"""
HOLDERS: Final = ("a_backtracking_expression", "a_sum", "a_large_slice")

Call = Callable[[], Awaitable[object]]


def body(messages: int = 4) -> dict[str, Any]:
    """Return a request of some length."""
    return {"model": "m", "messages": [{"role": "user", "content": "word " * 50}] * messages}


async def microseconds(call: Call, count: int) -> float:
    """Return the median of a call."""
    taken = []
    for number in range(count + WARM_UP):
        began = time.perf_counter()
        await call()
        if number >= WARM_UP:
            taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1e6


async def longest_pause(work: Awaitable[object]) -> float:
    """Return the longest time, in milliseconds, that this loop did not turn until some work was done."""
    running = asyncio.ensure_future(work)
    longest, last = 0.0, time.perf_counter()
    while not running.done():
        await asyncio.sleep(0.001)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    await running
    return longest * 1e3


async def per_piece(pipe: PluginHandle) -> float:
    """Return the microseconds for a piece of a stream."""
    items = await pipe.call("pipe", scope_of(), {"body": body()})
    if not isinstance(items, PluginIterator):
        raise TypeError("the pipe gives a stream")
    began = time.perf_counter()
    pieces = [item async for item in items]
    return (time.perf_counter() - began) / len(pieces) * 1e6


async def measured(mode: IsolationMode, count: int, folder: Path) -> Mapping[str, float]:
    """Return the figures of a mode by their names."""
    scope = scope_of()
    async with AsyncExitStack() as stack:
        plugins = plugin_of("filter", FILTER), plugin_of("pipe", PIPE)
        isolating = Isolating(folder, mode=mode, seconds=60.0)
        plugged = await stack.enter_async_context(make_registry(*plugins, isolation=isolating))
        began = time.perf_counter()
        loaded = [await plugged.registry.loaded(one.family, one.id) for one in plugins]
        figures = {"both loaded, ms": (time.perf_counter() - began) * 1e3}
        filter_, pipe = loaded
        event = b'{"choices":[{"index":0,"delta":{"content":"word "}}]}'
        hook = filter_.repeated("stream", "event", scope)
        calls: Mapping[str, Call] = {
            "plain inlet, us": lambda: filter_.call("inlet", scope, {"body": body()}),
            "inlet of 100 messages, us": lambda: filter_.call("inlet", scope, {"body": body(100)}),
            "async outlet, us": lambda: filter_.call("outlet", scope, {"body": body()}),
            "stream hook of one event, us": lambda: hook.run([event], dict),
            "stream hook of 20 events, us": lambda: hook.run([event] * 20, dict),
            "plain pipe, us": lambda: pipe.call("plain", scope, {"body": body()}),
        }
        for name, call in calls.items():
            figures[name] = await microseconds(call, count)
        figures["piece of a stream, us"] = await per_piece(pipe)
        for name in HOLDERS:
            figures[f"pause by {name.replace('_', ' ')}, ms"] = await longest_pause(
                pipe.call(name, scope, {})
            )
        if isinstance(pipe, IsolatedPlugin) and pipe.supervisor.process is not None:
            figures["resident, MiB"] = pipe.supervisor.process.resident / MIB
            figures["private, MiB"] = private(pipe.supervisor.process.pid) / MIB
    return figures


def private(pid: int) -> int:
    """Return the bytes of memory that a process shares with nobody."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))


async def run(count: int) -> None:
    """Measure both modes and print the table."""
    with tempfile.TemporaryDirectory(prefix="gatewayd-bench-") as folder:
        found = {mode: await measured(mode, count, Path(folder)) for mode in IsolationMode}
    thread, process = found[IsolationMode.THREAD], found[IsolationMode.PROCESS]
    sys.stdout.write(f"{'':38}{'thread':>10}{'process':>10}\n")
    for name in process:
        sys.stdout.write(f"{name:38}{shown(thread.get(name)):>10}{shown(process[name]):>10}\n")


def shown(figure: float | None) -> str:
    """Return a figure for the table."""
    return "-" if figure is None else f"{figure:.1f}" if figure < 100 else f"{figure:.0f}"


def main(given: Sequence[str] | None = None) -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser("python -m tests.bench.plugins", description=__doc__)
    parser.add_argument("--calls", type=int, default=500, help="calls of each kind (500)")
    uvloop.run(run(parser.parse_args(given).calls))


if __name__ == "__main__":
    main()
