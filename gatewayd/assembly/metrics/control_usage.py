"""The rows of usage on the control socket, with the depths of all queues."""

from collections.abc import Sequence
from functools import partial

from gatewayd.assembly.services import GatewayServices
from gatewayd.http.control.usage import ControlUsageRoutes, QueueDepth
from gatewayd.http.routes import Route


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
    """Return the queues in front of models, those of the ingest and of batches."""
    queues = services.limits.queues.queues
    models = [
        QueueDepth(f"model {name}", queue.taken, queue.waiting, queue.rules.places)
        for name, queue in sorted(queues.items())
    ]
    files = await services.documents.queue.state()
    waiting, running = await services.batches.worker.queue()
    return [
        *models,
        QueueDepth("files", files.working, files.waiting),
        QueueDepth("batches", running, waiting),
    ]
