"""Access lists of all kinds of resources."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from gatewayd.catalog.records import EVERYBODY, Grant
from gatewayd.storage.engine.statements import SqlStatement
from gatewayd.storage.tables.accounts import GrantRow


class GrantResource(StrEnum):
    """Kind of a resource with an access list; the values are those of Open WebUI."""

    MODEL = "model"
    KNOWLEDGE = "knowledge"
    TOOL = "tool"
    FUNCTION = "function"
    TOOL_SERVER = "tool_server"


async def read(resource: GrantResource, ids: Sequence[str]) -> Mapping[str, tuple[Grant, ...]]:
    """Return the access lists of the given resources, by id, in one statement; empty lists are left out."""
    if not ids:
        return {}
    statement = SqlStatement(GrantRow._meta.db)
    kind, wanted = statement.bind(resource.value), statement.among(ids)
    return _by_resource(
        await statement.run(
            "SELECT resource_id, principal_type, principal_id, permission FROM access_grants "  # noqa: S608
            f"WHERE resource_type = {kind} AND resource_id {wanted} ORDER BY id"
        )
    )


async def read_all(resource: GrantResource) -> Mapping[str, tuple[Grant, ...]]:
    """Return the access lists of all resources of a kind."""
    rows = GrantRow.filter(resource_type=resource.value).order_by("id")
    return _by_resource(await rows.values("resource_id", "principal_type", "principal_id", "permission"))


async def write(resource: GrantResource, resource_id: str, grants: Sequence[Grant]) -> None:
    """Replace the access list of a resource, inside the caller's transaction."""
    await remove(resource, resource_id)
    rows = [
        GrantRow(
            resource_type=resource.value,
            resource_id=resource_id,
            principal_type=grant.principal_type,
            principal_id=grant.principal_id,
            permission=grant.permission,
        )
        for grant in dict.fromkeys(grants)
    ]
    if rows:
        await GrantRow.bulk_create(rows)


async def remove(resource: GrantResource, resource_id: str) -> None:
    """Delete the access list of a resource, inside the caller's transaction."""
    await GrantRow.filter(resource_type=resource.value, resource_id=resource_id).delete()


def readable_condition(
    statement: SqlStatement, resource: GrantResource, column: str, reader: tuple[str, Sequence[str]]
) -> str:
    """Return the SQL condition that a reader (user id, group ids) has a grant on the resource id `column`."""
    user_id, group_ids = reader
    kind, users, groups = (
        statement.bind(resource.value),
        statement.among([user_id, EVERYBODY]),
        statement.among(group_ids),
    )
    return (
        f"EXISTS (SELECT 1 FROM access_grants g WHERE g.resource_type = {kind} AND g.resource_id = {column} "  # noqa: S608
        f"AND ((g.principal_type = 'user' AND g.principal_id {users}) "
        f"OR (g.principal_type = 'group' AND g.principal_id {groups})))"
    )


def _by_resource(rows: Sequence[Mapping[str, str]]) -> dict[str, tuple[Grant, ...]]:
    found: dict[str, list[Grant]] = {}
    for row in rows:
        grant = Grant(row["principal_type"], row["principal_id"], row["permission"])
        found.setdefault(row["resource_id"], []).append(grant)
    return {resource_id: tuple(grants) for resource_id, grants in found.items()}
