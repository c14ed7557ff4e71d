from typing import Any

import pytest

from gatewayd.accounts.records import Email
from gatewayd.errors import GatewayError
from gatewayd.scim import values
from gatewayd.scim.input_records import PatchOperation, PatchVerb
from gatewayd.scim.patch import emails as patch_emails
from gatewayd.scim.patch.emails import Emails, patched_emails
from gatewayd.scim.patch.steps import parse_steps
from gatewayd.scim.records import ResourceType

WORK = Email("ada@work.org", "work", primary=True)
HOME = Email("ada@home.org", "home")
OTHER = Email("ada@other.org", "other")
BOTH = (WORK, HOME)
NEW = "new@x.org"


def patched(emails: Emails, verb: str, path: str, value: Any = None) -> Emails:
    for step in parse_steps([PatchOperation(PatchVerb(verb), path, value, True)], ResourceType.USER):
        emails = patched_emails(emails, step)
    return emails


def refusal(emails: Emails, verb: str, path: str, value: Any = None) -> str | None:
    with pytest.raises(GatewayError) as caught:
        patched(emails, verb, path, value)
    assert caught.value.message.startswith("cannot ")
    return caught.value.code


def unmarked(email: Email) -> Email:
    return Email(email.value, email.type)


def marked(email: Email) -> Email:
    return Email(email.value, email.type, primary=True)


# The whole attribute --------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [[{"value": NEW, "type": "home"}], {"value": NEW, "type": "home"}])
def test_addresses_are_added(value: Any) -> None:
    assert patched((WORK,), "add", "emails", value) == (WORK, Email(NEW, "home"))


def test_the_first_one_added_is_primary() -> None:
    assert patched((), "add", "emails", [NEW, HOME.value]) == (Email(NEW, primary=True), Email(HOME.value))
    first = {"value": NEW, "primary": False}
    assert patched((), "add", "emails", [first, HOME.value]) == (Email(NEW), Email(HOME.value, primary=True))


def test_what_is_said_not_to_be_primary_is_not() -> None:
    added = {"value": NEW, "primary": False}
    assert patched((), "add", "emails", added) == (Email(NEW),)
    assert patched((), "replace", "emails", [added]) == (Email(NEW),)
    assert patched((), "add", 'emails[type eq "work" and primary eq false].value', NEW) == (Email(NEW),)
    assert patched((Email(NEW),), "add", "emails", HOME.value) == (Email(NEW), Email(HOME.value))
    assert patched((WORK,), "add", "emails", {"value": WORK.value, "primary": False}) == (unmarked(WORK),)


@pytest.mark.parametrize(
    "value", [WORK.value, WORK.value.upper(), {"value": WORK.value, "type": "Work"}, None, []]
)
def test_adding_what_is_there_changes_nothing(value: Any) -> None:
    assert patched(BOTH, "add", "emails", value) == BOTH


def test_one_added_as_primary_takes_the_mark() -> None:
    added = {"value": NEW, "type": "home", "primary": True}
    assert patched(BOTH, "add", "emails", [added]) == (unmarked(WORK), HOME, Email(NEW, "home", primary=True))
    there = {"value": HOME.value, "type": "home", "primary": True}
    assert patched(BOTH, "add", "emails", there) == (unmarked(WORK), marked(HOME))


@pytest.mark.parametrize("verb", ["add", "replace"])
def test_two_primary_ones_in_one_message_are_refused(verb: str) -> None:
    two = [{"value": "a@b.c", "primary": True}, {"value": "b@b.c", "primary": True}]
    assert refusal(BOTH, verb, "emails", two) == "invalidValue"


def test_all_are_replaced() -> None:
    assert patched(BOTH, "replace", "emails", [NEW, HOME.value]) == (
        Email(NEW, primary=True),
        Email(HOME.value),
    )
    assert patched(BOTH, "replace", "emails", {"value": NEW}) == (Email(NEW, primary=True),)


@pytest.mark.parametrize("value", [None, []])
def test_all_are_replaced_by_none(value: Any) -> None:
    assert patched(BOTH, "replace", "emails", value) == ()


def test_all_are_removed() -> None:
    assert patched(BOTH, "remove", "emails") == ()


@pytest.mark.parametrize(
    ("value", "left"),
    [
        ([{"value": HOME.value.upper()}], (WORK,)),
        ([{"value": HOME.value, "type": "home"}], (WORK,)),
        ({"type": "HOME"}, (WORK,)),
        (HOME.value, (WORK,)),
        ([{"value": WORK.value}], (marked(HOME),)),
        ([{"primary": "True"}], (marked(HOME),)),
        ([{"value": HOME.value, "type": "work"}], BOTH),
        ([{"value": NEW}], BOTH),
        ([], BOTH),
        ([WORK.value, HOME.value], ()),
    ],
)
def test_those_in_a_list_are_removed(value: Any, left: Emails) -> None:
    assert patched(BOTH, "remove", "emails", value) == left


