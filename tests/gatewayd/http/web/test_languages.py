"""Tests for gatewayd.http.web.languages."""

import pytest

from gatewayd.http.web.languages import choose_language, direction_of

KNOWN = ("ar", "de", "en")


@pytest.mark.parametrize(
    ("chosen", "accepted", "language"),
    [
        ("", "", "en"),
        ("de", "ar", "de"),
        ("xx", "ar", "ar"),
        ("../../etc", "", "en"),
        ("", "fr-FR,fr;q=0.9,de-AT;q=0.8,en;q=0.7", "de"),
        ("", "de;q=0,ar;q=0.1", "ar"),
        ("", "*", "en"),
        ("", "DE", "de"),
    ],
)
def test_choice(chosen: str, accepted: str, language: str) -> None:
    assert choose_language(chosen, accepted, KNOWN) == language


def test_directions() -> None:
    assert [direction_of(language) for language in KNOWN] == ["rtl", "ltr", "ltr"]
