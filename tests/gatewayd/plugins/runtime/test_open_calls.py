import asyncio

from gatewayd.plugins.runtime.open_calls import OpenCalls


async def test_it_is_idle_when_the_last_call_has_ended() -> None:
    calls = OpenCalls()
    await calls.wait_idle()
    waiting = asyncio.ensure_future(calls.wait_idle())
    with calls.busy():
        calls.enter()
        waiting.cancel()
        waiting = asyncio.ensure_future(calls.wait_idle())
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not waiting.done()
    calls.leave_soon()
    await waiting


async def test_an_object_counts_as_long_as_it_is_there() -> None:
    class Owner:
        pass

    calls, owner = OpenCalls(), Owner()
    calls.keep_for(owner)
    waiting = asyncio.ensure_future(calls.wait_idle())
    await asyncio.sleep(0)
    assert not waiting.done()
    del owner
    await waiting
