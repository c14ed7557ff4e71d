"""The bus of events and the tickets of their streams: in memory, or over Redis between nodes."""

import logging
from contextlib import AsyncExitStack

from gatewayd.bus.memory import MemoryBus
from gatewayd.bus.redis import RedisBus
from gatewayd.bus.redis_client import RedisClient
from gatewayd.bus.redis_tickets import RedisTickets
from gatewayd.errors import GatewayError
from gatewayd.events.interfaces import Bus, TicketDesk
from gatewayd.events.rooms import EventLimits
from gatewayd.events.tickets import Tickets
from gatewayd.nodes.messages import NodeMessages
from gatewayd.settings import Settings
from gatewayd.tasks import TaskRegistry

log = logging.getLogger(__name__)


async def open_bus(
    settings: Settings, limits: EventLimits, tasks: TaskRegistry, stack: AsyncExitStack
) -> tuple[Bus, TicketDesk, NodeMessages]:
    """Return the bus and the tickets of event streams, and the messages between nodes.

    A Redis that cannot be reached is tried again. Raises not_configured for an address that cannot be used,
    or without the library.
    """
    url = settings.redis_url.get_secret_value()
    if not url:
        bus = MemoryBus()
        return bus, Tickets(), NodeMessages(bus, tasks)
    client = RedisClient(url)
    stack.push_async_callback(client.close)
    shared = RedisBus(client, limits)
    try:
        await shared.attach()
    except GatewayError as error:
        log.warning("events reach only the clients of this node: %s", error.message)
    tasks.spawn("sending of events to other nodes", shared.send())
    tasks.spawn("reading of events of other nodes", shared.read())
    messages = NodeMessages(shared, tasks)
    tasks.spawn("messages between nodes", messages.run())
    return shared, RedisTickets(client), messages
