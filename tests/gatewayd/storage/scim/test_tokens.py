"""The store of SCIM tokens, and their keeper over it, on both engines."""

import asyncio
from pathlib import Path

import pytest

from gatewayd import ids
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.scim.records import StoredScimToken
from gatewayd.scim.tokens.credential import ScimTokens
from gatewayd.scim.tokens.rotation import ScimTokenKeeper, TokenSource
from gatewayd.storage.engine.database import Database
from gatewayd.storage.scim.tokens import TortoiseScimTokens

ONE, TWO = ids.digest("one"), ids.digest("two")


async def test_tokens_are_listed_the_newest_first(database: Database) -> None:
    store = TortoiseScimTokens()
    assert await store.list() == []
    await store.add(ONE, 5)
    await store.add(TWO, 5)
    with pytest.raises(GatewayError) as caught:
        await store.add(ONE, 6)
    assert caught.value.kind is ErrorKind.CONFLICT
    await store.retire(ONE, 7)
    assert await store.list() == [StoredScimToken(TWO, 5), StoredScimToken(ONE, 5, 7)]


async def test_nodes_take_over_and_create_once(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "scim-token"
    tokens = [ScimTokens(True, ()) for _ in range(4)]
    keepers = [
        ScimTokenKeeper(each, TokenSource(True, file), TortoiseScimTokens(), database) for each in tokens
    ]
    made = await asyncio.gather(*(keeper.create() for keeper in keepers), return_exceptions=True)
    assert len([each for each in made if isinstance(each, str)]) == 1
    file.write_text("taken-over")
    await asyncio.gather(*(keeper.open() for keeper in keepers))
    for each in tokens:
        each.check("taken-over")
    assert len(await TortoiseScimTokens().list()) == 2
