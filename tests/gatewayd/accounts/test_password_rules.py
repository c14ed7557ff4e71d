"""Tests for gatewayd.accounts.password_rules."""

import pytest

from gatewayd.accounts.password_rules import PasswordRules, common_passwords
from gatewayd.errors import GatewayError

ABOUT = ("ada.lovelace@example.org", "Ada Lovelace", "")


@pytest.fixture(scope="module")
def rules() -> PasswordRules:
    return PasswordRules(8, ["Our Gateway"], common_passwords())


def reason(rules: PasswordRules, password: str) -> str:
    with pytest.raises(GatewayError) as caught:
        rules.check(password, ABOUT, "new_password")
    assert caught.value.param == "new_password"
    return str(caught.value.code)


@pytest.mark.parametrize(
    "password",
    [
        "x",
        "sevensv",
        "\U0001f600" * 7,
        "password",
        "PassWord1",
        "qwertyuiop",
        "trustno1",
        "aaaaaaaaaaaaaaaaaaaa",
        "abcdefghijkl",
        "98765432",
        "ada.lovelace@example.org",
        "Ada Lovelace",
        "AdaLovelace",
        "Lovelace1852!",
        "!!lovelace!!",
        "example.org",
        "gatewayd2026",
        "Our Gateway!",
        "administrator",
    ],
)
def test_passwords_that_are_guessed_first(rules: PasswordRules, password: str) -> None:
    assert reason(rules, password) == "weak_password"


@pytest.mark.parametrize(
    "password",
    [
        "correct horse",
        "8 chars.",
        "zwölf Bären!",
        "\U0001f600\U0001f601\U0001f602\U0001f603\U0001f604\U0001f605\U0001f607\U0001f606",
        "1852-not-ada-1815",
        "kfjwhetqmzpv",
        "  spaces are  kept  ",
        "correct horse battery staple " * 20,
    ],
)
def test_any_characters_make_a_password(rules: PasswordRules, password: str) -> None:
    rules.check(password, ABOUT)


def test_the_minimum_can_be_raised() -> None:
    with pytest.raises(GatewayError, match="has 14 characters, at least 15 are needed"):
        PasswordRules(15).check("correct horses", ())
    PasswordRules(15).check("correct horses!", ())


def test_what_is_no_password_is_no_weak_one(rules: PasswordRules) -> None:
    for password in ("", "x" * 4097, "\ud800" * 8):
        assert reason(rules, password) == "None"


def test_the_common_ones_are_at_least_three_thousand_that_fit() -> None:
    common = common_passwords()
    assert len(common) == 10_000
    assert all(len(password) >= 8 and password == password.casefold() for password in common)
