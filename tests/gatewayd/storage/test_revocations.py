from gatewayd.storage.engine.database import Database
from gatewayd.storage.revocations import TortoiseRevocations
from tests.gatewayd.storage.conftest import Stores


async def test_a_revoked_token_is_known(stores: Stores) -> None:
    await stores.revocations.add("j1", "u1", 10)
    assert await stores.revocations.contains("j1")
    assert not await stores.revocations.contains("j2")


async def test_revoking_twice_is_no_error(stores: Stores) -> None:
    await stores.revocations.add("j1", "u1", 10)
    await stores.revocations.add("j1", "u1", 10)
    assert await stores.revocations.prune(11) == 1


async def test_only_expired_tokens_are_forgotten(stores: Stores) -> None:
    for number in (9, 10, 11):
        await stores.revocations.add(f"j{number}", "u1", number)
    assert await stores.revocations.prune(10) == 1
    assert not await stores.revocations.contains("j9")
    assert await stores.revocations.contains("j10")
    assert await stores.revocations.prune(10) == 0


async def test_what_cannot_be_stored_was_not_revoked(database: Database) -> None:
    assert not await TortoiseRevocations().contains("\x00")
