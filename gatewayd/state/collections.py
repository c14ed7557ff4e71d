"""Table of collections: name, description, owner and access list, without files."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatewayd.accounts.texts import clean, clean_long
from gatewayd.errors import invalid
from gatewayd.knowledge.collections import (
    MAX_DESCRIPTION_CHARACTERS,
    CollectionChange,
    CollectionService,
    NewCollection,
)
from gatewayd.knowledge.records import Collection
from gatewayd.state.interfaces import StateTable
from gatewayd.state.planner import named_once
from gatewayd.state.records import Fields, ObjectChange, StateAction, StateObject, StateSnapshot, located
from gatewayd.state.scope import StateScope

SIDES: Final = ("readers", "writers")


class CollectionTable(StateTable):
    """Collections by name; by id where several have one name."""

    table = "collections"

    def __init__(self, collections: CollectionService) -> None:
        self._collections = collections

    async def read(self, scope: StateScope) -> Mapping[str, StateObject]:
        """Return all collections, and tell `scope` their names."""
        found, _ = await self._collections.list(scope.actor)
        counts = Counter(each.name for each in found)
        taken = {each.id for each in found}
        objects = {}
        for each in found:
            key = each.name if counts[each.name] == 1 and each.name not in taken else each.id
            scope.collections[key] = each.id
            objects[key] = StateObject(_fields(each, scope))
        return objects

    async def check(
        self, wanted: Mapping[str, Fields], held: Mapping[str, StateObject], scope: StateScope
    ) -> Mapping[str, Fields]:
        """Return the collections by the names of `read`."""
        keys = {collection_id: key for key, collection_id in scope.collections.items()}
        found = await named_once(
            self, wanted, lambda name: keys.get(name, name if name in held else name.strip())
        )
        names = [each.fields["name"] for each in held.values()]
        result = {}
        for key, (name, fields) in found.items():
            with located(self.path(name)):
                if key not in held and key in names:
                    raise invalid("several collections have this name: give the id of one in its place")
                result[key if key in held else clean(key, "name")] = self._checked(name, fields, scope)
            with located(self.path(name, "name")):
                if name not in keys and fields.get("name", name) != name:
                    raise invalid("a collection is renamed by its id only")
        return result

    def document(self, objects: Mapping[str, Fields]) -> dict[str, Any]:
        """Return the collections, with a name where the key is an id."""
        return {
            key: {name: value for name, value in fields.items() if name != "name" or value != key}
            for key, fields in objects.items()
        }

    async def keep(self, snapshot: StateSnapshot, scope: StateScope) -> tuple[Sequence[str], Sequence[str]]:
        """Return all of `leaving`, with a note that files stay."""
        if not snapshot.leaving:
            return (), ()
        return snapshot.leaving, ["the files of deleted collections stay: gatewayctl file list shows them"]

    def announce(self, snapshot: StateSnapshot, scope: StateScope) -> None:
        """Add new collections to the names, and remove those that leave."""
        for name in snapshot.wanted.keys() - snapshot.held.keys():
            scope.collections[name] = ""
        scope.leaving_collections = {name: scope.collections.pop(name) for name in snapshot.leaving}

    async def write(self, change: ObjectChange, scope: StateScope) -> None:
        """Create, change, give or remove a collection."""
        actor, values = scope.actor, change.values
        owner = values.get("owner")
        owner_id = None if owner is None else scope.users[owner]
        if change.action is StateAction.DELETE:
            await self._collections.remove(actor, scope.leaving_collections[change.name])
        elif change.action is StateAction.CREATE:
            new = NewCollection(change.name, values.get("description", ""), grants=scope.grants(values))
            chosen = scope.primary_id if owner_id is None else owner_id
            made = await self._collections.create(actor, new, owner_id=chosen)
            scope.collections[change.name] = made.id
        else:
            held = await self._collections.get(actor, scope.collections[change.name])
            given = any(side in values for side in SIDES)
            grants = scope.grants(values, held.grants) if given else None
            wanted = CollectionChange(values.get("name"), values.get("description"), grants=grants)
            await self._collections.change(actor, held.id, wanted)
            if owner_id is not None:
                await self._collections.give(actor, held.id, owner_id)

    def _checked(self, name: str, fields: Fields, scope: StateScope) -> dict[str, Any]:
        result = dict(fields)
        if "name" in fields:
            result["name"] = clean(fields["name"], "name")
        if "description" in fields:
            text = fields["description"]
            result["description"] = clean_long(text, "description", longest=MAX_DESCRIPTION_CHARACTERS)
        return result | checked_references(self, name, fields, scope)


def checked_references(table: StateTable, name: str, fields: Fields, scope: StateScope) -> dict[str, Any]:
    """Return the given ones of `owner`, `readers` and `writers` in their stored form."""
    result: dict[str, Any] = {}
    for side in SIDES:
        if side in fields:
            with located(table.path(name, side)):
                result[side] = scope.principals(fields[side])
    if "owner" in fields:
        with located(table.path(name, "owner")):
            result["owner"] = scope.user(fields["owner"])
    return result


def _fields(collection: Collection, scope: StateScope) -> dict[str, Any]:
    return {
        "name": collection.name,
        "description": collection.description,
        "owner": scope.emails.get(collection.user_id),
        **scope.sides(collection.grants),
    }
