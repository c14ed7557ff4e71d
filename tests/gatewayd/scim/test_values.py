from typing import Any

import pytest

from gatewayd.accounts.records import Email
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.scim.values import (
    SentEmail,
    SentMembers,
    members_by_name,
    read_address,
    read_display,
    read_email,
    read_emails,
    read_external_id,
    read_flag,
    read_members,
    read_text,
    read_user_name,
    settle_primary,
    unwrap_value,
)

ADA = "ada@example.org"


@pytest.mark.parametrize(
    ("value", "text"), [(" Ada ", "Ada"), ("", None), ("  ", None), (None, None), ("x" * 255, "x" * 255)]
)
def test_texts_are_stripped_and_blank_ones_are_none(value: Any, text: str | None) -> None:
    assert read_text(value, "displayName") == text


@pytest.mark.parametrize(
    "value", [1, True, ["x"], {"value": "x"}, "x" * 256, "a\0b", "a\nb", "\ud800", "\x7f"]
)
def test_what_is_no_text_is_refused_by_name(value: Any) -> None:
    with pytest.raises(GatewayError, match=r"cannot accept name\.givenName: ") as caught:
        read_text(value, "name.givenName")
    assert (caught.value.kind, caught.value.code) == (ErrorKind.INVALID_REQUEST, "invalidValue")
    assert caught.value.param == "name.givenName"


def test_addresses_are_kept_as_they_were_sent() -> None:
    assert read_address(" Ada@Example.ORG ", "userName") == "Ada@Example.ORG"
    assert read_address("", "emails[0].value") is None


@pytest.mark.parametrize("value", ["ada", "a@b@c", "a b@c", "@", "x" * 250 + "@b.de", 7])
def test_what_is_no_address_is_refused_under_its_own_name(value: Any) -> None:
    with pytest.raises(GatewayError, match="cannot accept userName") as caught:
        read_user_name(value)
    assert (caught.value.code, caught.value.param) == ("invalidValue", "userName")


@pytest.mark.parametrize("value", [None, "", " "])
def test_a_user_has_a_user_name(value: Any) -> None:
    with pytest.raises(GatewayError, match="cannot accept userName: it is required"):
        read_user_name(value)


def test_external_ids_may_be_long() -> None:
    assert read_external_id("x" * 512) == "x" * 512
    assert read_external_id("") is None
    with pytest.raises(GatewayError, match="externalId: it is longer than 512"):
        read_external_id("x" * 513)


@pytest.mark.parametrize(
    ("value", "flag"),
    [
        (True, True),
        (False, False),
        ("true", True),
        ("True", True),
        ("FALSE", False),
        (" false ", False),
        ([{"value": "False"}], False),
        ([{"Value": True}], True),
    ],
)
def test_booleans_come_in_many_forms(value: Any, flag: bool) -> None:
    assert read_flag(value, "active") is flag


@pytest.mark.parametrize(
    "value", [None, "", "yes", "1", 0, 1, [], [True], {"value": True}, [{}], [{"value": True}] * 2]
)
def test_anything_else_is_no_boolean(value: Any) -> None:
    with pytest.raises(GatewayError, match="cannot accept active") as caught:
        read_flag(value, "active")
    assert caught.value.code == "invalidValue"


def test_a_value_in_a_list_is_unwrapped() -> None:
    assert unwrap_value([{"$ref": None, "value": "Ada"}]) == "Ada"
    assert unwrap_value([{"other": 1}]) == [{"other": 1}]
    assert unwrap_value("Ada") == "Ada"


def test_names_are_found_in_any_case_but_once() -> None:
    assert members_by_name({"VALUE": 1, "other": 2}, ("value", "type")) == {"value": 1}
    with pytest.raises(GatewayError, match=r"emails\.value: it occurs twice") as caught:
        members_by_name({"value": 1, "Value": 2}, ("value",), "emails")
    assert caught.value.code == "invalidSyntax"


def test_one_email_may_be_an_object_or_an_address() -> None:
    sent = read_email({"Value": ADA, "TYPE": "Home", "primary": "True", "display": "x"}, "emails[0]")
    assert sent == SentEmail(ADA, "Home", primary=True)
    assert read_email(ADA, "emails[0]") == SentEmail(ADA)


@pytest.mark.parametrize("value", [ADA, {"value": ADA}, [ADA], [{"value": ADA, "type": None}]])
def test_emails_may_be_written_in_many_ways(value: Any) -> None:
    assert read_emails(value) == (SentEmail(ADA, "work"),)


def test_no_emails() -> None:
    assert read_emails(None) == read_emails([]) == ()
    assert read_emails([{"value": "", "type": "work"}, {"value": None}]) == ()


