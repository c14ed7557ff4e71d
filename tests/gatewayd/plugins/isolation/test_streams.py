import asyncio
import gc

import pytest

from gatewayd.plugins.isolation.host_calls import MAX_OVER_CALLS
from gatewayd.plugins.isolation.plugin import IsolatedPlugin
from gatewayd.plugins.runtime.invoke import PluginError
from tests.fakes.plugins.isolated import Isolating, isolated
from tests.fakes.plugins.memory import scope_of

COUNTING = """
    import asyncio
    class Pipe:
        ended = 0
        async def pipe(self, body):
            if body:
                self.body = body
                async for item in self.items():
                    yield item
            else:
                yield self.ended
        async def items(self):
            try:
                yield 1
                await asyncio.sleep(60)
                yield 2
            finally:
                self.ended += 1
"""


UNWRITABLE = """
    import asyncio
    class Pipe:
        ended = 0
        async def pipe(self, body):
            if not body:
                yield self.ended
                return
            try:
                yield "good"
                yield object()
                self.ended = -1
                await asyncio.sleep(60)
            finally:
                self.ended = 1
"""


async def ended(loaded: IsolatedPlugin) -> int:
    items = await loaded.call("pipe", scope_of(), {"body": {}})
    (number,) = [item async for item in items]
    return number


async def test_a_stream_that_is_closed_ends_in_the_process(isolating: Isolating) -> None:
    async with isolated(COUNTING, isolating) as (loaded, _):
        items = await loaded.call("pipe", scope_of(), {"body": {"a": 1}})
        assert await anext(items) == 1
        await items.aclose()
        with pytest.raises(StopAsyncIteration):
            await anext(items)
        while await ended(loaded) != 1:
            await asyncio.sleep(0.01)


async def test_a_stream_that_is_waited_for_is_ended_by_cancelling(isolating: Isolating) -> None:
    async with isolated(COUNTING, isolating) as (loaded, plugged):
        items = await loaded.call("pipe", scope_of(), {"body": {"a": 1}})
        assert await anext(items) == 1
        waiting = asyncio.ensure_future(anext(items))
        await asyncio.sleep(0.05)
        waiting.cancel()
        await asyncio.wait([waiting])
        while any("item of a plugin" in name for name in plugged.tasks.list().values()):
            await asyncio.sleep(0.01)
        while await ended(loaded) != 1:
            await asyncio.sleep(0.01)


async def test_a_stream_that_nobody_has_any_more_ends(isolating: Isolating) -> None:
    async with isolated(COUNTING, isolating) as (loaded, _):
        items = await loaded.call("pipe", scope_of(), {"body": {"a": 1}})
        assert await anext(items) == 1
        del items
        gc.collect()
        while await ended(loaded) != 1:
            await asyncio.sleep(0.01)


async def test_pieces_of_a_fast_stream_come_together_and_in_order(isolating: Isolating) -> None:
    content = """
        class Pipe:
            def pipe(self, body):
                for number in range(100):
                    yield str(number)
                    yield bytes([number])
    """
    async with isolated(content, isolating) as (loaded, _):
        items = await loaded.call("pipe", scope_of(), {"body": {}})
        pieces = [item async for item in items]
    assert pieces == [piece for number in range(100) for piece in (str(number), bytes([number]))]


async def test_a_piece_that_cannot_be_written_fails_after_those_before_it(isolating: Isolating) -> None:
    async with isolated(UNWRITABLE, isolating) as (loaded, _):
        items = await loaded.call("pipe", scope_of(), {"body": {"a": 1}})
        while await ended(loaded) != -1:
            await asyncio.sleep(0.01)
        assert await anext(items) == "good"
        with pytest.raises(PluginError, match="TypeError: Type is not JSON serializable: object"):
            await anext(items)
        assert await ended(loaded) == 1


async def test_the_stream_of_a_call_that_is_cancelled_after_its_answer_ends(isolating: Isolating) -> None:
    content = COUNTING.replace("            try:", "            self.ended -= 1\n            try:").replace(
        "+= 1", "+= 2"
    )
    async with isolated(content, isolating) as (loaded, _):
        served = await loaded._serve("call", "pipe", scope_of(), {"body": {"a": 1}}, {})
        while await ended(loaded) != -1:
            await asyncio.sleep(0.01)
        await served.process.tell({"do": "cancel", "call": served.call.number})
        while await ended(loaded) != 1:
            await asyncio.sleep(0.01)


async def test_the_stream_of_a_call_that_fails_ends(isolating: Isolating) -> None:
    # The stream is there already when the metadata turn out to be no JSON.
    content = """
        import asyncio, __main__
        class Pipe:
            def pipe(self, body, __metadata__):
                async def items():
                    yield 1
                __metadata__["odd"] = object() if body else None
                return items() if body else streams.is_empty
        import gc
        (service,) = [one for one in gc.get_objects() if isinstance(one, __main__.ChildService)]
        streams = service._streams
    """
    async with isolated(content, isolating) as (loaded, _):
        with pytest.raises(PluginError, match="TypeError: Type is not JSON serializable: object"):
            await loaded.call("pipe", scope_of(), {"body": {"a": 1}})
        assert await loaded.call("pipe", scope_of(), {"body": {}}) is True


async def test_a_stream_fails_when_its_process_ends(isolating: Isolating) -> None:
    content = """
        import os, threading
        class Pipe:
            def __init__(self):
                self.go = threading.Event()
            def pipe(self, body):
                if body:
                    yield self.go.set()
                yield 1
                self.go.wait()
                os._exit(4)
    """
    async with isolated(content, isolating) as (loaded, _):
        items = await loaded.call("pipe", scope_of(), {"body": {}})
        assert await anext(items) == 1
        await loaded.call("pipe", scope_of(), {"body": {"go": 1}})
        with pytest.raises(PluginError, match="its process ended with status 4"):
            await anext(items)
        await items.aclose()


async def test_a_call_is_over_when_its_stream_is(isolating: Isolating) -> None:
    content = """
        class Pipe:
            async def pipe(self, body, __tools__):
                async def items():
                    yield "first"
                    yield await __tools__["t"]["callable"]()
                return items() if body else "done"
    """

    async def tool() -> str:
        return "the tool ran"

    async with isolated(content, isolating) as (loaded, _):
        scope = scope_of(tools={"t": {"callable": tool, "spec": {"name": "t"}}})
        items = await loaded.call("pipe", scope, {"body": {"a": 1}})
        assert await anext(items) == "first"
        for _ in range(MAX_OVER_CALLS + 1):
            await loaded.call("pipe", scope_of(), {"body": {}})
        assert await anext(items) == "the tool ran"