@pytest.mark.parametrize("value", [[{}], [1], 5, [{"colour": "red"}], [{"value": 5}], [{"primary": "x"}]])
def test_a_list_that_describes_nothing_is_refused(value: Any) -> None:
    assert refusal(BOTH, "remove", "emails", value) == "invalidValue"


def test_there_are_at_most_a_hundred() -> None:
    full = patched((), "add", "emails", [f"a{number}@x.org" for number in range(100)])
    assert refusal(full, "add", "emails", NEW) == "tooMany"
    assert refusal(full, "replace", 'emails[type eq "home"].value', NEW) == "tooMany"


# A part without a filter ----------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["add", "replace"])
def test_a_part_alone_is_that_of_the_primary_address(verb: str) -> None:
    assert patched(BOTH, verb, "emails.value", NEW) == (Email(NEW, "work", primary=True), HOME)
    assert patched(BOTH, verb, "emails.type", "other") == (Email(WORK.value, "other", primary=True), HOME)
    assert patched((), verb, "emails.value", NEW) == (Email(NEW, "work", primary=True),)


def test_a_part_alone_is_removed() -> None:
    assert patched(BOTH, "remove", "emails.value") == (marked(HOME),)
    assert patched((), "remove", "emails.value") == ()
    assert patched((marked(HOME),), "remove", "emails.type") == (Email(HOME.value, "work", primary=True),)
    assert patched(BOTH, "remove", "emails.primary") == (unmarked(WORK), HOME)


def test_a_part_alone_is_that_of_the_first_address_when_none_is_primary() -> None:
    assert patched((HOME, OTHER), "replace", "emails.value", NEW) == (Email(NEW, "home"), OTHER)
    assert patched((HOME, OTHER), "replace", "emails.primary", True) == (marked(HOME), OTHER)
    assert patched((HOME, OTHER), "remove", "emails.value") == (OTHER,)


def test_a_type_of_nothing_is_refused() -> None:
    assert refusal((), "replace", "emails.type", "home") == "noTarget"


# What a filter selects ------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["add", "replace"])
@pytest.mark.parametrize(
    ("where", "after"),
    [
        ('type eq "home"', (WORK, Email(NEW, "home"))),
        ('TYPE EQ "HOME"', (WORK, Email(NEW, "home"))),
        ("primary eq true", (Email(NEW, "work", primary=True), HOME)),
        ('primary eq "True"', (Email(NEW, "work", primary=True), HOME)),
        ('value eq "ADA@home.org"', (WORK, Email(NEW, "home"))),
        ('not (type eq "work")', (WORK, Email(NEW, "home"))),
        ('type eq "other"', (WORK, HOME, Email(NEW, "other"))),
        ('type eq "home" and primary eq true', (unmarked(WORK), HOME, Email(NEW, "home", primary=True))),
        ('type eq "home" and primary eq false', (WORK, Email(NEW, "home"))),
        ('(type eq "other") and (primary eq false)', (WORK, HOME, Email(NEW, "other"))),
    ],
)
def test_the_address_of_what_a_filter_selects_is_written_or_made(
    verb: str, where: str, after: Emails
) -> None:
    assert patched(BOTH, verb, f"emails[{where}].value", NEW) == after


def test_the_value_may_come_in_a_list() -> None:
    wrapped = [{"$ref": None, "value": NEW}]
    assert patched(BOTH, "replace", 'emails[type eq "work"].value', wrapped)[0].value == NEW


@pytest.mark.parametrize("path", ['emails[type eq "work"].value', "emails[primary eq true].value"])
def test_the_first_address_is_made(path: str) -> None:
    assert patched((), "replace", path, NEW) == (Email(NEW, "work", primary=True),)


@pytest.mark.parametrize(
    ("where", "part", "value"),
    [
        ('type eq "other" or type eq "x"', ".value", NEW),
        ("not (type pr)", ".value", NEW),
        ('type co "oth"', ".value", NEW),
        ('type ne "work" and type ne "home"', ".value", NEW),
        ('type eq "a" and type eq "b"', ".value", NEW),
        ('type eq ""', ".value", NEW),
        ("type eq null", ".value", NEW),
        ('value eq "no@x.org"', ".value", NEW),
        ('type eq "other"', ".type", "third"),
        ('type eq "other"', ".primary", True),
        ('type eq "other"', "", {"type": "third", "value": NEW}),
        ('type eq "other"', "", {"primary": True}),
    ],
)
def test_what_cannot_be_made_has_no_target(where: str, part: str, value: Any) -> None:
    assert refusal(BOTH, "replace", f"emails[{where}]{part}", value) == "noTarget"


