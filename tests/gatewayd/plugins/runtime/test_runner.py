"""One plugin's code: open calls, short questions, hooks."""

import asyncio
import contextvars
import threading

import pytest

from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.plugins.records import Plugin
from gatewayd.plugins.runtime import runner as runtime_runner
from gatewayd.plugins.runtime.event_loop_thread import PluginLoop
from gatewayd.plugins.runtime.invoke import PluginError
from gatewayd.plugins.runtime.iterators import PluginIterator
from gatewayd.plugins.runtime.runner import PluginRunner
from tests.fakes.plugins.memory import plugin_of

pytestmark = pytest.mark.timeout(30)
PLUGIN = plugin_of("p", "class Filter: pass")


class Notes:
    def __init__(self) -> None:
        self.all: list[tuple[str, str]] = []

    def __call__(self, plugin: Plugin, doing: str, sentence: str) -> None:
        self.all.append((doing, sentence))


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
async def runner(notes: Notes):
    home = PluginLoop("running", {})
    home.start()
    made = PluginRunner(PLUGIN, home, "p.py", contextvars.copy_context(), notes)
    yield made
    assert await made.stop(10)


async def test_a_runner_is_idle_when_every_call_is_over(runner: PluginRunner) -> None:
    go = threading.Event()
    call = asyncio.ensure_future(runner.run("x", go.wait, go.wait, contextvars.copy_context()))
    idle = asyncio.ensure_future(runner.calls.wait_idle())
    await asyncio.sleep(0)
    assert not runner.calls.is_idle
    go.set()
    assert await call
    await idle


async def test_items_are_a_call_until_they_have_ended(runner: PluginRunner) -> None:
    def two():
        yield 1
        yield 2

    items = await runner.run("x", two, two, contextvars.copy_context())
    assert isinstance(items, PluginIterator)
    assert await anext(items) == 1
    assert not runner.calls.is_idle
    await items.aclose()
    await runner.calls.wait_idle()


async def test_a_question_gives_errors_of_the_gateway_as_they_are(runner: PluginRunner) -> None:
    def refuse() -> None:
        raise invalid("cannot", param="a")

    with pytest.raises(GatewayError) as caught:
        await runner.ask("valves", refuse)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    with pytest.raises(PluginError, match="ZeroDivisionError"):
        await runner.ask("valves", lambda: 1 // 0)
    assert await runner.ask("valves", lambda: 3) == 3


async def test_questions_and_hooks_are_not_waited_for_for_ever(
    runner: PluginRunner, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime_runner, "HOOK_SECONDS", 0.05)
    monkeypatch.setattr(runtime_runner, "REACTION_SECONDS", 0.0)
    go = threading.Event()
    with pytest.raises(PluginError, match=r"did not answer within 0\.05 s"):
        await runner.ask("valves", go.wait)
    await runner.hook("on_startup", go.wait)
    while [what for what, _ in notes.all].count("on_startup") < 2:
        await asyncio.sleep(0.001)
    go.set()


async def test_a_failure_is_noted_with_what_was_done(runner: PluginRunner, notes: Notes) -> None:
    def fail() -> None:
        raise ValueError("bad")

    with pytest.raises(PluginError):
        await runner.run("inlet", fail, fail, contextvars.copy_context())
    await runner.hook("on_shutdown", fail)
    assert ("inlet", "filter p: ValueError: bad") in notes.all
    assert ("on_shutdown", "filter p: ValueError: bad") in notes.all


async def test_plain_questions_are_answered_while_the_home_is_blocked(runner: PluginRunner) -> None:
    entered, go = threading.Event(), threading.Event()

    async def block() -> None:
        entered.set()
        go.wait()

    waiting = asyncio.ensure_future(runner.run("pipe", block, block, contextvars.copy_context()))
    await asyncio.to_thread(entered.wait)
    assert await runner.ask("valves", lambda: 3) == 3
    with pytest.raises(PluginError, match=r"^filter p: it did not answer within 0\.01 s$"):
        await runner.ask("valves", block, 0.01)
    go.set()
    await waiting


async def test_what_makes_further_calls_is_an_open_call(runner: PluginRunner) -> None:
    class Owner:
        pass

    owner = Owner()
    runner.calls.keep_for(owner)
    assert not runner.calls.is_idle
    del owner
    await runner.calls.wait_idle()
