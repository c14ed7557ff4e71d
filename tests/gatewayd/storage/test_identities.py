"""Tests for gatewayd.storage.identities."""

from dataclasses import replace

import pytest

from gatewayd.accounts.identity.records import LinkedIdentity, ProviderTokens
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.database import Database
from gatewayd.storage.identities import TortoiseIdentities
from gatewayd.storage.users import TortoiseUsers
from tests.fakes.accounts.records import user
from tests.gatewayd.storage.conftest import Stores

LINK = LinkedIdentity("u1", "okta", "https://okta.example", "s-1", "oid-1", "ann@example.org", 5, 6)
TOKENS = ProviderTokens("id.token.value", "refresh-value", "access-value", 50)


@pytest.fixture
async def owned(stores: Stores) -> Stores:
    """Return the stores with two users in them."""
    await stores.users.add(
        user("u1", oauth={"okta": {"sub": "s-1"}}, scim={"okta": {"external_id": "x-1"}}), None
    )
    await stores.users.add(user("u2"), None)
    return stores


async def test_a_link_comes_back_as_it_was_until_it_is_removed(owned: Stores) -> None:
    links = owned.identities
    await links.add(LINK)
    assert await links.find("https://okta.example", "s-1") == LINK
    assert await links.find("https://other.example", "s-1") is None
    later = replace(LINK, provisioning_id="oid-2", email="a@example.org", used_at=9)
    await links.touch(later)
    assert await links.list("u1") == [later]
    assert await links.list("u2") == []
    assert await links.remove("u1", "okta")
    assert not await links.remove("u1", "okta")
    assert await links.find("https://okta.example", "s-1") is None


@pytest.mark.parametrize(
    "other",
    [replace(LINK, user_id="u2"), replace(LINK, subject="s-2"), replace(LINK, user_id="u2", provider="a")],
    ids=["identity", "provider", "identity of another provider"],
)
async def test_an_identity_and_the_provider_of_a_user_are_linked_once(
    owned: Stores, other: LinkedIdentity
) -> None:
    await owned.identities.add(LINK)
    with pytest.raises(GatewayError) as caught:
        await owned.identities.add(other)
    assert caught.value.kind is ErrorKind.CONFLICT
    assert await owned.identities.list("u1") == [LINK]


async def test_a_link_goes_with_its_user(owned: Stores) -> None:
    await owned.identities.add(LINK)
    await owned.users.remove("u1")
    assert await owned.identities.find(LINK.issuer, LINK.subject) is None


async def test_owners_of_subjects_and_external_ids(owned: Stores) -> None:
    links = owned.identities
    assert await links.find_subject_owner("okta", "s-1") == "u1"
    assert await links.find_external_id_owner("okta", "x-1") == "u1"
    for provider, value in (("entra", "s-1"), ("okta", "x-1"), ("okta", "\x00"), ("okta", "s" * 1000)):
        assert await links.find_subject_owner(provider, value) is None
    assert await links.find_external_id_owner("okta", "s-1") is None


async def test_an_empty_token_leaves_the_present_one(owned: Stores) -> None:
    links = owned.identities
    await links.put_tokens("u1", "okta", TOKENS)
    assert await links.find_tokens("u1", "okta") == ProviderTokens()
    await links.add(LINK)
    await links.put_tokens("u1", "okta", TOKENS)
    await links.put_tokens("u1", "okta", ProviderTokens("newer", ""))
    assert await links.find_tokens("u1", "okta") == replace(TOKENS, id_token="newer")
    await links.put_tokens("u1", "okta", ProviderTokens(access_token="unbounded"))
    assert await links.find_tokens("u1", "okta") == ProviderTokens("newer", "refresh-value", "unbounded", 0)
    await links.remove("u1", "okta")
    assert await links.find_tokens("u1", "okta") == ProviderTokens()


async def test_a_value_is_used_once(owned: Stores) -> None:
    links = owned.identities
    assert await links.use_once("d" * 64, 10)
    assert not await links.use_once("d" * 64, 20)
    assert (await links.prune(10), await links.prune(11)) == (0, 1)
    assert await links.use_once("d" * 64, 30)


async def test_tokens_are_stored_encrypted_for_one_secret(database: Database) -> None:
    await TortoiseUsers().add(user("u1"), None)
    links = TortoiseIdentities(b"one secret")
    await links.add(LINK)
    await links.put_tokens("u1", "okta", TOKENS)
    rows = await database.engine.execute_query_dict("SELECT * FROM user_identities")
    assert "refresh-value" not in str(rows)
    assert "access-value" not in str(rows)
    assert "id.token.value" not in str(rows)
    assert await TortoiseIdentities(b"another secret").find_tokens("u1", "okta") == ProviderTokens()
