"""Text that cannot steer a terminal."""

import pytest

from gatewayctl.sanitize import begun, clean, clean_lines


def test_plain_text_stays() -> None:
    assert clean("häß 東 plain [b]") == "häß 東 plain [b]"
    assert clean_lines("a\n\tb ü") == "a\n\tb ü"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("a\nb", "a\\nb"),
        ("\x9b1m", "\\x9b1m"),
        ("\u202e", "\\u202e"),
        ("\ud800", "\\ud800"),
        ("\x00\x7f", "\\x00\\x7f"),
    ],
)
def test_what_steers_is_shown(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_lines_stay_but_nothing_else() -> None:
    assert clean_lines("a\r\nb\x07") == "a\\r\nb\\x07"


def test_the_beginning_of_a_text_is_one_line() -> None:
    assert begun("a\n  b", 10) == "a b"
    assert begun("word " * 10, 9) == "word word ..."
