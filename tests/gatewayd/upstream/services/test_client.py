import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.upstream.services.client import ServiceOptions, make_service_client, translate_refusals
from tests.fakes.providers.upstream import SILENCE, FakeUpstream, Reply, json_reply


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (ErrorKind.NOT_FOUND, ErrorKind.UPSTREAM_FAILED),
        (ErrorKind.UNAUTHENTICATED, ErrorKind.UPSTREAM_FAILED),
        (ErrorKind.INVALID_REQUEST, ErrorKind.UPSTREAM_FAILED),
        (ErrorKind.RATE_LIMITED, ErrorKind.RATE_LIMITED),
        (ErrorKind.TIMEOUT, ErrorKind.TIMEOUT),
        (ErrorKind.UPSTREAM_UNREACHABLE, ErrorKind.UPSTREAM_UNREACHABLE),
    ],
)
def test_a_service_is_at_fault_itself(kind: ErrorKind, expected: ErrorKind) -> None:
    with pytest.raises(GatewayError, match="cannot do it") as failure, translate_refusals():
        raise GatewayError(kind, "cannot do it")
    assert failure.value.kind is expected


def test_what_a_service_may_refuse_is_passed_on() -> None:
    with pytest.raises(GatewayError) as failure, translate_refusals(ErrorKind.INVALID_REQUEST):
        raise GatewayError(ErrorKind.INVALID_REQUEST, "cannot read it")
    assert failure.value.kind is ErrorKind.INVALID_REQUEST


async def test_a_service_is_asked_with_its_key_below_its_address(fake: FakeUpstream) -> None:
    fake.script(json_reply({"fine": True}))
    exchange = make_service_client("a service", ServiceOptions(f"{fake.base_url}/deep/", key="secret-key"))
    assert (await exchange.post("/path", {"a": 1}))[1] == {"fine": True}
    (request,) = fake.requests
    assert request.path == "/deep/path"
    assert request.headers["Authorization"] == "Bearer secret-key"
    await exchange.close()


async def test_a_service_that_says_nothing_is_given_up(fake: FakeUpstream) -> None:
    fake.script(Reply(before=SILENCE))
    exchange = make_service_client("a service", ServiceOptions(fake.base_url, key="", timeout=0.1))
    with pytest.raises(GatewayError, match="'a service'") as failure:
        await exchange.post("/path", {})
    assert failure.value.kind is ErrorKind.TIMEOUT
    assert "Authorization" not in fake.requests[0].headers
    await exchange.close()
