import asyncio
import contextvars
import threading

import pytest

from gatewayd.accounts.records import Actor
from gatewayd.plugins.interfaces import PluginHost
from gatewayd.plugins.open_webui.host_bridge import HostBridge, HostTable, blocking
from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.runtime.call_context import CallInfo, current_asker, plugin_context
from tests.fakes.plugins.host import make_scope
from tests.fakes.plugins.plugin_threads import at_home

STORES: contextvars.ContextVar[str] = contextvars.ContextVar("stores", default="closed")


class Things(HostTable):
    @blocking
    async def where(self) -> tuple[str, str]:
        """Say on which thread and in which context this runs."""
        return threading.current_thread().name, STORES.get()

    @blocking
    async def fail(self) -> None:
        """Raise."""
        raise LookupError("no such thing")


async def test_work_runs_on_the_daemons_loop_in_the_context_of_the_gate(host: PluginHost) -> None:
    STORES.set("open")
    gate = HostBridge(host, asyncio.get_running_loop())
    things = Things(gate, "open_webui.things")
    here = threading.current_thread().name

    def in_plugin() -> tuple[str, str]:
        contextvars.Context().run(STORES.set, "other")
        answer: tuple[str, str] = contextvars.Context().run(things.where)
        return answer

    assert await asyncio.to_thread(in_plugin) == (here, "open")

    async def reach() -> str:
        async def work() -> str:
            return threading.current_thread().name

        return await gate.reach(work)

    assert await at_home(reach) == here
    assert await reach() == here


async def test_work_knows_who_asks(host: PluginHost) -> None:
    gate, scope = HostBridge(host, asyncio.get_running_loop()), make_scope("ada")

    async def work() -> Actor | None:
        return current_asker.get()

    serving = plugin_context(CallInfo(PluginFamily.FUNCTION, "p", scope))
    assert await asyncio.to_thread(serving.run, gate.wait, work) is scope.actor
    starting = plugin_context(CallInfo(PluginFamily.FUNCTION, "p"))
    assert await asyncio.to_thread(starting.run, gate.wait, work) is None
    assert current_asker.get() is None


async def test_waiting_on_the_daemons_loop_is_refused(host: PluginHost) -> None:
    things = Things(HostBridge(host, asyncio.get_running_loop()), "open_webui.things")
    with pytest.raises(RuntimeError, match="cannot wait for where on the loop of the daemon"):
        things.where()


async def test_failures_reach_the_plugin(host: PluginHost) -> None:
    things = Things(HostBridge(host, asyncio.get_running_loop()), "open_webui.things")
    with pytest.raises(LookupError, match="no such thing"):
        await asyncio.to_thread(things.fail)


async def test_cancelling_a_plugin_cancels_its_work(host: PluginHost) -> None:
    gate = HostBridge(host, asyncio.get_running_loop())
    begun, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def plugin() -> None:
        task = asyncio.get_running_loop().create_task(gate.reach(work))
        await asyncio.to_thread(asyncio.run_coroutine_threadsafe(begun.wait(), gate.loop).result)
        task.cancel()
        await asyncio.wait([task])

    await at_home(plugin)
    await ended.wait()


def test_a_closed_loop_is_an_error_and_not_a_wait(host: PluginHost) -> None:
    loop = asyncio.new_event_loop()
    things = Things(HostBridge(host, loop), "open_webui.things")
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        things.where()
