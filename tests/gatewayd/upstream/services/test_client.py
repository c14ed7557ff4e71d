import pytest

from gatewayd.errors import GatewayError, Kind
from gatewayd.upstream.services.client import ServiceOptions, exchange_with, service_failures
from tests.fakes.upstream import SILENCE, FakeUpstream, Reply, json_reply


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Kind.NOT_FOUND, Kind.UPSTREAM_FAILED),
        (Kind.UNAUTHENTICATED, Kind.UPSTREAM_FAILED),
        (Kind.INVALID_REQUEST, Kind.UPSTREAM_FAILED),
        (Kind.RATE_LIMITED, Kind.RATE_LIMITED),
        (Kind.TIMEOUT, Kind.TIMEOUT),
        (Kind.UPSTREAM_UNREACHABLE, Kind.UPSTREAM_UNREACHABLE),
    ],
)
def test_a_service_is_at_fault_itself(kind: Kind, expected: Kind) -> None:
    with pytest.raises(GatewayError, match="cannot do it") as failure, service_failures():
        raise GatewayError(kind, "cannot do it")
    assert failure.value.kind is expected


def test_what_a_service_may_refuse_is_passed_on() -> None:
    with pytest.raises(GatewayError) as failure, service_failures(Kind.INVALID_REQUEST):
        raise GatewayError(Kind.INVALID_REQUEST, "cannot read it")
    assert failure.value.kind is Kind.INVALID_REQUEST


async def test_a_service_is_asked_with_its_key_below_its_address(fake: FakeUpstream) -> None:
    fake.script(json_reply({"fine": True}))
    exchange = exchange_with("a service", ServiceOptions(f"{fake.base_url}/deep/", key="secret-key"))
    assert (await exchange.post("/path", {"a": 1}))[1] == {"fine": True}
    (request,) = fake.requests
    assert request.path == "/deep/path"
    assert request.headers["Authorization"] == "Bearer secret-key"
    await exchange.close()


async def test_a_service_that_says_nothing_is_given_up(fake: FakeUpstream) -> None:
    fake.script(Reply(before=SILENCE))
    exchange = exchange_with("a service", ServiceOptions(fake.base_url, key="", timeout=0.1))
    with pytest.raises(GatewayError, match="'a service'") as failure:
        await exchange.post("/path", {})
    assert failure.value.kind is Kind.TIMEOUT
    assert "Authorization" not in fake.requests[0].headers
    await exchange.close()
