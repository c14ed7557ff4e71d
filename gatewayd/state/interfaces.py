"""Interface of the tables of the document, with the behaviour that most of them have."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from gatewayd.state.records import Fields, ObjectChange, StateObject, StateSnapshot, join_path
from gatewayd.state.scope import StateScope


class StateTable(ABC):
    """One table of the document: the objects of one kind by their names.

    A plan calls `objects`, `read`, `check` and `keep` in this order, and then `announce`, so that the tables
    behind it find the names.
    """

    table: str
    secrets: frozenset[str] = frozenset()
    """Fields of new objects whose values no plan shows."""

    needs: frozenset[str] = frozenset()
    """Other tables whose names the objects refer to, besides those of users and groups."""

    @abstractmethod
    async def read(self, scope: StateScope) -> Mapping[str, StateObject]:
        """Return all present objects by name."""

    @abstractmethod
    async def check(
        self, wanted: Mapping[str, Fields], held: Mapping[str, StateObject], scope: StateScope
    ) -> Mapping[str, Fields]:
        """Return the wanted objects in the form of `read`: names, references and values in their normal form.

        Raises a GatewayError that names the path of what cannot be applied.
        """

    @abstractmethod
    async def write(self, change: ObjectChange, scope: StateScope) -> None:
        """Make one change by the service of the objects."""

    def objects(self, value: Mapping[str, Any]) -> Mapping[str, Fields]:
        """Return the objects in a table of the document."""
        return value

    def document(self, objects: Mapping[str, Fields]) -> dict[str, Any]:
        """Return objects as a table of the document."""
        return {name: dict(fields) for name, fields in objects.items()}

    def path(self, name: str, *fields: str) -> str:
        """Return the path of an object or of one of its fields in the document."""
        return join_path(self.table, name, *fields)

    async def keep(self, snapshot: StateSnapshot, scope: StateScope) -> tuple[Sequence[str], Sequence[str]]:
        """Return which of the objects in `leaving` are deleted, and notes for people."""
        return snapshot.leaving, ()

    def announce(self, snapshot: StateSnapshot, scope: StateScope) -> None:
        """Tell `scope` the names after the plan, if other objects refer to them."""
        return

    def rank(self, change: ObjectChange) -> int:
        """Return the place of a creation or update among those of the table; the lowest comes first."""
        return 0
