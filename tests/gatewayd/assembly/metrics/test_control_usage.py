"""Tests for gatewayd.assembly.metrics.control_usage."""

from types import SimpleNamespace
from typing import Any, cast

from gatewayd.assembly.metrics.control_usage import queue_depths
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.control.usage import QueueDepth
from gatewayd.ingest.queue import QueueState
from gatewayd.limits.fair_queue import QueueRules
from gatewayd.limits.queue_admission import QueueAdmission, QueueSetup


class Worker:
    """The worker of batches."""

    async def queue(self) -> tuple[int, int]:
        return 5, 1


class Files:
    """The queue of the ingest."""

    is_away = False

    async def state(self) -> QueueState:
        if self.is_away:
            raise GatewayError(ErrorKind.UNAVAILABLE, "the database cannot be reached")
        return QueueState(waiting=3, working=2, failed=9)


async def test_all_queues_are_told() -> None:
    admission = QueueAdmission(QueueSetup({"near": QueueRules(2), "far": QueueRules(4)}))
    await admission.queues["near"].enter("u")
    files = Files()
    services: Any = SimpleNamespace(
        limits=SimpleNamespace(queues=admission),
        documents=SimpleNamespace(queue=files),
        batches=SimpleNamespace(worker=Worker()),
    )
    assert await queue_depths(cast(Any, services)) == [
        QueueDepth("model far", 0, 0, 4),
        QueueDepth("model near", 1, 0, 2),
        QueueDepth("files", 2, 3),
        QueueDepth("batches", 1, 5),
    ]
    files.is_away = True
    assert await queue_depths(cast(Any, services)) == [
        QueueDepth("model far", 0, 0, 4),
        QueueDepth("model near", 1, 0, 2),
        QueueDepth("files", None, None),
        QueueDepth("batches", 1, 5),
    ]
