"""The steps that write, against a service that does one thing wrong."""

from typing import Any

import pytest

from gatewayctl.scimcheck.records import Fault, Memory, ScimAnswer
from gatewayctl.scimcheck.write_steps import WRITING
from tests.fakes.accounts.scim_service import failed, reply

STEPS = {step.name: step for step in WRITING}


@pytest.fixture
def known(memory: Memory) -> Memory:
    return {**memory, "user": "u1", "group": "g1"}


@pytest.mark.parametrize(
    ("name", "answer", "detail"),
    [
        ("create group", reply(201, {}), "has no id"),
        ("create group", reply(201, {"id": "g1"}), "without the header Location"),
        ("create group", failed(409), "409 instead of 201"),
        ("add member", failed(400), "400 instead of 200 or 204"),
        ("member added", reply(200, {"members": [{"value": "u2"}]}), "is not in it"),
        ("member added", reply(200, {}), "is not in it"),
        ("member removed", reply(200, {"members": [{"value": "u1"}]}), "is still in it"),
        ("group renamed", reply(200, {"displayName": "n"}), "called 'n'"),
        ("delete group", reply(200, {}), "200 instead of 204"),
        ("group deleted", reply(200, {}), "200 instead of 404"),
    ],
)
def test_faults(name: str, answer: ScimAnswer, detail: str, known: Memory) -> None:
    verdict: Any = STEPS[name].judge(answer, known)
    assert isinstance(verdict, Fault)
    assert detail in verdict.detail


def test_a_group_is_remembered_even_when_its_answer_is_poor(memory: Memory) -> None:
    STEPS["create group"].judge(reply(201, {"id": "g1"}), memory)
    assert memory["group"] == "g1"


def test_operations_are_those_of_providers(known: Memory) -> None:
    asked = {name: step.ask(known) for name, step in STEPS.items()}
    [add] = asked["add member"].body["Operations"]
    assert add == {"op": "Add", "path": "members", "value": [{"value": "u1"}]}
    [remove] = asked["remove member"].body["Operations"]
    assert remove == {"op": "Remove", "path": 'members[value eq "u1"]'}
    [rename] = asked["rename group"].body["Operations"]
    assert rename == {"op": "replace", "value": {"displayName": "n 2"}}
    assert asked["delete group"].path == "/Groups/g1"
