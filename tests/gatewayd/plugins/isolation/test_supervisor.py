import asyncio
from pathlib import Path

import pytest

from gatewayd.plugins.isolation.plugin import IsolatedPlugin
from gatewayd.plugins.runtime.invoke import PluginError
from tests.fakes.plugins.isolated import Isolating, isolated
from tests.fakes.plugins.memory import scope_of

PIPE = "class Pipe: ..."


async def test_a_plugin_that_does_not_load_says_why(isolating: Isolating) -> None:
    with pytest.raises(PluginError, match=r"ZeroDivisionError.*line 3"):
        async with isolated("x = 1\n\n1 / 0\nclass Pipe: ...", isolating):
            raise AssertionError


async def test_the_process_is_started_again_with_the_next_call(isolating: Isolating) -> None:
    content = """
        import os
        class Pipe:
            async def on_startup(self):
                self.started = True
            def pipe(self, body):
                if body:
                    os._exit(3)
                return [os.getpid(), getattr(self, "started", False)]
    """
    async with isolated(content, isolating) as (loaded, plugged):
        first, _ = await loaded.call("pipe", scope_of(), {"body": {}})
        with pytest.raises(PluginError, match="its process ended with status 3; the next call starts it"):
            await loaded.call("pipe", scope_of(), {"body": {"die": True}})
        assert not loaded.supervisor.is_alive
        problem = plugged.registry.list()[0].problem
        assert problem is not None
        assert "ended with status 3" in problem.sentence
        second = [first, False]
        while not second[1]:
            second = await loaded.call("pipe", scope_of(), {"body": {}})
        assert second[0] != first
        with pytest.raises(PluginError, match="status 3"):
            await loaded.call("pipe", scope_of(), {"body": {"die": True}})
        with pytest.raises(PluginError, match="its process ended 2 times; it is started again in 1 s"):
            await loaded.call("pipe", scope_of(), {"body": {}})


async def test_nothing_is_left_when_it_ends(isolating: Isolating) -> None:
    content = """
        import os, subprocess, time
        class Pipe:
            def pipe(self, body):
                return [os.getpid(), subprocess.Popen(["sleep", "60"]).pid]
    """
    async with isolated(content, isolating) as (loaded, _):
        pids = await loaded.call("pipe", scope_of(), {"body": {}})
        assert all(Path(f"/proc/{pid}").exists() for pid in pids)
    while any(_runs(pid) for pid in pids):
        await asyncio.sleep(0.01)


async def test_a_plugin_that_ends_while_it_starts_leaves_no_process(isolating: Isolating) -> None:
    content = """
        import time
        class Pipe:
            def __init__(self):
                time.sleep(1)
            def pipe(self, body):
                return "here"
    """
    async with isolated(content, isolating) as (loaded, _):
        again = IsolatedPlugin(loaded.plugin, loaded._parts, lambda *_: None)
        starting = asyncio.ensure_future(again.start())
        while not again.supervisor.has_place:
            await asyncio.sleep(0)
        await again.end(1.0)
        with pytest.raises(PluginError, match="it was ended"):
            await starting
        assert not again.supervisor.has_place


async def test_problems_without_end_are_kept_a_few_at_a_time(isolating: Isolating) -> None:
    async with isolated(PIPE, isolating) as (loaded, _):
        kept: list[str] = []
        noting = IsolatedPlugin(loaded.plugin, loaded._parts, lambda _, doing, text: kept.append(text))
        for number in range(1000):
            noting.supervisor.note("doing", str(number))
        assert 10 <= len(kept) < 100


def _runs(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
