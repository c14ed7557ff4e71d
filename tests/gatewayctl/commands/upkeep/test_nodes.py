"""gatewayctl node, and the routes behind it."""

import json

from gatewayd.nodes.records import Node
from tests.fakes.daemons.control_socket import Control, Ctl


async def test_the_list_of_a_daemon_alone_is_empty(ctl: Ctl) -> None:
    assert (await ctl("node", "list", "-o", "json")).out == "[]\n"


async def test_nodes_are_listed_with_what_differs(ctl: Ctl, control: Control) -> None:
    await control.nodes.add(Node("n1", "web-1", secrets="a"), 10)
    await control.nodes.add(Node("n2", "web-2", secrets="b"), 10)
    await control.nodes.add(Node("n3", "web-3", secrets="c"), -5)
    shown = json.loads((await ctl("node", "list", "-o", "json")).out)
    assert [(node["name"], node["state"], node["seconds"]) for node in shown] == [
        ("web-1", "alive", 10.0),
        ("web-2", "alive", 10.0),
        ("web-3", "dead", -5.0),
    ]
    table = await ctl("node", "list")
    assert "web-2" in table.out
    assert "warning: nodes web-1 and web-2 have different secrets" in table.err


async def test_drain_and_undo(ctl: Ctl, control: Control) -> None:
    await control.nodes.add(Node("n1", "web-1"), 10)
    assert (await ctl("node", "drain", "web-1")).code == 0
    [shown] = json.loads((await ctl("node", "list", "-o", "json")).out)
    assert shown["state"] == "draining"
    row = control.audit.store.kept[-1]
    assert (row.action, row.after) == ("node drain", {"draining": True})
    assert (await ctl("node", "drain", "n1", "--undo")).code == 0
    [shown] = json.loads((await ctl("node", "list", "-o", "json")).out)
    assert shown["state"] == "alive"
    assert (await ctl("node", "drain", "web-9")).code == 5


async def test_remove(ctl: Ctl, control: Control) -> None:
    await control.nodes.add(Node("n1", "web-1"), 10)
    assert (await ctl("node", "remove", "web-1", "--yes")).code == 6
    control.nodes.now += 11
    assert (await ctl("node", "remove", "web-1", "--yes", "-o", "name")).out == "web-1\n"
    assert control.nodes.nodes == {}
