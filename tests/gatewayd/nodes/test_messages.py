"""Tests for gatewayd.nodes.messages: requests with replies between nodes that may be silent."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.nodes import messages as module
from gatewayd.nodes.messages import NoChannel, NodeMessages
from gatewayd.nodes.records import NodeMessage
from gatewayd.tasks import TaskRegistry
from tests.fakes.storage.node_wire import Channel, Wire, meet


class Site:
    """Three nodes that know each other, with one clock."""

    def __init__(self) -> None:
        self.wire, self.now = Wire(), 100.0
        self.tasks = TaskRegistry()
        self.nodes = [
            NodeMessages(Channel(self.wire, name), self.tasks, lambda: self.now) for name in ("a", "b", "c")
        ]

    async def meet(self) -> "Site":
        self.running = [self.tasks.spawn("messages", node.run()) for node in self.nodes]
        await meet(self.nodes)
        return self


def serve(node: NodeMessages, wanted: str, value: Any) -> None:
    async def reply(body: Mapping[str, Any]) -> Any:
        return value if body["id"] == wanted else None

    node.serve("find", reply)


async def test_the_node_that_knows_replies_and_the_others_say_no() -> None:
    site = await Site().meet()
    first, second, third = site.nodes
    serve(second, "x", {"at": "b"})
    serve(third, "y", ["c"])
    assert await first.ask("find", {"id": "x"}) == {"at": "b"}
    assert await first.ask("find", {"id": "y"}) == ["c"]
    # At once: every node has said no.
    assert await first.ask("find", {"id": "z"}) is None
    assert await first.ask("find", {"id": "x"}, to="c") is None
    assert list(await first.gather("find", {"id": "x"})) == [{"at": "b"}]
    await site.tasks.close()


async def test_a_silent_node_is_waited_for_until_it_counts_as_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REPLY_SECONDS", 0.01)
    site = await Site().meet()
    first, second, third = site.nodes
    serve(second, "x", 1)
    site.wire.channels["c"].listeners.clear()
    await site.tasks.stop(site.running[2])
    assert await first.ask("find", {"id": "x"}) == 1
    with pytest.raises(GatewayError, match="it does not reply") as caught:
        await first.ask("find", {"id": "z"})
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    assert list(await first.gather("find", {"id": "x"})) == [1]
    site.now += module.DEAD_SECONDS + 1
    # It was paused itself: which nodes live shows within the next seconds.
    with pytest.raises(GatewayError, match="not known yet") as caught:
        await first.ask("find", {"id": "z"})
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    second.tell("beat", {})
    async with asyncio.timeout(5):
        while not first.peers:
            await asyncio.sleep(0)
    assert first.peers == {"b"}
    with pytest.raises(GatewayError, match="not known yet"):
        await first.ask("find", {"id": "z"})
    site.now += 2 * module.BEAT_SECONDS
    assert await first.ask("find", {"id": "z"}) is None
    assert third.is_usable
    await site.tasks.close()


async def test_a_cut_wire_and_too_much_are_refused() -> None:
    site = await Site().meet()
    first = site.nodes[0]
    with pytest.raises(GatewayError, match="over 2 MiB") as caught:
        await first.ask("find", {"id": "x" * module.MAX_MESSAGE_BYTES})
    assert caught.value.kind is ErrorKind.TOO_LARGE
    site.wire.is_cut = True
    with pytest.raises(GatewayError, match="Redis is away") as caught:
        await first.ask("find", {"id": "x"})
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    assert list(await first.gather("find", {"id": "x"})) == []
    # Nobody counts as living any longer, which does not say that nobody does.
    site.now += module.DEAD_SECONDS - 0.5
    first._forget_dead()
    site.now += 1
    assert not first.peers
    with pytest.raises(GatewayError, match="not known yet") as caught:
        await first.ask("find", {"id": "x"})
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    await site.tasks.close()


async def test_a_message_over_the_limit_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    site = await Site().meet()
    first, second, _ = site.nodes
    got: list[Mapping[str, Any]] = []
    second.on("news", lambda sender, body: got.append(body))
    first._channel.tell(NodeMessage("news", b'{"n": "%b"}' % (b"x" * module.MAX_MESSAGE_BYTES), "", "", ""))
    assert first.tell("news", {"n": 1})
    async with asyncio.timeout(5):
        while not got:
            await asyncio.sleep(0)
    assert got == [{"n": 1}]
    assert "is too large, and ignored" in caplog.text
    await site.tasks.close()


async def test_messages_of_other_versions_do_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    site = await Site().meet()
    first, second, _ = site.nodes
    got: list[tuple[str, Mapping[str, Any]]] = []
    second.on("news", lambda sender, body: got.append((sender, {"n": body["n"]})))
    serve(second, "x", 1)
    for kind, body in (("unknown", {}), ("news", {}), ("find", {}), ("reply", {}), ("news", {"n": 1})):
        assert first.tell(kind, body)
    site.nodes[0]._channel.tell(NodeMessage("news", b"{", "", "", ""))
    with caplog.at_level(logging.WARNING):
        async with asyncio.timeout(5):
            while not got:
                await asyncio.sleep(0)
    assert got == [("a", {"n": 1})]
    assert "is not understood" in caplog.text
    await site.tasks.close()


async def test_requests_over_the_limit_get_no_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REPLY_SECONDS", 0.05)
    monkeypatch.setattr(module, "MAX_SERVED", 1)
    site = await Site().meet()
    first, second, _ = site.nodes
    release = asyncio.Event()

    async def wait(_: Mapping[str, Any]) -> int:
        await release.wait()
        return 1

    second.serve("wait", wait)
    told = await asyncio.gather(*[first.ask("wait", {}, to="b") for _ in range(2)], return_exceptions=True)
    assert all(isinstance(each, GatewayError) for each in told)
    release.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert await first.ask("wait", {}, to="b") == 1
    await site.tasks.close()


async def test_work_that_does_not_end_is_given_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "REPLY_SECONDS", 0.05)
    monkeypatch.setattr(module, "SERVE_SECONDS", 0.05)
    monkeypatch.setattr(module, "MAX_SERVED", 1)
    site = await Site().meet()
    first, second, _ = site.nodes

    async def hang(_: Mapping[str, Any]) -> None:
        await asyncio.Event().wait()

    second.serve("hang", hang)
    serve(second, "x", 1)
    with pytest.raises(GatewayError):
        await first.ask("hang", {}, to="b")
    async with asyncio.timeout(5):
        while second._served:
            await asyncio.sleep(0.01)
    assert "got no reply in time" in caplog.text
    assert await first.ask("find", {"id": "x"}, to="b") == 1
    await site.tasks.close()


async def test_a_daemon_alone_asks_nobody() -> None:
    alone = NodeMessages(NoChannel(), TaskRegistry())
    assert not alone.is_shared
    assert alone.is_usable
    assert not alone.tell("news", {})
    assert not NoChannel().tell(NodeMessage("news", b"{}"))
    assert await alone.ask("find", {"id": "x"}) is None
    assert list(await alone.gather("find", {})) == []
