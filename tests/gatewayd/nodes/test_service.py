"""Tests for gatewayd.nodes.service: what operators do with nodes."""

from dataclasses import replace

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.nodes.records import Node, NodeUse
from gatewayd.nodes.service import NodeAdministration, warnings_about
from tests.fakes.storage.nodes import MemoryNodes

ONE = Node("n1", "web-1", "1.0", "0022", "", "c", "s", "p", seconds=5.0)


async def test_nodes_are_found_by_name_and_by_id() -> None:
    store = MemoryNodes()
    nodes = NodeAdministration(store)
    for node_id, name in (("n1", "web-1"), ("n2", "web-2"), ("n3", "web-2")):
        await store.add(Node(node_id, name), 10)
    assert [use for _, use in await nodes.list()] == [NodeUse()] * 3
    assert (await nodes.find("web-1")).id == "n1"
    assert (await nodes.find("n3")).name == "web-2"
    with pytest.raises(GatewayError, match="2 nodes have this name") as caught:
        await nodes.find("web-2")
    assert caught.value.kind is ErrorKind.CONFLICT
    with pytest.raises(GatewayError) as caught:
        await nodes.drain("web-9", is_draining=True)
    assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_a_node_is_drained_and_works_again() -> None:
    store = MemoryNodes()
    nodes = NodeAdministration(store)
    await store.add(Node("n1", "web-1"), 10)
    assert (await nodes.drain("web-1", is_draining=True)).is_draining
    assert not (await nodes.drain("web-1", is_draining=False)).is_draining


async def test_a_node_that_goes_as_it_is_drained_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryNodes()
    await store.add(Node("n1", "web-1"), 10)

    async def find_none(*_: object, **__: object) -> bool:
        return False

    monkeypatch.setattr(store, "change_draining", find_none)
    with pytest.raises(GatewayError) as caught:
        await NodeAdministration(store).drain("web-1", is_draining=True)
    assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_a_node_that_was_restarted_is_told_from_its_dead_predecessor() -> None:
    store = MemoryNodes()
    nodes = NodeAdministration(store)
    await store.add(Node("n1", "web-1"), -5)
    await store.add(Node("n2", "web-1"), 10)
    assert (await nodes.find("web-1")).id == "n2"
    assert (await nodes.remove("web-1")).id == "n1"


async def test_only_a_dead_node_is_removed() -> None:
    store = MemoryNodes()
    nodes = NodeAdministration(store)
    await store.add(Node("n1", "web-1"), 10)
    with pytest.raises(GatewayError, match="it is alive, stop it instead") as caught:
        await nodes.remove("web-1")
    assert caught.value.kind is ErrorKind.CONFLICT
    store.now += 11
    assert (await nodes.remove("web-1")).id == "n1"
    assert await nodes.list() == []


def test_living_nodes_that_are_alike_need_no_warning() -> None:
    dead = replace(ONE, id="n3", name="web-3", secrets="other", seconds=-1.0)
    assert list(warnings_about([ONE, replace(ONE, id="n2", name="web-2"), dead])) == []


@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        (
            "secrets",
            "nodes web-1 and web-2 have different secrets: sessions and stored secrets of one are unreadable"
            " for the other",
        ),
        ("configuration", "nodes web-1 and web-2 have different settings"),
        ("plugins", "nodes web-1 and web-2 have different plugin files"),
        ("migration", "nodes web-1 and web-2 are of versions with different schemas"),
        ("version", "nodes web-1 and web-2 are of different versions"),
    ],
)
def test_differences_that_harm_are_told(field: str, sentence: str) -> None:
    other = replace(ONE, id="n2", name="web-2", **{field: "other"})
    assert list(warnings_about([ONE, other])) == [sentence]


def test_a_name_that_two_nodes_have_is_told() -> None:
    assert list(warnings_about([ONE, replace(ONE, id="n2")])) == ["2 nodes have the name web-1"]
