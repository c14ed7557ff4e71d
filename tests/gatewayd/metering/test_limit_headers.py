"""Tests for gatewayd.metering.limit_headers."""

from collections.abc import Mapping

from gatewayd.metering.limit_headers import add_limit_headers
from gatewayd.metering.meter import CallMeter
from gatewayd.metering.records import MeteredCall, TokenUsage
from tests.fakes.providers.models import make_actor


class Admission:
    """Admits every call, with so many requests left."""

    def __init__(self, left: int) -> None:
        self._left = left

    def concerns(self, call: MeteredCall) -> bool:
        return True

    async def admit(self, call: MeteredCall, estimate: TokenUsage) -> None:
        pass

    def headers(self, call: MeteredCall) -> Mapping[str, str]:
        parts = {"limit": 10, "remaining": self._left, "reset": 1}
        return {f"x-ratelimit-{part}-requests": str(value) for part, value in parts.items()}

    def settled(self, call: MeteredCall) -> None:
        pass


def test_of_several_limits_the_one_with_least_left_is_told() -> None:
    call = CallMeter().begin(make_actor(), "m", "chat")
    headers = {"x-request-id": "r1"}
    add_limit_headers(call, headers)
    assert headers == {"x-request-id": "r1"}
    call.admissions = (Admission(3), Admission(2), Admission(7))
    add_limit_headers(call, headers)
    assert headers["x-ratelimit-remaining-requests"] == "2"
