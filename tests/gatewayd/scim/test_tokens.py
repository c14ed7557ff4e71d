"""Tests for gatewayd.scim.tokens."""

import pytest

from gatewayd.errors import GatewayError, Kind
from gatewayd.scim.tokens import ScimTokens

NEW, OLD = "n" * 64, "o" * 64


def refusal(tokens: ScimTokens, authorization: str | None) -> str:
    with pytest.raises(GatewayError) as caught:
        tokens.check(authorization)
    assert caught.value.kind is Kind.UNAUTHENTICATED
    return caught.value.message


@pytest.mark.parametrize("sent", [f"Bearer {NEW}", f"bearer {OLD}", f"BEARER   {NEW} "])
def test_each_token_is_accepted(sent: str) -> None:
    ScimTokens(True, (NEW, OLD)).check(sent)


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (None, "is required"),
        ("", "is required"),
        ("Bearer", "expected Bearer <token>"),
        ("Bearer ", "expected Bearer <token>"),
        (NEW, "expected Bearer <token>"),
        (f"Bearer {NEW} {OLD}", "expected Bearer <token>"),
        (f"Bearer {NEW}, Bearer {NEW}", "expected Bearer <token>"),
        (f"Bearer\t{NEW}", "expected Bearer <token>"),
        (f"Basic {NEW}", "scheme is not Bearer"),
        (f"Token {NEW}", "scheme is not Bearer"),
        ("Bearer x", "not valid"),
        (f"Bearer {NEW[:-1]}", "not valid"),
        (f"Bearer {NEW}n", "not valid"),
        (f"Bearer {NEW.upper()}", "not valid"),
        ("Bearer tokén\udcff", "not valid"),
    ],
)
def test_everything_else_is_refused_with_the_reason(sent: str | None, why: str) -> None:
    sentence = refusal(ScimTokens(True, (NEW,)), sent)
    assert why in sentence
    assert NEW not in sentence


def test_nothing_is_accepted_while_scim_is_off() -> None:
    tokens = ScimTokens(False, (NEW,))
    assert not tokens.enabled
    assert "not enabled" in refusal(tokens, f"Bearer {NEW}")
    assert "not enabled" in refusal(tokens, "Bearer wrong")


@pytest.mark.parametrize("values", [(), ("",)])
def test_no_token_accepts_none(values: tuple[str, ...]) -> None:
    assert "not valid" in refusal(ScimTokens(True, values), f"Bearer {NEW}")


def test_tokens_are_replaced_at_once() -> None:
    tokens = ScimTokens(True, (OLD,))
    tokens.replace(True, (NEW,))
    tokens.check(f"Bearer {NEW}")
    assert "not valid" in refusal(tokens, f"Bearer {OLD}")
    tokens.replace(False, (NEW,))
    assert "not enabled" in refusal(tokens, f"Bearer {NEW}")


def test_the_values_are_not_kept() -> None:
    tokens = ScimTokens(True, (NEW,))
    assert NEW not in repr(vars(tokens))
