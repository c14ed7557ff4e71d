"""Tests for gatewayd.scim.tokens.credential."""

import pytest

from gatewayd import ids
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.scim.tokens.credential import ScimTokens

NEW, OLD = "n" * 64, "o" * 64


def refusal(tokens: ScimTokens, token: str) -> str:
    with pytest.raises(GatewayError) as caught:
        tokens.check(token)
    assert caught.value.kind is ErrorKind.UNAUTHENTICATED
    return caught.value.message


@pytest.mark.parametrize("sent", [NEW, OLD])
def test_each_token_is_accepted(sent: str) -> None:
    ScimTokens(True, (NEW, OLD)).check(sent)


@pytest.mark.parametrize("sent", ["", "x", NEW[:-1], f"{NEW}n", NEW.upper(), "tokén\udcff"])
def test_everything_else_is_refused(sent: str) -> None:
    sentence = refusal(ScimTokens(True, (NEW,)), sent)
    assert "not valid" in sentence
    assert NEW not in sentence


def test_nothing_is_accepted_while_scim_is_off() -> None:
    tokens = ScimTokens(False, (NEW,))
    assert not tokens.enabled
    assert "not enabled" in refusal(tokens, NEW)
    assert "not enabled" in refusal(tokens, "wrong")


@pytest.mark.parametrize("values", [(), ("",)])
def test_no_token_accepts_none(values: tuple[str, ...]) -> None:
    assert "not valid" in refusal(ScimTokens(True, values), NEW)


def test_tokens_are_replaced_at_once() -> None:
    tokens = ScimTokens(True, (OLD,))
    tokens.replace(True, (ids.digest(NEW),))
    tokens.check(NEW)
    assert "not valid" in refusal(tokens, OLD)
    tokens.replace(False, (ids.digest(NEW),))
    assert "not enabled" in refusal(tokens, NEW)


def test_the_values_are_not_kept() -> None:
    tokens = ScimTokens(True, (NEW,))
    assert NEW not in repr(vars(tokens))
