import pytest

from gatewayd.scim.filters.conditions import (
    AllCondition,
    CompareCondition,
    ElementCondition,
    Operator,
    PresentCondition,
)


def test_the_operators_stand_in_the_order_of_the_specification() -> None:
    assert [operator.value for operator in Operator] == ["eq", "ne", "co", "sw", "ew", "gt", "ge", "lt", "le"]


def test_conditions_are_values() -> None:
    one, other = (
        ElementCondition(
            "emails",
            AllCondition(
                (CompareCondition("emails.type", Operator.EQ, "work"), PresentCondition("emails.value"))
            ),
        )
        for _ in range(2)
    )

    assert one == other
    assert {one: 1}[other] == 1
    with pytest.raises(AttributeError):
        one.attribute = "groups"  # type: ignore[misc]
