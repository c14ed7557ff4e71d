"""The steps that read, against a service that does one thing wrong."""

from typing import Any

import pytest

from gatewayctl.scimcheck.read_steps import READING
from gatewayctl.scimcheck.records import Fault, Memory, ScimAnswer
from tests.fakes.accounts.scim_service import Service, failed, listed, reply

STEPS = {step.name: step for step in READING}
PAGE = ScimAnswer(200, {"content-type": "text/html"}, b"<html>")
GOOD_CONFIG = {"patch": {"supported": True}, "filter": {"supported": True}, "bulk": {"maxOperations": 0}}


@pytest.mark.parametrize(
    ("name", "answer", "detail"),
    [
        ("reach", PAGE, "a page for people"),
        ("reach", failed(404), "404"),
        ("reach", reply(301, location="https://x"), "a redirect to https://x"),
        ("wrong token", reply(200, GOOD_CONFIG), "200 instead of 401"),
        ("wrong token", failed(401), "without the header WWW-Authenticate"),
        ("wrong token", reply(401, {"detail": "no"}, www_authenticate="Bearer"), "no SCIM error"),
        ("token", failed(401), "401 instead of 200"),
        ("ServiceProviderConfig", reply(200, {**GOOD_CONFIG, "patch": {}}), "patch is not supported"),
        ("ServiceProviderConfig", reply(200, {**GOOD_CONFIG, "bulk": {}}), "bulk.maxOperations"),
        ("ResourceTypes", listed({"endpoint": "/Users"}), "/Groups is absent"),
        ("ResourceTypes", reply(200, [{"endpoint": "/Users"}]), "no SCIM list"),
        ("Schemas", listed(), "urn:ietf:params:scim:schemas:core:2.0:User"),
        ("userName probe", listed({"id": "1"}), "1 users match what matches nobody"),
        ("userName probe", failed(404), "404 instead of 200"),
        ("externalId probe", failed(500, "cannot: SCIM_AUTH_PROVIDER is not set"), "500 instead of 200"),
        ("first users", listed({"id": "1"}), "lacks id or userName"),
        (
            "first users",
            listed(*({"id": str(n), "userName": "x"} for n in range(3))),
            "3 users on a page of 2",
        ),
        ("groups without members", listed({"id": "1", "members": []}), "members are shown"),
        ("malformed filter", listed(), "200 instead of 400"),
        ("malformed filter", failed(400, scim_type="invalidValue"), "instead of 'invalidFilter'"),
        ("unknown user", reply(404, {"detail": "Not Found"}), "no SCIM error"),
        ("unknown user", reply(200, {}), "200 instead of 404"),
    ],
)
def test_faults(name: str, answer: ScimAnswer, detail: str, memory: Memory) -> None:
    verdict: Any = STEPS[name].judge(answer, memory)
    assert isinstance(verdict, Fault)
    assert detail in verdict.detail


def test_the_provider_is_named_when_it_is_unset(memory: Memory) -> None:
    answer = failed(500, "cannot store externalId: SCIM_AUTH_PROVIDER is not set")
    verdict: Any = STEPS["externalId probe"].judge(answer, memory)
    assert verdict.advice == "set scim_auth_provider in gatewayd.toml(5) and restart gatewayd"


def test_plain_http_is_told_of(service: Service, memory: Memory) -> None:
    step = STEPS["reach"]
    answer = service.send(step.ask(memory))
    assert step.judge(answer, memory) == "the service answers"
    assert "over plain HTTP" in str(step.judge(answer, {**memory, "is_open": "yes"}))


def test_what_providers_ask_first(memory: Memory) -> None:
    asks = {name: step.ask(memory) for name, step in STEPS.items()}
    assert asks["userName probe"].query == {"filter": 'userName eq "r@example.org"'}
    assert asks["externalId probe"].query == {"filter": 'externalId eq "r"'}
    assert asks["first users"].query == {"startIndex": "1", "count": "2"}
    assert asks["groups without members"].query["excludedAttributes"] == "members"
    assert asks["reach"].token is None
    assert asks["wrong token"].token
    assert all(ask.token == "" for name, ask in asks.items() if name not in {"reach", "wrong token"})


def test_the_first_user_is_remembered(memory: Memory) -> None:
    assert STEPS["first users"].judge(listed({"id": "u", "userName": "a"}), memory) == "users: 1"
    assert memory["user"] == "u"
