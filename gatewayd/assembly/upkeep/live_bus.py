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
from gatewayd.settings import Settings
from gatewayd.tasks import TaskRegistry

log = logging.getLogger(__name__)


async def open_bus(
    settings: Settings, limits: EventLimits, tasks: TaskRegistry, stack: AsyncExitStack
) -> tuple[Bus, TicketDesk]:
    """Return the bus and the tickets of event streams; a Redis that cannot be reached is tried again.

    Raises not_configured for an address that cannot be used, or without the library.
    """
    url = settings.redis_url.get_secret_value()
    if not url:
        return MemoryBus(), Tickets()
    client = RedisClient(url)
    stack.push_async_callback(client.close)
    bus = RedisBus(client, limits)
    try:
        await bus.attach()
    except GatewayError as error:
        log.warning("events reach only the clients of this node: %s", error.message)
    tasks.spawn("sending of events to other nodes", bus.send())
    tasks.spawn("reading of events of other nodes", bus.read())
    return bus, RedisTickets(client)
