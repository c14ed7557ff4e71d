"""Administration of the nodes: the list with warnings, draining, and the removal of dead ones."""

from collections.abc import Mapping, Sequence
from typing import Final

from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.nodes.interfaces import NodeStore
from gatewayd.nodes.records import Node, NodeUse

COMPARED: Final = (
    ("secrets", "have different secrets: sessions and stored secrets of one are unreadable for the other"),
    ("configuration", "have different settings"),
    ("plugins", "have different plugin files"),
    ("migration", "are of versions with different schemas"),
    ("version", "are of different versions"),
)
"""What the living nodes should have in common, and what a difference means."""


class NodeAdministration:
    """What operators do with nodes, from any of them."""

    def __init__(self, store: NodeStore) -> None:
        self._store = store

    async def list(self) -> Sequence[tuple[Node, NodeUse]]:
        """Return all nodes with what they work on, by name and start."""
        uses: Mapping[str, NodeUse] = await self._store.uses()
        return [(node, uses.get(node.id, NodeUse())) for node in await self._store.list()]

    async def find(self, ref: str, *, dead: bool = False) -> Node:
        """Return the node with this id or name, of a name rather a living one, or with `dead` a dead one.

        Raises not_found, and conflict for a name of several.
        """
        nodes = await self._store.list()
        found = [node for node in nodes if node.id == ref]
        if not found:
            named = [node for node in nodes if node.name == ref]
            found = [node for node in named if node.is_alive is not dead] or named
        if not found:
            raise not_found("node", ref)
        if len(found) > 1:
            raise GatewayError(
                ErrorKind.CONFLICT,
                f"cannot choose node {ref!r}: {len(found)} nodes have this name, use an id",
            )
        return found[0]

    async def drain(self, ref: str, *, is_draining: bool) -> Node:
        """Have a node begin nothing new, or work again; raises the errors of `find`."""
        node = await self.find(ref)
        if not await self._store.change_draining(node.id, is_draining=is_draining):
            raise not_found("node", ref)
        return await self.find(node.id)

    async def remove(self, ref: str) -> Node:
        """Remove a dead node; conflict for a living one, which leaves by itself when it is stopped."""
        node = await self.find(ref, dead=True)
        if not await self._store.remove(node.id, dead=True):
            raise GatewayError(
                ErrorKind.CONFLICT, f"cannot remove node {node.name!r}: it is alive, stop it instead"
            )
        return node


def warnings_about(nodes: Sequence[Node]) -> Sequence[str]:
    """Return sentences about living nodes that differ where they should not."""
    alive = [node for node in nodes if node.is_alive]
    found = []
    for name, problem in COMPARED:
        groups: dict[str, list[str]] = {}
        for node in alive:
            groups.setdefault(getattr(node, name), []).append(node.name)
        if len(groups) > 1:
            found.append(f"nodes {' and '.join(names[0] for names in groups.values())} {problem}")
    names = [node.name for node in alive]
    found += [
        f"{names.count(name)} nodes have the name {name}"
        for name in sorted({*names})
        if names.count(name) > 1
    ]
    return found
