"""Tests for gatewayd.accounts.links.tokens."""

import pytest

from gatewayd.accounts.links import tokens as module
from gatewayd.accounts.links.records import LinkKind, NewInvitation, OneTimeLink
from gatewayd.accounts.links.tokens import LEEWAY_SECONDS, new_token
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.accounts.services import Accounts


def test_a_token_is_random_and_long() -> None:
    assert len({new_token() for _ in range(100)}) == 100
    assert len(bytes.fromhex(new_token())) == 32


async def test_unused_links_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_OPEN_LINKS", 2)
    accounts = Accounts()
    for _ in range(2):
        await accounts.invitations.create(NewInvitation(), "root")
    with pytest.raises(GatewayError) as caught:
        await accounts.invitations.create(NewInvitation(), "root")
    assert caught.value.kind is ErrorKind.CONFLICT
    await accounts.sign_in_links.create(await accounts.add_user(), "root")


async def test_a_digest_of_another_token_is_a_mistake() -> None:
    link = OneTimeLink("l1", "digest", LinkKind.INVITATION, "root", 1, 2)
    with pytest.raises(ValueError, match="digest"):
        await Accounts().link_tokens.add(link, new_token())


async def test_expired_links_are_pruned_late() -> None:
    accounts = Accounts()
    await accounts.invitations.create(NewInvitation(lifetime_seconds=10), "root")
    accounts.time += 11
    assert await accounts.link_tokens.prune() == 0
    accounts.time += LEEWAY_SECONDS
    assert await accounts.link_tokens.prune() == 1
