"""What goes wrong in any step."""

import pytest

from gatewayctl.scimcheck.common import check_error, expect, read_list, unexpected
from gatewayctl.scimcheck.records import Fault, Memory, ScimAnswer
from tests.fakes.accounts.scim_service import failed, listed, reply

PAGE = ScimAnswer(200, {"content-type": "text/html; charset=utf-8"}, b"<!doctype html>")


@pytest.mark.parametrize(
    ("answer", "detail", "advice"),
    [
        (PAGE, "a page for people", "pass /api/v1/scim/v2 on"),
        (ScimAnswer(200, {}, b" <html>"), "a page for people", "proxy"),
        (
            reply(302, location="https://login.example.org/\x1b[1m"),
            "a redirect to https://login",
            "follow none",
        ),
        (failed(401), "401 instead of 200: cannot", "fingerprint f00: compare it with gatewayctl scim-token"),
        (failed(403), "403", "proxy"),
        (failed(404), "404", "ends with /api/v1/scim/v2"),
        (
            failed(500, "cannot store externalId: SCIM_AUTH_PROVIDER is not set"),
            "500",
            "set scim_auth_provider",
        ),
        (failed(500), "500", "the daemon's log"),
        (reply(502), "502", "the proxy does not reach gatewayd"),
        (failed(409), "409 instead of 200: cannot", ""),
    ],
)
def test_answers_are_explained(answer: ScimAnswer, detail: str, advice: str, memory: Memory) -> None:
    fault = unexpected(answer, (200,), memory)
    assert fault.detail.startswith(detail)
    assert advice in fault.advice
    assert "\x1b" not in fault.detail


def test_expected_answers_are_judged(memory: Memory) -> None:
    judge = expect(200, 204, then=lambda answer, memory: "good")
    assert judge(reply(204), memory) == "good"
    assert isinstance(judge(failed(400), memory), Fault)
    assert isinstance(judge(PAGE, memory), Fault)


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (reply(404, {"detail": "Not Found"}), "no SCIM error"),
        (reply(404, ["x"]), "no SCIM error"),
        (ScimAnswer(404, {}, b"\xff"), "no SCIM error"),
        (reply(404, {**failed(404).resource, "status": 404}), "says status 404"),
        (failed(404, scim_type="noTarget"), "'noTarget' instead of 'invalidFilter'"),
    ],
)
def test_errors_that_are_none(answer: ScimAnswer, detail: str) -> None:
    fault = check_error(answer, "invalidFilter")
    assert fault is not None
    assert detail in fault.detail


def test_errors_and_lists_by_the_book() -> None:
    assert check_error(failed(404)) is None
    assert check_error(failed(400, scim_type="invalidFilter"), "invalidFilter") is None
    assert read_list(listed({"id": "1"})) == (1, [{"id": "1"}])


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {"Resources": []},
        {**listed().resource, "totalResults": "1"},
        {**listed().resource, "Resources": {}},
    ],
)
def test_lists_that_are_none(body: object) -> None:
    assert isinstance(read_list(reply(200, body)), Fault)
