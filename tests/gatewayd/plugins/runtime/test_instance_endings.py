"""Calling plugins: generators, and how calls end, stopped or by a failure."""

import asyncio

import pytest

from gatewayd.errors import ErrorKind
from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.runtime.invoke import PluginError
from gatewayd.plugins.runtime.iterators import PluginIterator
from tests.fakes.plugins.loaded import result_of, running
from tests.fakes.plugins.memory import scope_of

pytestmark = pytest.mark.timeout(30)


# Generators -----------------------------------------------------------------------------------------------


ASYNC_GENERATOR = """
    import asyncio
    class Pipe:
        ended = False
        async def pipe(self, body):
            task = asyncio.current_task()
            try:
                for part in "abc":
                    assert asyncio.current_task() is task
                    yield part
            finally:
                await asyncio.sleep(0)
                type(self).ended = True
"""
PLAIN_GENERATOR = """
    import threading
    class Pipe:
        ended = False
        def pipe(self, body):
            thread = threading.get_ident()
            try:
                for part in "abc":
                    assert threading.get_ident() == thread
                    yield part
            finally:
                type(self).ended = True
"""


@pytest.mark.parametrize("content", [ASYNC_GENERATOR, PLAIN_GENERATOR])
async def test_a_generator_is_read_item_by_item(content: str) -> None:
    async with running(content) as (loaded, _):
        items = await loaded.call("pipe", scope_of(), {"body": {}})
        assert isinstance(items, PluginIterator)
        assert [item async for item in items] == ["a", "b", "c"]
        assert loaded.value("ended")
        with pytest.raises(StopAsyncIteration):
            await anext(items)


@pytest.mark.parametrize("content", [ASYNC_GENERATOR, PLAIN_GENERATOR])
async def test_a_generator_that_is_closed_early_runs_its_finally(content: str) -> None:
    async with running(content) as (loaded, _):
        items = await loaded.call("pipe", scope_of(), {"body": {}})
        assert await anext(items) == "a"
        await items.aclose()
        assert loaded.value("ended")


@pytest.mark.parametrize(
    "body",
    [
        "def pipe(self, body): return iter(['a', 'b'])",
        "def pipe(self, body): return (x for x in 'ab')",
        "async def pipe(self, body): return (x for x in 'ab')",
        "async def pipe(self, body): return map(str, 'ab')",
        "def pipe(self, body): return self.parts()",
        "async def pipe(self, body): return self.parts()",
    ],
)
async def test_iterators_that_are_returned_are_read_too(body: str) -> None:
    content = f"class Pipe:\n    {body}\n    async def parts(self):\n        yield 'a'\n        yield 'b'\n"
    async with running(content) as (loaded, _):
        items = await loaded.call("pipe", scope_of(), {"body": {}})
        assert [item async for item in items] == ["a", "b"]


@pytest.mark.parametrize("start", ["async def", "def"])
async def test_an_error_between_two_items_is_a_failure(start: str) -> None:
    content = (
        f"class Pipe:\n    {start} pipe(self, body):\n        yield 'a'\n        raise ValueError('half')\n"
    )
    async with running(content) as (loaded, _):
        items = await loaded.call("pipe", scope_of(), {"body": {}})
        assert await anext(items) == "a"
        with pytest.raises(PluginError, match="pipe p: ValueError: half"):
            await anext(items)


async def test_an_asynchronous_iterable_of_a_result_is_read_at_home() -> None:
    content = """
        class Body:
            async def __aiter__(self):
                yield b"a"
                yield b"b"
        class Pipe:
            def pipe(self, body):
                return {"body": Body()}
    """
    async with running(content) as (loaded, _):
        result = await loaded.call("pipe", scope_of(), {"body": {}})
        assert [item async for item in loaded.items(result["body"])] == [b"a", b"b"]


# Stopping -------------------------------------------------------------------------------------------------


async def test_stopping_reaches_asynchronous_code() -> None:
    content = """
        import asyncio, threading
        class Pipe:
            entered = threading.Event()
            ended = threading.Event()
            async def pipe(self, body):
                self.entered.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    self.ended.set()
    """
    async with running(content) as (loaded, _):
        call = asyncio.ensure_future(loaded.call("pipe", scope_of(), {"body": {}}))
        await asyncio.to_thread(loaded.value("entered").wait)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await asyncio.to_thread(loaded.value("ended").wait, 10)


