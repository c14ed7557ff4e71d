"""Tests for gatewayd.nodes.records."""

from dataclasses import replace

from gatewayd.nodes.records import Node, NodeUse


def test_a_node_lives_until_the_end_of_its_lease() -> None:
    node = Node("n1", "one")
    assert not node.is_alive
    assert replace(node, seconds=0.5).is_alive
    assert not replace(node, seconds=-3.0).is_alive


def test_a_node_uses_nothing_at_first() -> None:
    assert NodeUse() == NodeUse(leases=(), jobs=0, runs=0, connections=0)
