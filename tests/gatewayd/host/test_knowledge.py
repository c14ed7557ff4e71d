"""Tests for gatewayd.host.knowledge."""

import pytest

from gatewayd.errors import GatewayError, Kind
from gatewayd.knowledge.collections import NewCollection
from gatewayd.plugins.interfaces import HostUpload
from tests.fakes.hosting import Hosting

HERON, STORK = "The heron stands in the water.", "The stork walks on the meadow."


async def collection(made: Hosting) -> str:
    ann = await made.actors.of(made.ann.id)
    assert ann is not None
    kept = await made.documents.collections.create(ann, NewCollection("birds"))
    for name, text in (("heron.txt", HERON), ("stork.txt", STORK)):
        file = await made.host.files.store(made.ann.id, HostUpload(name, text.encode()))
        await made.host.files.process(file["id"], kept.id)
    return kept.id


async def test_collections(made: Hosting) -> None:
    knowledge = made.host.knowledge
    collection_id = await collection(made)
    found = await knowledge.find(collection_id)
    assert found is not None
    assert (found["name"], found["user_id"]) == ("birds", made.ann.id)
    assert [each["id"] for each in await knowledge.list(made.ann.id)] == [collection_id]
    assert await knowledge.find("none") is None
    assert await knowledge.list("nobody") == []


async def test_a_search(made: Hosting) -> None:
    collection_id = await collection(made)
    found = await made.host.knowledge.search(made.ann.id, [collection_id, collection_id], "heron water", None)
    assert [each["text"] for each in found] == [HERON, STORK]
    assert found[0]["metadata"]["name"] == "heron.txt"
    assert found[0]["score"] > found[1]["score"]
    assert len(await made.host.knowledge.search(made.ann.id, [collection_id], "heron", 1)) == 1


async def test_nobody_searches_what_they_may_not_read(made: Hosting) -> None:
    collection_id = await collection(made)
    bob = await made.documents.accounts.add_user("bob")
    assert await made.host.knowledge.list(bob.id) == []
    with pytest.raises(GatewayError) as refused:
        await made.host.knowledge.search(bob.id, [collection_id], "heron", None)
    assert refused.value.kind is Kind.NOT_FOUND
