import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.accounts.texts import (
    clean,
    clean_long,
    clean_object,
    clean_person,
    clean_picture,
    email_key,
    is_plain,
    normalise_email,
    object_or_empty,
    strip_direction_marks,
)
from gatewayd.errors import ErrorKind, GatewayError


@pytest.mark.parametrize(
    ("given_text", "stored"),
    [
        ("Ann@Example.ORG", "ann@example.org"),
        ("  ann@example.org\t", "ann@example.org"),
        ("\uff21\uff2e\uff2e@example.org", "ann@example.org"),
        ("straße@example.org", "strasse@example.org"),
        ("o'hara+x.y_z@mail-1.example.org", "o'hara+x.y_z@mail-1.example.org"),
        ("josé@münchen.example", "josé@münchen.example"),
        ("jose\u0301@mu\u0308nchen.example", "josé@münchen.example"),
        ("用户@例子.广告", "用户@例子.广告"),
        ("उदाहरण@डाटामेल.भारत", "उदाहरण@डाटामेल.भारत"),
        ("a..b.@example.org", "a..b.@example.org"),
        ("root@localhost", "root@localhost"),
        ("x" * 64 + "@" + ".".join(["y" * 63, "y" * 63, "y" * 58]), None),
    ],
)
def test_addresses_have_one_form(given_text: str, stored: str | None) -> None:
    assert normalise_email(given_text) == (stored or given_text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ann",
        "@",
        "ann@",
        "@example.org",
        "a@b@c",
        "a b@c",
        "a@b\n.c",
        "a\0@b",
        "x" * 250 + "@b.de",
        "\ud800@b",
        "x" * 65 + "@b",
        "é" * 33 + "@b",
        "a@" + "y" * 64,
        "a@" + "ü" * 60,
        "a@corp..example.com",
        "a@.example.com",
        "a@example.com.",
        "a@example\u3002com",
        "a@-b.de",
        "a@b-.de",
        "a@b_c.de",
        "a@[127.0.0.1]",
        '"a"@b.de',
        "a,b@c.de",
        "<a@c.de>",
        "\u0301" * 1_000_000,
        "\u0301" * 1_000_000 + "@b.de",
        "e\u0301" * 250 + "@b.de",
    ],
)
def test_bad_addresses_are_refused(text: str) -> None:
    with pytest.raises(GatewayError) as caught:
        normalise_email(text)
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, "email")


INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u180e\u200b\u200c\u200d\u200e\u202e\u2060\u2066\u2800\u3164\ufe0f\ufeff\uffa0\ue000"
    "\u2028\U000e0041\U000e0100"
)


@pytest.mark.parametrize("character", list(INVISIBLE), ids=ascii)
@pytest.mark.parametrize("address", ["a{}b@example.org", "ab@exam{}ple.org", "x{}@example.org"])
def test_what_cannot_be_seen_is_refused(address: str, character: str) -> None:
    with pytest.raises(GatewayError, match="cannot accept email"):
        normalise_email(address.format(character))


def test_an_address_of_an_earlier_release_is_found() -> None:
    assert email_key(" A@corp..Example.com ") == "a@corp..example.com"
    assert [
        email_key(odd) for odd in ("", "ann", "a\0@b", "x" * 255 + "@b", "\u0301" * 1_000_000 + "@b")
    ] == [""] * 5
    # What is sent is measured before it is normalised.
    assert [email_key(" " * blanks + "ann@b") for blanks in (1019, 1020)] == ["ann@b", ""]


@given(st.text(max_size=40))
def test_a_normalised_address_stays_as_it_is(text: str) -> None:
    try:
        once = normalise_email(text + "@x")
    except GatewayError:
        return
    assert normalise_email(once) == once


def test_names_are_stripped_and_bounded() -> None:
    assert clean(" Ann ", "name") == "Ann"
    assert clean(" ", "name", empty=True) == ""
    for bad in ("", "  ", "x" * 256, "a\nb", "a\x1bb", "\udfff"):
        with pytest.raises(GatewayError, match="cannot accept name"):
            clean(bad, "name")


def test_names_of_people_turn_no_text_around() -> None:
    assert clean_person(" Zoë \u200d Ann") == "Zoë \u200d Ann"
    for bad in ("a\u202eb", "\u2066a", "a\u2028b", "a\x00"):
        with pytest.raises(GatewayError, match="cannot accept name"):
            clean_person(bad)
    assert strip_direction_marks("a\u202eb\u2069") == "ab"


def test_long_texts_may_have_lines() -> None:
    assert clean_long(" a\n\tb ", "text", longest=10) == "a\n\tb"
    with pytest.raises(GatewayError):
        clean_long("a\0", "text", longest=10)


@pytest.mark.parametrize("address", ["", "/user.png", "https://x/y.png", "data:image/gif;base64,R0lGODlh"])
def test_pictures(address: str) -> None:
    assert clean_picture(address) == address


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "//x/y",
        "data:text/html,x",
        "data:image/svg+xml,x",
        "data:image/png;base64,AAAA",
    ],
)
def test_addresses_that_are_no_pictures(address: str) -> None:
    with pytest.raises(GatewayError):
        clean_picture(address)


def test_objects() -> None:
    assert clean_object({"a": ["\\u0000", 1]}, "info") == {"a": ["\\u0000", 1]}
    for bad in ({"a": "\0"}, {"a": "\\\0"}, {"a": object()}):
        with pytest.raises(GatewayError):
            clean_object(bad, "info")
    with pytest.raises(GatewayError) as caught:
        clean_object({"a": "x" * 300_000}, "info")
    assert caught.value.kind is ErrorKind.TOO_LARGE


def test_plain() -> None:
    assert is_plain("Zoë 数")
    assert not is_plain("a\0")


def test_whatever_is_stored_is_an_object() -> None:
    assert object_or_empty({"a": 1}) == {"a": 1}
    assert [object_or_empty(odd) for odd in (None, "text", ["a"], 5, True)] == [{}] * 5