async def test_stopping_between_items_reaches_the_generator() -> None:
    content = """
        import asyncio, threading
        class Pipe:
            entered = threading.Event()
            ended = threading.Event()
            async def pipe(self, body):
                try:
                    yield "a"
                    self.entered.set()
                    await asyncio.Event().wait()
                finally:
                    self.ended.set()
    """
    async with running(content) as (loaded, _):
        items = await loaded.call("pipe", scope_of(), {"body": {}})
        await anext(items)
        waiting = asyncio.ensure_future(anext(items))
        await asyncio.to_thread(loaded.value("entered").wait)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await asyncio.to_thread(loaded.value("ended").wait, 10)


async def test_plain_code_that_was_stopped_is_counted_until_it_ends() -> None:
    content = """
        import threading
        class Tools:
            entered = threading.Event()
            let_go = threading.Event()
            def run(self):
                self.entered.set()
                self.let_go.wait()
    """
    async with running(content) as (loaded, plugged):
        call = asyncio.ensure_future(loaded.call("run", scope_of(), {}))
        await asyncio.to_thread(loaded.value("entered").wait)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert loaded.left_behind == 1
        while (found := plugged.registry.find(PluginFamily.TOOL, "p")) is None or found.problem is None:
            await asyncio.sleep(0.001)
        assert found.problem.sentence == "1 call still runs after it was stopped"
        loaded.value("let_go").set()
        while loaded.left_behind:
            await asyncio.sleep(0.001)


async def test_code_that_cancels_itself_does_not_cancel_the_caller() -> None:
    content = """
        import asyncio
        class Filter:
            async def inlet(self, body):
                raise asyncio.CancelledError
            async def outlet(self, body):
                asyncio.current_task().cancel()
                await asyncio.sleep(0)
    """
    async with running(content) as (loaded, _):
        with pytest.raises(PluginError, match="CancelledError"):
            await loaded.call("inlet", scope_of(), {"body": {}})
        with pytest.raises(PluginError, match="stopped"):
            await loaded.call("outlet", scope_of(), {"body": {}})


# Failures -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", ["async def", "def"])
@pytest.mark.parametrize(
    ("raised", "shown"),
    [
        ("ValueError('bad')", "ValueError: bad"),
        ("SystemExit(3)", "SystemExit: 3"),
        ("KeyboardInterrupt()", "KeyboardInterrupt"),
        ("GeneratorExit()", "GeneratorExit"),
        ("BaseException('base')", "BaseException: base"),
        ("StopIteration('x')", "(StopIteration|RuntimeError)"),
    ],
)
async def test_whatever_is_raised_is_a_failure_of_the_plugin(start: str, raised: str, shown: str) -> None:
    inlet = f"{start} inlet(self, body):\n        raise {raised}"
    content = f"class Filter:\n    {inlet}\n    async def ok(self): return 1"
    async with running(content) as (loaded, _):
        with pytest.raises(PluginError, match=f"^filter p: {shown}") as caught:
            await loaded.call("inlet", scope_of(), {"body": {}})
        assert caught.value.kind is ErrorKind.PLUGIN_FAILED
        assert caught.value.plugin_id == "p"
        assert await loaded.call("ok", scope_of(), {}) == 1


async def test_a_task_that_ends_the_program_ends_nothing() -> None:
    content = """
        import asyncio, sys
        class Pipe:
            async def pipe(self, body):
                async def leave():
                    sys.exit(1)
                self.task = asyncio.create_task(leave())
                await asyncio.sleep(0.01)
                return "still here"
    """
    assert await result_of(content, "pipe", {"body": {}}) == "still here"


async def test_a_failure_tells_text_line_and_status() -> None:
    content = """
        class HTTPException(Exception):
            def __init__(self, status_code, detail):
                self.status_code = status_code
                self.detail = detail
        class Filter:
            def inlet(self, body):
                raise HTTPException(429, "too many")
    """
    async with running(content) as (loaded, plugged):
        with pytest.raises(PluginError) as caught:
            await loaded.call("inlet", scope_of(), {"body": {}})
        failure = caught.value
        assert (failure.text, failure.status, failure.line) == ("too many", 429, 7)
        found = plugged.registry.find(PluginFamily.FUNCTION, "p")
        assert found is not None
        assert found.problem is not None
        assert found.problem.doing == "inlet"
        assert "too many" in found.problem.sentence


async def test_an_exception_whose_text_fails_is_a_failure_too() -> None:
    content = """
        class Odd(Exception):
            def __str__(self):
                raise ValueError
        class Filter:
            def inlet(self, body):
                raise Odd
    """
    with pytest.raises(PluginError, match=r"^filter p: Odd$"):
        await result_of(content, "inlet", {"body": {}})
