"""Values that another thread gives to a loop."""

import asyncio
import threading

from gatewayd.plugins.runtime.thread_futures import CrossThreadReply


async def test_a_value_from_another_thread_arrives() -> None:
    reply: CrossThreadReply[int] = CrossThreadReply()
    threading.Thread(target=reply.give, args=(3,)).start()
    assert await reply.future == 3


async def test_a_value_that_nobody_waits_for_is_dropped() -> None:
    reply: CrossThreadReply[int] = CrossThreadReply()
    reply.future.cancel()
    reply.give(3)
    await asyncio.sleep(0)
    assert reply.future.cancelled()


def test_a_value_for_a_closed_loop_is_dropped() -> None:
    async def make() -> CrossThreadReply[int]:
        return CrossThreadReply()

    reply = asyncio.run(make())
    reply.give(3)
    assert not reply.future.done()
