"""Admission of model calls by fair queues in front of runtimes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from gatewayd.limits.fair_queue import FairQueue, QueueRules, QueueTurn
from gatewayd.metering.records import MeteredCall, TokenUsage

POSITION_HEADER: Final = "X-Gateway-Queue-Position"
TIME_HEADER: Final = "X-Gateway-Queue-Time"

Announce = Callable[[MeteredCall, int], None]
"""Is told the position of a call whenever it changes, and 0 when it has its place after a wait."""


@dataclass(frozen=True, slots=True)
class QueueSetup:
    """`rules` by the names of models and providers; `weights` by the ids of keys, users and groups."""

    rules: Mapping[str, QueueRules] = field(default_factory=dict)
    weights: Mapping[str, int] = field(default_factory=dict)


class QueueAdmission:
    """Implements `metering.interfaces.CallAdmission`: calls of a queue's model or provider wait for a place.

    The queue of a model goes before the one of its provider. Each user is a flow; so is a key with a weight.
    """

    def __init__(self, options: QueueSetup, announce: Announce | None = None) -> None:
        self._options = options
        self._announce = announce
        self._queues = {name: FairQueue(name, rules) for name, rules in options.rules.items()}

    @property
    def queues(self) -> Mapping[str, FairQueue]:
        """The queues by name."""
        return self._queues

    def configure(self, options: QueueSetup) -> None:
        """Use other options. Calls in queues that no longer exist get their places at once."""
        for name, queue in list(self._queues.items()):
            if name in options.rules:
                queue.change(options.rules[name])
            else:
                queue.open()
                del self._queues[name]
        for name, rules in options.rules.items():
            if name not in self._queues:
                self._queues[name] = FairQueue(name, rules)
        self._options = options

    def concerns(self, call: MeteredCall) -> bool:
        """Return whether the call has a queue."""
        return bool(self._queues) and self._find(call) is not None

    async def admit(self, call: MeteredCall, estimate: TokenUsage) -> None:
        """Wait for a place; raises the errors of `FairQueue.enter`."""
        await self.move(call)

    async def move(self, call: MeteredCall) -> bool:
        """Wait for a place in the queue of the source that is asked now, and leave the former one.

        Returns whether the call has a place; raises the errors of `FairQueue.enter`.
        """
        queue, former = self._find(call), call.place
        if isinstance(former, QueueTurn):
            if former.queue is queue:
                return True
            former.queue.leave(former)
            call.place = None
        if queue is None:
            return False
        flow, weight = self._flow(call)
        announce = self._announce
        tell = None if announce is None else partial(announce, call)
        call.place = turn = await queue.enter(flow, weight, tell)
        if turn.position and announce is not None:
            announce(call, 0)
        return True

    def headers(self, call: MeteredCall) -> Mapping[str, str]:
        """Return position and seconds of a call that had to wait."""
        turn = call.place
        if not isinstance(turn, QueueTurn) or not turn.position:
            return {}
        return {POSITION_HEADER: str(turn.position), TIME_HEADER: f"{turn.waited:.3f}"}

    def settled(self, call: MeteredCall) -> None:
        """Free the place."""
        turn = call.place
        if isinstance(turn, QueueTurn):
            turn.queue.leave(turn)

    def _find(self, call: MeteredCall) -> FairQueue | None:
        return self._queues.get(call.model) or self._queues.get(call.source)

    def _flow(self, call: MeteredCall) -> tuple[str, float]:
        """Return the flow of a call and its weight."""
        weights = self._options.weights
        if not weights:
            return call.user_id, 1.0
        if call.key_id in weights:
            return call.key_id, float(weights[call.key_id])
        groups = max((weights.get(group_id, 0) for group_id in call.group_ids), default=0)
        return call.user_id, float(weights.get(call.user_id) or groups or 1)
