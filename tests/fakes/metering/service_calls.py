"""A meter of services that keeps its calls."""

from collections.abc import Sequence

from gatewayd.metering.interfaces import ignore_call
from gatewayd.metering.meter import CallMeter
from gatewayd.metering.records import MeteredCall, TokenUsage
from gatewayd.metering.service_calls import ServiceCalls
from gatewayd.tasks import TaskRegistry

PRICE = 7


class EndedCalls:
    """A `CallObserver` that keeps the calls that have ended."""

    begun = ignore_call
    first = ignore_call

    def __init__(self) -> None:
        self.calls: list[MeteredCall] = []

    def finished(self, call: MeteredCall) -> None:
        self.calls.append(call)


class ServiceMeter(ServiceCalls):
    """Metered services; each user is in the group `of-` and their id."""

    def __init__(self) -> None:
        self.ended = EndedCalls()
        self.meter = CallMeter([self.ended], pricing=lambda call, usage: PRICE * usage.total)
        self.tasks = TaskRegistry()
        super().__init__(self.meter, self.groups, self.tasks)

    async def groups(self, user_id: str) -> Sequence[str]:
        return [f"of-{user_id}"]

    def usages(self) -> list[tuple[str, str, str, str, str, TokenUsage | None]]:
        """Return user, key, provider, model, endpoint and tokens of the ended calls."""
        return [
            (call.user_id, call.key_id, call.source, call.model, call.endpoint, call.usage)
            for call in self.ended.calls
        ]