def test_a_known_address_is_made_primary() -> None:
    path = 'emails[value eq "new@x.org"]'
    assert patched(BOTH, "add", path, {"primary": True})[2] == Email(NEW, "work", primary=True)
    assert patched(BOTH, "replace", 'emails[type eq "home"].primary', True) == (unmarked(WORK), marked(HOME))
    assert patched(BOTH, "replace", 'emails[type eq "home"].primary', "false") == BOTH


def test_a_mark_that_is_taken_away_goes_to_nobody() -> None:
    assert patched(BOTH, "replace", 'emails[type eq "work"].primary', False) == (unmarked(WORK), HOME)
    assert patched((WORK,), "replace", 'emails[type eq "work"].primary', False) == (unmarked(WORK),)
    assert patched((HOME, WORK), "remove", 'emails[type eq "work"].primary') == (HOME, unmarked(WORK))


def test_only_one_can_be_made_primary() -> None:
    assert refusal(BOTH, "replace", "emails[type pr].primary", True) == "invalidValue"


def test_what_is_not_sent_stays() -> None:
    path = 'emails[type eq "home"]'
    assert patched(BOTH, "replace", path, {"value": NEW}) == (WORK, Email(NEW, "home"))
    assert patched(BOTH, "add", path, [{"type": "other"}]) == (WORK, Email(HOME.value, "other"))
    assert patched(BOTH, "replace", path, NEW) == (WORK, Email(NEW, "home"))


def test_what_becomes_the_same_is_one() -> None:
    assert patched(BOTH, "replace", "emails[type pr]", {"value": NEW, "type": "x", "primary": True}) == (
        Email(NEW, "x", primary=True),
    )
    twins = (WORK, Email(WORK.value, "home"))
    assert patched(twins, "replace", 'emails[type eq "home"].type', "work") == (WORK,)


@pytest.mark.parametrize("verb", ["remove", "replace"])
@pytest.mark.parametrize("part", ["", ".value"])
def test_selected_addresses_are_removed(verb: str, part: str) -> None:
    everyone = (*BOTH, OTHER)
    assert patched(everyone, verb, f'emails[type eq "home"]{part}') == (WORK, OTHER)
    assert patched(everyone, verb, f'emails[type eq "work"]{part}') == (marked(HOME), OTHER)
    assert patched(everyone, verb, f"emails[value pr]{part}") == ()
    assert patched(everyone, verb, f'emails[type eq "x"]{part}') == everyone


@pytest.mark.parametrize("value", ["", "  ", [{"value": ""}]])
def test_a_blank_address_is_a_removal(value: Any) -> None:
    assert patched(BOTH, "replace", 'emails[type eq "home"].value', value) == (WORK,)
    assert patched(BOTH, "replace", 'emails[type eq "home"]', value) == (WORK,)


@pytest.mark.parametrize("where", ['colour eq "red"', "primary gt true", 'groups.value eq "x"'])
def test_a_filter_without_sense_is_refused_even_when_there_is_nothing(where: str) -> None:
    assert refusal((), "remove", f"emails[{where}]") == "invalidFilter"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ('emails[type eq "work"].value', "ada"),
        ('emails[type eq "work"].value', 5),
        ('emails[type eq "work"].type', "x" * 65),
        ('emails[type eq "work"].primary', "perhaps"),
        ('emails[type eq "work"]', 5),
        ('emails[type eq "work"]', ["a@b.c", "b@b.c"]),
        ("emails.value", ["a@b.c"]),
        ("emails", 5),
    ],
)
def test_bad_values_are_refused(path: str, value: Any) -> None:
    assert refusal(BOTH, "replace", path, value) == "invalidValue"


def test_a_list_of_addresses_to_remove_is_folded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    emails = tuple(Email(f"folded{number}@example.org", "work") for number in range(100))
    folded: list[str] = []
    for module in (values, patch_emails):
        monkeypatch.setattr(module, "casefold_nfc", lambda text: folded.append(text) or text.lower())
    gone = [f"GONE{number}@example.org" for number in range(100)]
    assert patched(emails, "remove", "emails", gone) == emails
    assert len(folded) <= 300
