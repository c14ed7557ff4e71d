"""Tests for gatewayd.knowledge.grants."""

from typing import Any

import pytest

from gatewayd.catalog.records import Grant
from gatewayd.errors import GatewayError
from gatewayd.knowledge.grants import from_access_control, read_grants

PUBLIC = Grant("user", "*", "read")
BOB = Grant("user", "bob", "write")
STAFF = Grant("group", "staff", "read")


def row(kind: str = "user", name: str = "bob", permission: str = "read", **more: Any) -> dict[str, Any]:
    return {"principal_type": kind, "principal_id": name, "permission": permission, **more}


def test_the_list_form() -> None:
    assert read_grants(None) == ()
    assert read_grants([]) == ()
    assert read_grants([row(id="x", resource_id="y"), row(), row("group", "staff", "write")]) == (
        Grant("user", "bob", "read"),
        Grant("group", "staff", "write"),
    )


@pytest.mark.parametrize(
    "bad",
    [{}, "x", 3, ["x"], [{}], [row("host")], [row(permission="own")], [row(name="")], [row(name=3)],
     [row(name="x" * 65)], [row(name="a\x00")], [row()] * 1001],
)  # fmt: skip
def test_bad_lists_are_refused_by_name(bad: Any) -> None:
    with pytest.raises(GatewayError) as caught:
        read_grants(bad)
    assert "access_grants" in (caught.value.param or "")


def test_the_former_form() -> None:
    assert from_access_control(None) == (PUBLIC,)
    assert from_access_control({}) == ()
    assert from_access_control({"read": None, "write": {}}) == ()
    given = {"read": {"group_ids": ["staff"], "user_ids": []}, "write": {"user_ids": ["bob", "bob"]}}
    assert from_access_control(given) == (STAFF, BOB)


@pytest.mark.parametrize(
    "bad", ["x", [], {"read": []}, {"read": {"group_ids": "x"}}, {"write": {"user_ids": [3]}}]
)
def test_bad_former_forms_are_refused_by_name(bad: Any) -> None:
    with pytest.raises(GatewayError) as caught:
        from_access_control(bad)
    assert "access_control" in (caught.value.param or "")
