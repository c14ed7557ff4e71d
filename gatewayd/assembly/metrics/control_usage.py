"""The rows of usage on the control socket, with the depths of all queues."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from gatewayd.assembly.services import GatewayServices
from gatewayd.deadlines import TimeLimit
from gatewayd.errors import GatewayError
from gatewayd.http.control.usage import ControlUsageRoutes, QueueDepth
from gatewayd.http.routes import Route

log = logging.getLogger(__name__)

ANSWER_SECONDS: Final = 2.0
"""Maximum wait for the figures of a queue in the database."""


def control_usage_rows(services: GatewayServices) -> Sequence[Route]:
    """Return the rows of the control socket."""
    metering, accounts = services.metering, services.accounts
    return ControlUsageRoutes(
        metering.usage,
        metering.meter,
        metering.load,
        accounts.users,
        accounts.groups,
        partial(queue_depths, services),
    ).routes()


async def queue_depths(services: GatewayServices) -> Sequence[QueueDepth]:
    """Return the queues in front of models, and those of the ingest and of batches in the database."""
    queues = services.limits.queues.queues
    models = [
        QueueDepth(f"model {name}", queue.taken, queue.waiting, queue.rules.places)
        for name, queue in sorted(queues.items())
    ]
    return [
        *models,
        await _stored_depth("files", partial(_files, services)),
        await _stored_depth("batches", partial(_batches, services)),
    ]


async def _stored_depth(name: str, ask: Callable[[], Awaitable[QueueDepth]]) -> QueueDepth:
    """Return a queue of the database; its figures are None if the database does not answer in time."""
    try:
        async with TimeLimit(ANSWER_SECONDS):
            return await ask()
    except (GatewayError, TimeoutError) as error:
        log.info("queue %s not counted: %s", name, str(error) or "the database did not answer in time")
        return QueueDepth(name, None, None)


async def _files(services: GatewayServices) -> QueueDepth:
    state = await services.documents.queue.state()
    return QueueDepth("files", state.working, state.waiting)


async def _batches(services: GatewayServices) -> QueueDepth:
    waiting, running = await services.batches.worker.queue()
    return QueueDepth("batches", running, waiting)
