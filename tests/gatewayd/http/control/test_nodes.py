"""Tests for gatewayd.http.control.nodes: bodies and dry runs; the rest is in the tests of gatewayctl."""

from gatewayctl.wire.upkeep.nodes import NodeDrain
from gatewayd.http.control.nodes import ControlNodeRoutes
from gatewayd.http.control.transactions import WriteTransactions
from gatewayd.nodes.service import NodeAdministration
from tests.fakes.documents.memory_stores import Library
from tests.fakes.storage.nodes import MemoryNodes


def test_each_verb_has_a_row() -> None:
    rows = ControlNodeRoutes(NodeAdministration(MemoryNodes()), WriteTransactions(Library())).routes()
    assert [(row.method, row.path) for row in rows] == [
        ("GET", "/v1/nodes"),
        ("POST", "/v1/nodes/{node}/drain"),
        ("DELETE", "/v1/nodes/{node}"),
    ]
    assert NodeDrain().draining
