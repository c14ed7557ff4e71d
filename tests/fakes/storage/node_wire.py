"""A wire between nodes within one process, which carries their messages and can be cut."""

import asyncio
from collections.abc import Sequence

from gatewayd.nodes.interfaces import MessageListener
from gatewayd.nodes.messages import NodeMessages
from gatewayd.nodes.records import NodeMessage


class Wire:
    """The channels of some nodes; it can be cut."""

    def __init__(self) -> None:
        self.channels: dict[str, Channel] = {}
        self.is_cut = False


class Channel:
    """The end of a wire at one node."""

    is_shared = True

    def __init__(self, wire: Wire, node_id: str) -> None:
        self.wire, self.node_id = wire, node_id
        self.listeners: list[MessageListener] = []
        wire.channels[node_id] = self

    @property
    def is_usable(self) -> bool:
        return not self.wire.is_cut

    def tell(self, message: NodeMessage) -> bool:
        if self.wire.is_cut:
            return False
        sent = NodeMessage(message.kind, message.body, message.key, message.to, self.node_id)
        for channel in self.wire.channels.values():
            if channel is not self and message.to in ("", channel.node_id):
                for listener in channel.listeners:
                    asyncio.get_running_loop().call_soon(listener, sent)
        return True

    def hear(self, listener: MessageListener) -> None:
        self.listeners.append(listener)


async def meet(nodes: Sequence[NodeMessages]) -> None:
    """Wait until all nodes know each other, as they do a while after the start."""
    async with asyncio.timeout(5):
        while any(len(node.peers) < len(nodes) - 1 for node in nodes):
            await asyncio.sleep(0)
    for node in nodes:
        node._blind_until = 0.0
