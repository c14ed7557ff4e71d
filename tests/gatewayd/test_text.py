"""Texts of a million characters took from minutes to hours before; the limit of a test is two minutes."""

import math
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.text import (
    MAX_ANSWER_DEPTH,
    MAX_CHAT_DEPTH,
    MAX_HEADER_CHARACTERS,
    MAX_HEADERS,
    MAX_JSON_DEPTH,
    MAX_STORED_DEPTH,
    casefold_nfc,
    casefold_nfkc,
    compose_nfc,
    encodable,
    find_header_problem,
    is_continuation,
    is_storable,
    replace_presentation_forms,
    storable,
    storable_value,
    storage_fault,
    stream_safe,
)

ACUTE, CEDILLA = "\u0301", "\u0327"
ORDINARY = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"]), st.sampled_from([ACUTE, CEDILLA, "\u0e38", "\u094d"])
    ),
    max_size=30,
)


@pytest.mark.parametrize(
    ("one", "other"), [("ADA", "ada"), ("Straße", "STRASSE"), ("e\u0301", "É"), ("ΣΑΣ", "σας")]
)
def test_texts_that_differ_in_case_or_composition_fold_to_one(one: str, other: str) -> None:
    assert casefold_nfc(one) == casefold_nfc(other)


def test_texts_that_differ_otherwise_do_not() -> None:
    assert casefold_nfc("a b") != casefold_nfc("ab")


def test_texts_that_differ_in_width_are_compatible() -> None:
    assert casefold_nfkc("\uff21\uff42c") == casefold_nfkc("aBC") == "abc"
    assert casefold_nfkc("e\u0301\uff21") == "éa"


@given(ORDINARY)
def test_ordinary_texts_have_the_forms_of_the_standard(text: str) -> None:
    assert stream_safe(text) == text
    assert compose_nfc(text) == unicodedata.normalize("NFC", text)
    assert casefold_nfc(text) == unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    assert casefold_nfc(casefold_nfc(text)) == casefold_nfc(text)


@pytest.mark.parametrize("lead", ["", "a", "text " * 50])
@pytest.mark.parametrize("count", [29, 30, 31, 60, 61, 62, 100])
def test_a_joiner_stands_after_each_thirty_combining_characters(lead: str, count: int) -> None:
    joined = stream_safe(f"{lead}{ACUTE * count} end")
    assert joined.replace("\u034f", "") == f"{lead}{ACUTE * count} end"
    runs = joined[len(lead) :].partition(" ")[0].split("\u034f")
    assert [len(run) for run in runs] == [30] * ((count - 1) // 30) + [(count - 1) % 30 + 1]


def test_every_combining_character_counts() -> None:
    for number in range(sys.maxunicode + 1):
        character = chr(number)
        if number in range(0xD800, 0xE000) or not unicodedata.combining(
            unicodedata.normalize("NFKD", character)[0]
        ):
            continue
        assert len(stream_safe(character * 31)) == 32, hex(number)


def test_what_composes_with_the_text_before_is_a_continuation() -> None:
    for number in range(sys.maxunicode + 1):
        character = chr(number)
        decomposition = unicodedata.decomposition(character).split()
        if len(decomposition) == 2 and not decomposition[0].startswith("<"):
            first, second = (chr(int(each, 16)) for each in decomposition)
            composes = unicodedata.normalize("NFC", first + second) == character
            assert is_continuation(second) or not composes, hex(number)
    assert [is_continuation(text) for text in ("\u1161", "\u11a8e", "", "e\u0301", "é", "漢", "\u1100")] == [
        True,
        True,
        *[False] * 5,
    ]


def test_long_paths_and_short_ones_are_composed() -> None:
    assert compose_nfc("e\u0301") == "é"
    assert compose_nfc("e" + ACUTE * 100).count("\u034f") == 0
    assert compose_nfc("e" + ACUTE * 5000).count("\u034f") == 166


@pytest.mark.parametrize("unit", [ACUTE, ACUTE + CEDILLA, CEDILLA + ACUTE + "\u0345", "\u0f73", "\U0001e94a"])
def test_a_million_combining_characters_take_no_time(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    assert len(casefold_nfc(text)) > 500_000
    assert len(casefold_nfkc(text)) > 500_000
    assert len(compose_nfc(text)) > 500_000


@pytest.mark.parametrize(
    ("text", "letters"),
    [
        ("e\ufb03cient \ufb02oor \ufb06 \ufb13", "efficient floor st \u0574\u0576"),
        (
            "\ufee3\ufeae\ufea3\ufe92\ufe8e \ufefb \ufb56",
            "\u0645\u0631\u062d\u0628\u0627 \u0644\u0627 \u067e",
        ),
        ("\ufb3e \ufe70 \ufe71", "\u05de\u05bc \u064b \u0640\u064b"),
    ],
)
def test_presentation_forms_are_the_letters_they_stand_for(text: str, letters: str) -> None:
    assert replace_presentation_forms(text) == letters


def test_no_other_character_changes() -> None:
    forms = {*range(0xFB00, 0xFE00), *range(0xFE70, 0xFEFD)}
    for number in set(range(sys.maxunicode + 1)) - forms:
        assert replace_presentation_forms(chr(number)) == chr(number)


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
def test_a_text_is_made_storable(text: str, kept: str) -> None:
    assert storable(text) == kept
    assert is_storable(text) is (text == kept)
    assert storage_fault(kept) is None


def test_what_is_passed_on_can_be_encoded() -> None:
    assert [encodable(text) for text in ("a\0", "ü", "\ud83dü")] == ["a\0", "ü", "?ü"]


def test_a_value_is_made_storable_as_far_as_it_goes() -> None:
    value = {"a\0": [math.inf, 2**64, {"deep": [1]}], 5: (True, None)}
    assert storable_value(value, repr, 3) == {
        "a\ufffd": [None, str(2**64), {"deep": "[1]"}],
        "5": [True, None],
    }


def test_each_depth_holds_what_the_one_before_lets_in() -> None:
    assert MAX_JSON_DEPTH < MAX_STORED_DEPTH < MAX_CHAT_DEPTH < MAX_ANSWER_DEPTH


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("X-Team", "a b"), ("aoai-evals", "preview")],
        [("X-Long", "x" * MAX_HEADER_CHARACTERS)],
    ],
)
def test_headers_that_a_request_can_have(headers: list[tuple[str, str]]) -> None:
    assert find_header_problem(headers, has_key=True) is None


def test_a_header_may_be_the_credential() -> None:
    assert find_header_problem([("Authorization", "Basic abc")], has_key=False) is None


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ([("X Team", "a")], "no name of a header"),
        ([("", "a")], "no name of a header"),
        ([("x" * 200, "a")], "no name of a header"),
        ([("Host", "a")], "the gateway writes it"),
        ([("transfer-encoding", "chunked")], "the gateway writes it"),
        ([("X-A", "a"), ("x-a", "b")], "is there twice"),
        ([("Authorization", "Basic abc")], "beside a key"),
        ([("X-A", "a\r\nX-B: b")], "visible ASCII"),
        ([("X-A", "")], "visible ASCII"),
        ([("X-A", " a")], "visible ASCII"),
        ([("X-A", "é")], "visible ASCII"),
        ([("X-A", "x" * (MAX_HEADER_CHARACTERS + 1))], "visible ASCII"),
        ([(f"X-{number}", "a") for number in range(MAX_HEADERS + 1)], "over 32"),
    ],
)
def test_headers_that_are_refused(headers: list[tuple[str, str]], words: str) -> None:
    assert words in str(find_header_problem(headers, has_key=True))
