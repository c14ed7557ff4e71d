"""Tests for gatewayd.plugin_host.knowledge."""

import os
from pathlib import Path
from typing import Any

import pytest

from gatewayd.accounts.records import Actor
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.events.records import EventTarget
from gatewayd.http.control.impersonation import ControlActors
from gatewayd.http.control.peer import SocketPeer
from gatewayd.knowledge.collections import NewCollection
from gatewayd.plugins.interfaces import HostUpload
from gatewayd.plugins.runtime.context import CallScope
from tests.fakes.plugins.host_services import Hosting, Wishes, hosting
from tests.fakes.plugins.memory import plugin_of

HERON, STORK = "The heron stands in the water.", "The stork walks on the meadow."

LIBRARIAN = """
    from open_webui.models.knowledge import Knowledges
    from open_webui.routers.retrieval import QueryCollectionsForm, query_collection_handler

    class Pipe:
        async def pipe(self, body, __user__, __request__):
            me = __user__["id"]
            names = [each.id for each in Knowledges.get_knowledge_bases_by_user_id(me)]
            form = QueryCollectionsForm(collection_names=names, query="heron water", k=1)
            found = await query_collection_handler(__request__, form, user=__user__)
            asked = body["messages"][-1]["content"]
            others = Knowledges.get_knowledge_bases_by_user_id(asked)
            return f"{found['documents'][0]} {len(others)}"
"""


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
    assert refused.value.kind is ErrorKind.NOT_FOUND


def operator(made: Hosting) -> Actor:
    accounts = made.documents.accounts
    viewers = ControlActors(accounts.users, accounts.rules, accounts.permissions)
    return viewers.operator(SocketPeer(1, os.getuid(), os.getgid()))


async def librarian(made: Hosting, actor: Actor, asking: str) -> str:
    form = {"model": "librarian", "messages": [{"role": "user", "content": asking}]}
    scope = CallScope(actor, EventTarget(actor.user_id, "", "", ""))
    run = made.host.completions.run
    answer: Any = await run(actor.user_id, form, whole_pipeline=False, scope=scope)
    text: str = answer["choices"][0]["message"]["content"]
    return text


async def test_the_operator_at_the_control_socket_searches_without_an_account(tmp_path: Path) -> None:
    async with hosting(tmp_path, Wishes([plugin_of("librarian", LIBRARIAN)], has_names=True)) as made:
        await collection(made)
        answer = await librarian(made, operator(made), "nobody")
        assert answer == f"['{HERON}'] 0"


async def test_nobody_else_reads_as_the_operator(tmp_path: Path) -> None:
    async with hosting(tmp_path, Wishes([plugin_of("librarian", LIBRARIAN)], has_names=True)) as made:
        await collection(made)
        admin = await made.actors.verified(made.admin.id)
        assert await librarian(made, admin, operator(made).user_id) == f"['{HERON}'] 0"
