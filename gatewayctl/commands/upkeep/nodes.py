"""`gatewayctl node`: the nodes of a cluster."""

from typing import Annotated

import typer

from gatewayctl.command import DryRun, Noun, Session, Yes
from gatewayctl.prompts import confirm
from gatewayctl.render import View
from gatewayctl.wire import routes
from gatewayctl.wire.upkeep.nodes import Node, NodeDrain, NodeWritten

noun = Noun("Nodes of a cluster: daemons that share one database.")

NodeRef = Annotated[str, typer.Argument(metavar="NODE", help="Name or id of the node.")]

ROWS: View[Node] = View(
    name=lambda node: node.name,
    columns={
        "NAME": lambda node: node.name,
        "STATE": lambda node: node.state,
        "VERSION": lambda node: node.version,
        "ADDRESS": lambda node: node.address,
        "LEASE": lambda node: node.seconds,
        "ANSWERS": lambda node: node.answers,
        "FILES": lambda node: node.files,
        "CONNECTIONS": lambda node: node.connections,
        "DUTIES": lambda node: ", ".join(node.leases),
        "SETTINGS": lambda node: node.configuration,
        "SECRETS": lambda node: node.secrets,
        "PLUGINS": lambda node: node.plugins,
        "ID": lambda node: node.id,
    },
)
WRITTEN: View[NodeWritten] = View(
    name=lambda node: node.name,
    columns={"NAME": lambda node: node.name, "STATE": lambda node: node.state, "ID": lambda node: node.id},
)


@noun.verb("list", "gatewayctl node list", "gatewayctl node list -o json")
def list_nodes(session: Session) -> None:
    """List the nodes with their leases and work; differences that harm are on standard error."""
    found = session.client.call(routes.LIST_NODES)
    session.show_all(found.nodes, ROWS)
    for warning in found.warnings:
        session.note(f"warning: {warning}")


@noun.verb("drain", "gatewayctl node drain web-2", "gatewayctl node drain web-2 --undo")
def drain(
    session: Session,
    node: NodeRef,
    undo: Annotated[bool, typer.Option("--undo", help="Have the node work again.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Have a node begin nothing new: it answers /readyz with 503 and leaves files and duties to others."""
    request = NodeDrain(draining=not undo)
    written = session.client.call(routes.DRAIN_NODE, node, body=request, dry_run=dry_run)
    session.written(written, WRITTEN, "node")


@noun.verb("remove", "gatewayctl node remove web-2 --yes")
def remove(session: Session, node: NodeRef, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Remove a dead node from the list; a node that is stopped leaves by itself."""
    confirm(f"Remove the node {node}?", yes=yes or dry_run)
    session.written(session.client.call(routes.REMOVE_NODE, node, dry_run=dry_run), WRITTEN, "node")
