from typing import Any

import pytest

from gatewayd.errors import GatewayError
from gatewayd.scim import values
from gatewayd.scim.filters.grammar import parse_path
from gatewayd.scim.patch import value_selection
from gatewayd.scim.patch.value_selection import compile_selector
from gatewayd.scim.records import ResourceType

WORK = {"value": "Ada@Example.org", "type": "work", "primary": True}
BARE = {"value": "x@y", "type": "", "primary": False}


def node(text: str) -> Any:
    return parse_path(f"emails[{text}]").inner


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('type eq "WORK"', True),
        ('TYPE Eq "work"', True),
        ('type eq "home"', False),
        ('type ne "home"', True),
        ('value co "EXAMPLE"', True),
        ('value sw "ada"', True),
        ('value ew ".org"', True),
        ('value ew ".com"', False),
        ('value gt "ab"', True),
        ('value ge "ada@example.org"', True),
        ('value lt "ab"', False),
        ('value le "ADA@example.org"', True),
        ("primary eq true", True),
        ('primary eq "False"', False),
        ("primary ne false", True),
        ("type pr", True),
        ("type eq null", False),
        ('type eq "work" and primary eq true', True),
        ('type eq "home" or primary eq true', True),
        ('not (type eq "home")', True),
        ('emails.type eq "work"', True),
    ],
)
def test_a_filter_selects(text: str, answer: bool) -> None:
    assert compile_selector(node(text), ResourceType.USER, "emails")(WORK) is answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('type eq ""', False),
        ('type ne "work"', True),
        ("type pr", False),
        ('type gt "a"', False),
        ("type eq null", True),
    ],
)
def test_an_empty_part_is_none(text: str, answer: bool) -> None:
    assert compile_selector(node(text), ResourceType.USER, "emails")(BARE) is answer


@pytest.mark.parametrize(
    "text", ['colour eq "red"', "primary gt true", 'primary co "t"', "primary eq 1", "type eq 5", 'id eq "x"']
)
def test_what_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(GatewayError) as caught:
        compile_selector(node(text), ResourceType.USER, "emails")
    assert caught.value.code == "invalidFilter"


def test_ids_of_members_are_compared_in_their_very_case() -> None:
    member = {"value": "Ab", "display": "Ada", "type": "User"}
    found = [
        compile_selector(node(f'value eq "{text}"'), ResourceType.GROUP, "members")(member)
        for text in ("Ab", "ab")
    ]
    assert found == [True, False]
    assert compile_selector(node('display sw "Ad"'), ResourceType.GROUP, "members")(member)


def test_a_text_of_a_filter_is_folded_once_for_all_values(monkeypatch: pytest.MonkeyPatch) -> None:
    folded: list[str] = []
    monkeypatch.setattr(value_selection, "casefold_nfc", lambda text: folded.append(text) or text.lower())
    selects = compile_selector(node('value co "É" or type eq "È"'), ResourceType.USER, "emails")
    for number in range(20):
        assert not selects({"value": f"{number}@example.org", "type": "work"})
    assert folded == ["É", "È"]


def test_a_text_of_a_value_is_folded_once_for_all_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    folded: list[str] = []
    monkeypatch.setattr(values, "casefold_nfc", lambda text: folded.append(text) or text.lower())
    wanted = " or ".join(f'value co "{number}"' for number in range(50))
    assert not compile_selector(node(wanted), ResourceType.USER, "emails")(
        {"value": "folded-once@example.org"}
    )
    assert folded == ["folded-once@example.org"]
