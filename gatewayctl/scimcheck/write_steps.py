"""Writing steps: creation, change and removal of a temporary group, as providers push groups."""

from collections.abc import Mapping
from typing import Any, Final

from gatewayctl.scimcheck.common import expect
from gatewayctl.scimcheck.read_steps import URN
from gatewayctl.scimcheck.records import Ask, Fault, Memory, ScimAnswer, Step

PATCH_SCHEMA: Final = "urn:ietf:params:scim:api:messages:2.0:PatchOp"


def _created(answer: ScimAnswer, memory: Memory) -> str | Fault:
    group = answer.resource.get("id")
    if not isinstance(group, str) or not group:
        return Fault("the new group has no id")
    memory["group"] = group
    if "location" not in answer.headers:
        return Fault("201 without the header Location", "a proxy may remove it")
    return f"the group {memory['name']} is made"


def _has_member(answer: ScimAnswer, memory: Memory) -> str | Fault:
    members = answer.resource.get("members", [])
    ids = [each.get("value") for each in members if isinstance(each, dict)]
    return "the member is in it" if memory["user"] in ids else Fault("the member was added and is not in it")


def _is_empty(answer: ScimAnswer, memory: Memory) -> str | Fault:
    if answer.resource.get("members"):
        return Fault("the member was removed and is still in it")
    return "the member is out of it"


def _renamed(answer: ScimAnswer, memory: Memory) -> str | Fault:
    name = answer.resource.get("displayName")
    if name != f"{memory['name']} 2":
        return Fault(f"the group is called {name!r} after it was renamed")
    return "the group has its new name"


def _done(sentence: str) -> Any:
    return expect(200, 204, then=lambda answer, memory: sentence)


def _patch(memory: Memory, operation: Mapping[str, Any]) -> Ask:
    body = {"schemas": [PATCH_SCHEMA], "Operations": [dict(operation)]}
    return Ask("PATCH", f"/Groups/{memory['group']}", body=body)


def _get(memory: Memory) -> Ask:
    return Ask("GET", f"/Groups/{memory['group']}")


WRITING: Final = (
    Step(
        "create group",
        lambda memory: Ask(
            "POST", "/Groups", body={"schemas": [f"{URN}:Group"], "displayName": memory["name"]}
        ),
        expect(201, then=_created),
        ("access",),
    ),
    Step(
        "add member",
        lambda memory: _patch(memory, {"op": "Add", "path": "members", "value": [{"value": memory["user"]}]}),
        _done("the first user is added"),
        ("group", "user"),
    ),
    Step("member added", _get, expect(200, then=_has_member), ("group", "user")),
    Step(
        "remove member",
        lambda memory: _patch(memory, {"op": "Remove", "path": f'members[value eq "{memory["user"]}"]'}),
        _done("the user is removed"),
        ("group", "user"),
    ),
    Step("member removed", _get, expect(200, then=_is_empty), ("group", "user")),
    Step(
        "rename group",
        lambda memory: _patch(memory, {"op": "replace", "value": {"displayName": f"{memory['name']} 2"}}),
        _done("the group is renamed"),
        ("group",),
    ),
    Step("group renamed", _get, expect(200, then=_renamed), ("group",)),
    Step(
        "delete group",
        lambda memory: Ask("DELETE", f"/Groups/{memory['group']}"),
        expect(204, then=lambda answer, memory: "the group is deleted"),
        ("group",),
    ),
    Step(
        "group deleted",
        _get,
        expect(404, then=lambda answer, memory: "the group is gone"),
        ("group",),
    ),
)
"""A step without its needs is skipped, so that a created group is deleted even if other steps fail."""
