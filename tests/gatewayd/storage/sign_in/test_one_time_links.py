"""Tests for gatewayd.storage.sign_in.one_time_links."""

import asyncio
from typing import Any

from gatewayd.accounts.links.records import LinkKind, OneTimeLink
from gatewayd.accounts.records import Role
from tests.gatewayd.storage.conftest import Stores


def link(link_id: str, **fields: Any) -> OneTimeLink:
    given = {"digest": f"digest of {link_id}", "kind": LinkKind.INVITATION, "created_by": "root"}
    return OneTimeLink(**{"id": link_id, **given, "created_at": 1, "expires_at": 100, **fields})


async def test_a_link_comes_back_as_it_was_until_it_is_removed(stores: Stores) -> None:
    full = link("l1", email="ä@example.org", role=Role.ADMIN, group_ids=("g2", "g1"))
    await stores.links.add(full)
    assert await stores.links.find("l1") == full
    assert await stores.links.find_by_digest(full.digest) == full
    assert await stores.links.list(LinkKind.INVITATION, after=99) == [full]
    assert await stores.links.list(LinkKind.INVITATION, after=100) == []
    assert await stores.links.list(LinkKind.SIGN_IN, after=0) == []
    assert await stores.links.remove("l1")
    assert not await stores.links.remove("l1")
    assert await stores.links.find_by_digest(full.digest) is None


async def test_one_of_many_removes_a_link(stores: Stores) -> None:
    await stores.links.add(link("l1"))
    assert sorted(await asyncio.gather(*(stores.links.remove("l1") for _ in range(8)))) == [False] * 7 + [
        True
    ]


async def test_only_the_sign_in_links_of_the_user_are_removed(stores: Stores) -> None:
    for number, user_id in enumerate(("u1", "u1", "u2")):
        await stores.links.add(link(f"l{number}", kind=LinkKind.SIGN_IN, user_id=user_id))
    await stores.links.add(link("l9"))
    assert await stores.links.remove_of_user("u1") == 2
    assert await stores.links.find("l2") is not None
    assert await stores.links.find("l9") is not None


async def test_expired_links_are_pruned(stores: Stores) -> None:
    for number in (9, 10):
        await stores.links.add(link(f"l{number}", expires_at=number))
    assert await stores.links.prune(10) == 1
    assert await stores.links.find("l10") is not None


async def test_what_cannot_be_stored_is_not_found(stores: Stores) -> None:
    assert await stores.links.find("\x00") is None
    assert await stores.links.find_by_digest("d" * 65) is None
    assert not await stores.links.remove("\ud800")
