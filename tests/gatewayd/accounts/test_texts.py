import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.accounts.texts import (
    as_object,
    clean,
    clean_long,
    clean_object,
    clean_picture,
    folded,
    is_plain,
    mended,
    normalise_email,
)
from gatewayd.errors import GatewayError, Kind


@pytest.mark.parametrize(
    ("one", "other"), [("ADA", "ada"), ("Straße", "STRASSE"), ("e\u0301", "É"), ("ΣΑΣ", "σας")]
)
def test_texts_that_differ_in_case_or_composition_fold_to_one(one: str, other: str) -> None:
    assert folded(one) == folded(other)


def test_texts_that_differ_otherwise_do_not() -> None:
    assert folded("a b") != folded("ab")


@pytest.mark.parametrize(
    ("given_text", "stored"),
    [
        ("Ann@Example.ORG", "ann@example.org"),
        ("  ann@example.org\t", "ann@example.org"),
        ("\uff21\uff2e\uff2e@example.org", "ann@example.org"),
        ("straße@example.org", "strasse@example.org"),
    ],
)
def test_addresses_have_one_form(given_text: str, stored: str) -> None:
    assert normalise_email(given_text) == stored


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
    ],
)
def test_bad_addresses_are_refused(text: str) -> None:
    with pytest.raises(GatewayError) as caught:
        normalise_email(text)
    assert (caught.value.kind, caught.value.param) == (Kind.INVALID_REQUEST, "email")


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


def test_long_texts_may_have_lines() -> None:
    assert clean_long(" a\n\tb ", "text", longest=10) == "a\n\tb"
    with pytest.raises(GatewayError):
        clean_long("a\0", "text", longest=10)


@pytest.mark.parametrize("address", ["", "/user.png", "https://x/y.png", "data:image/png;base64,AAAA"])
def test_pictures(address: str) -> None:
    assert clean_picture(address) == address


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "//x/y", "data:text/html,x", "data:image/svg+xml,x"]
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
    assert caught.value.kind is Kind.TOO_LARGE


def test_plain() -> None:
    assert is_plain("Zoë 数")
    assert not is_plain("a\0")


def test_whatever_is_stored_is_an_object() -> None:
    assert as_object({"a": 1}) == {"a": 1}
    assert [as_object(odd) for odd in (None, "text", ["a"], 5, True)] == [{}] * 5


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("", ""),
        ("plain \n", "plain \n"),
        ("grün 😀", "grün 😀"),
        ("a\x00b", "a\ufffdb"),
        ("ü\x00", "ü\ufffd"),
        ("\ud83d", "\ufffd"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ude00", "😀"),
    ],
)
def test_a_text_is_mended(text: str, kept: str) -> None:
    assert mended(text) == kept