def test_each_pair_of_address_and_type_is_there_once() -> None:
    listed = [ADA, {"value": ADA, "type": "home"}, {"value": ADA.upper(), "type": "Work", "primary": True}]
    assert read_emails(listed) == (SentEmail(ADA, "work", primary=True), SentEmail(ADA, "home"))


@pytest.mark.parametrize(
    ("value", "param"),
    [
        (7, "emails"),
        (True, "emails"),
        ([None], "emails[0]"),
        ([[ADA]], "emails[0]"),
        ([ADA, {"type": "work"}], "emails[1].value"),
        ([ADA, {"value": "ada"}], "emails[1].value"),
        ([ADA, "ada"], "emails[1].value"),
        ([{"value": ADA, "type": "x" * 65}], "emails[0].type"),
        ([{"value": ADA, "type": 1}], "emails[0].type"),
        ([{"value": ADA, "primary": "yes"}], "emails[0].primary"),
        ([{"value": ADA, "primary": True}, {"value": "b@x.org", "primary": True}], "emails"),
    ],
)
def test_bad_emails_are_refused_by_place(value: Any, param: str) -> None:
    with pytest.raises(GatewayError) as caught:
        read_emails(value)
    assert (caught.value.code, caught.value.param) == ("invalidValue", param)


def test_there_are_at_most_a_hundred_emails() -> None:
    assert len(read_emails([f"a{number}@x.org" for number in range(100)])) == 100
    with pytest.raises(GatewayError, match="more than 100") as caught:
        read_emails([f"a{number}@x.org" for number in range(101)])
    assert caught.value.kind is ErrorKind.TOO_LARGE


def test_the_first_email_that_may_be_is_primary_when_none_is_marked() -> None:
    first, second = SentEmail(ADA, "work"), SentEmail("b@x.org", "home")
    assert settle_primary((first, second)) == (Email(ADA, primary=True), Email("b@x.org", "home"))
    marked = SentEmail("b@x.org", "home", primary=True)
    assert settle_primary((first, marked)) == (Email(ADA), Email("b@x.org", "home", primary=True))
    unmarked = SentEmail(ADA, "work", primary=False)
    assert settle_primary((unmarked, second)) == (Email(ADA), Email("b@x.org", "home", primary=True))
    assert settle_primary((unmarked,)) == (Email(ADA),)
    assert settle_primary(()) == ()


@pytest.mark.parametrize("value", ["u1", {"value": "u1"}, ["u1"], [{"Value": " u1 ", "type": "user"}, "u1"]])
def test_members_may_be_written_in_many_ways(value: Any) -> None:
    assert read_members(value) == SentMembers(("u1",))


def test_members_keep_their_order() -> None:
    listed = [{"value": "b", "$ref": None, "display": "x"}, "a", "b"]
    assert read_members(listed) == SentMembers(("b", "a"), {"b": "x"})
    assert read_members(None) == read_members([]) == SentMembers()


@pytest.mark.parametrize(
    ("display", "kept"),
    [
        (" Ada ", "Ada"),
        ("x" * 255, "x" * 255),
        ("x" * 256, "x" * 255),
        (f"  {'x' * 254} y", "x" * 254),
        *((value, None) for value in (None, "", " ", 1, True, ["Ada"], {"value": "Ada"}, "a\0b", "\ud800")),
    ],
)
def test_no_member_is_lost_for_what_it_is_called(display: Any, kept: str | None) -> None:
    assert read_display(display) == kept
    displays = {} if kept is None else {"a": kept}
    assert read_members([{"value": "a", "display": display}]) == SentMembers(("a",), displays)


def test_the_last_name_of_a_member_counts() -> None:
    listed = [{"value": "a", "DISPLAY": each} for each in ("one", " two ", None, "", "  ")]
    assert read_members(listed) == SentMembers(("a",), {"a": "two"})


@pytest.mark.parametrize(
    ("value", "param"),
    [
        (1, "members"),
        (False, "members"),
        ([1], "members[0]"),
        (["u1", {}], "members[1].value"),
        ([{"value": None}], "members[0].value"),
        ([""], "members[0]"),
        ([{"value": 1}], "members[0].value"),
        ([{"value": "g1", "type": "Group"}], "members[0].type"),
        ([{"value": "a\0"}], "members[0].value"),
    ],
)
def test_bad_members_are_refused_by_place(value: Any, param: str) -> None:
    with pytest.raises(GatewayError) as caught:
        read_members(value)
    assert (caught.value.code, caught.value.param) == ("invalidValue", param)


def test_there_are_at_most_ten_thousand_members() -> None:
    assert len(read_members([str(number) for number in range(10_000)]).user_ids) == 10_000
    with pytest.raises(GatewayError, match="more than 10000") as caught:
        read_members(["u1"] * 10_001)
    assert caught.value.kind is ErrorKind.TOO_LARGE
