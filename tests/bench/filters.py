"""The cost of filters: `python -m tests.bench.filters [--rounds N] [--asyncio]`.

Each line is what a filter adds to a request through the pipeline, in microseconds: the difference between a
request with it and one without, measured in alternation on one event loop. `wall` is the time that passes,
`cpu` the processor time of all threads. The least of all rounds tells about the code, the median about the
machine too. A chunk holds one event, as a slow provider sends them, or eight, as they pile up under load.
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

import uvloop

from gatewayd.completions.records import CompletionChunk
from tests.bench.measure import show
from tests.fakes.providers.function_models import FunctionWorld, ask, function, function_world
from tests.fakes.providers.models import make_actor

ADMIN = make_actor()
REQUESTS = 50
CHUNKS = 400
TOGETHER = 8

INLETS = {
    "plain inlet": """
class Filter:
    def inlet(self, body):
        body["messages"][0]["content"] += " please"
        return body
""",
    "plain inlet with __user__": """
class Filter:
    def inlet(self, body, __user__=None):
        body["messages"][0]["content"] += " please"
        return body
""",
    "plain inlet that crosses": """
import time

class Filter:
    def inlet(self, body):
        body["time"] = time.time()
        return body
""",
    "async inlet that crosses": """
import time

class Filter:
    async def inlet(self, body):
        body["time"] = time.time()
        return body
""",
    "async inlet": """
class Filter:
    async def inlet(self, body):
        body["messages"][0]["content"] += " please"
        return body
""",
}

HOOKS = {
    "hook that looks at nothing": """
class Filter:
    def stream(self, event):
        return event
""",
    "hook that counts": """
class Filter:
    def __init__(self):
        self.seen = 0

    def stream(self, event):
        self.seen += 1
        return event
""",
    "hook that reads text": """
class Filter:
    def stream(self, event):
        for choice in event.get("choices", []):
            delta = choice.get("delta", {})
            if "secret" in delta.get("content", ""):
                delta["content"] = delta["content"].replace("secret", "***")
        return event
""",
    "hook that calls re": """
import re

class Filter:
    def stream(self, event):
        for choice in event.get("choices", []):
            delta = choice.get("delta", {})
            if delta.get("content"):
                delta["content"] = re.sub(r"secret\\d+", "***", delta["content"])
        return event
""",
    "async hook": """
class Filter:
    async def stream(self, event):
        return event | {"seen": True}
""",
}


@dataclass(frozen=True)
class Cost:
    """Microseconds of one unit of work."""

    wall: float
    cpu: float


async def timed(work: Callable[[], Awaitable[object]], units: int) -> Cost:
    """Return what one unit costs."""
    wall, cpu = time.perf_counter(), time.process_time()
    await work()
    return Cost((time.perf_counter() - wall) / units * 1e6, (time.process_time() - cpu) / units * 1e6)


async def requests(world: FunctionWorld) -> None:
    """Put whole requests through the pipeline."""
    for _ in range(REQUESTS):
        await world.pipeline.run(ask(), ADMIN)


async def stream(world: FunctionWorld, together: int) -> None:
    """Read one stream of `CHUNKS` events to its bytes."""
    frame = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m",'
    frame += b'"choices":[{"index":0,"delta":{"content":" secret words"},"finish_reason":null}]}\n\n'
    world.source.script = lambda _: [CompletionChunk(raw=frame * together) for _ in range(CHUNKS // together)]
    answer = await world.pipeline.run(ask(stream=True), ADMIN)
    if answer.chunks is None:
        raise RuntimeError("a stream was asked for")
    async for chunk in answer.chunks:
        if not chunk.raw:
            raise RuntimeError("an empty chunk")


Work = Callable[[FunctionWorld], Awaitable[None]]


async def compare(plain: FunctionWorld, filtered: FunctionWorld, work: Work, units: int, rounds: int) -> str:
    """Return what the filters of a world add to a unit of work."""
    pairs = []
    for _ in range(rounds):
        before = await timed(lambda: work(plain), units)
        after = await timed(lambda: work(filtered), units)
        pairs.append((before, after))
        plain.source.asked.clear()
        filtered.source.asked.clear()
    cells = []
    for name in ("wall", "cpu"):
        least = [min(getattr(pair[side], name) for pair in pairs) for side in (0, 1)]
        middle = statistics.median(getattr(after, name) - getattr(before, name) for before, after in pairs)
        cells.append(f"{least[1] - least[0]:9.1f} {middle:9.1f}")
    return " ".join(cells)


async def measure(rounds: int) -> None:
    """Print the table."""
    show(f"{'us':42}{'wall min':>9} {'median':>9} {'cpu min':>9} {'median':>9}")
    async with AsyncExitStack() as stack:
        plain = await stack.enter_async_context(function_world())
        for name, source in INLETS.items():
            async with function_world(function("f", source)) as filtered:
                cells = await compare(plain, filtered, requests, REQUESTS, rounds)
                show(f"{name:42}{cells}")
        for name, source in HOOKS.items():
            async with function_world(function("f", source)) as filtered:
                for together in (1, TOGETHER):
                    work = _stream_of(together)
                    cells = await compare(plain, filtered, work, CHUNKS, rounds)
                    show(f"{f'{name}, {together} at a time':42}{cells}")


def _stream_of(together: int) -> Work:
    async def work(world: FunctionWorld) -> None:
        await stream(world, together)

    return work


def main(given: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        "python -m tests.bench.filters",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=30, help="alternations (30)")
    parser.add_argument("--asyncio", action="store_true", help="the event loop of the standard library")
    options = parser.parse_args(given)
    factory = asyncio.new_event_loop if options.asyncio else uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(measure(options.rounds))


if __name__ == "__main__":
    main()
