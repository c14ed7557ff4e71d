"""Routes of `/v1/groups`: groups and their members."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from aiohttp import web

from gatewayctl.wire import groups as wire
from gatewayctl.wire import routes
from gatewayctl.wire.base import Outcome
from gatewayd.accounts.groups import Groups
from gatewayd.accounts.records import Group, GroupChange, MembershipSource, NewGroup, User
from gatewayd.accounts.users import Users
from gatewayd.http.audit import note_change
from gatewayd.http.body import pages_reply, read_model
from gatewayd.http.control.accounts import users as user_routes
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import WriteTransactions, control_reply, timestamp
from gatewayd.http.routes import Route
from gatewayd.scim.links import EXTERNAL_ID_FIELD, read_links

# Sources that may add a removed member again.
PROVIDER_SOURCES: Final = frozenset({MembershipSource.SCIM, MembershipSource.OAUTH})


class ControlGroupRoutes:
    """Routes of groups on the control socket."""

    def __init__(self, groups: Groups, users: Users, writes: WriteTransactions) -> None:
        self._groups = groups
        self._users = users
        self._writes = writes

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.LIST_GROUPS, self.list),
            serve(routes.CREATE_GROUP, self.create),
            serve(routes.ENSURE_GROUP, self.ensure),
            serve(routes.GET_GROUP, self.show),
            serve(routes.CHANGE_GROUP, self.change),
            serve(routes.REMOVE_GROUP, self.remove),
            serve(routes.LIST_MEMBERS, self.members),
            serve(routes.ADD_MEMBERS, self.add_members),
            serve(routes.REMOVE_MEMBERS, self.remove_members),
        ]

    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `GroupList`; `?user=` limits it to the groups of one user."""
        ref = request.query.get("user")
        user_id = (await self._users.resolve(ref)).id if ref is not None else None
        found = await self._groups.list(user_id)
        return control_reply(wire.GroupList(groups=await render_all(found, self._groups)))

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer `Group` for an id or name."""
        group = await self._groups.resolve(request.match_info["ref"])
        count = (await self._groups.count_members([group]))[group.id]
        counted = await self._groups.count_by_source(group.id)
        return control_reply(
            render(group, count, {each.value: counted[each] for each in MembershipSource if each in counted})
        )

    async def create(self, request: web.Request) -> web.StreamResponse:
        """Take `NewGroup`, answer `GroupWritten`."""
        wanted = await read_model(request, wire.NewGroup)
        async with self._writes.block(request, "group create", wanted.name) as dry_run:
            group = await self._groups.create(_new_group(wanted))
            note_change(request, group.name, {"permissions": group.permissions or None})
        return render_write(render(group, 0), Outcome.CREATED, dry_run=dry_run)

    async def ensure(self, request: web.Request) -> web.StreamResponse:
        """Take `NewGroup`, answer `GroupWritten`: created, changed or unchanged."""
        wanted = await read_model(request, wire.NewGroup)
        async with self._writes.block(request, "group ensure", wanted.name) as dry_run:
            group, outcome = await self._groups.ensure(_new_group(wanted))
            note_change(request, group.name, {"permissions": group.permissions or None})
            row = await self._row(group)
        return render_write(row, Outcome(outcome.value), dry_run=dry_run)

    async def change(self, request: web.Request) -> web.StreamResponse:
        """Take `GroupChange`, answer `GroupWritten`: changed or unchanged."""
        wanted = await read_model(request, wire.GroupChange)
        change = GroupChange(name=wanted.name, description=wanted.description)
        async with self._writes.block(request, "group change", request.match_info["ref"]) as dry_run:
            before = await self._groups.resolve(request.match_info["ref"])
            group = await self._groups.change(before.id, change)
            replaced = {"name": before.name, "description": before.description}
            note_change(request, before.name, wanted.model_dump(), replaced)
            row = await self._row(group)
        return render_write(row, _outcome(group != before), dry_run=dry_run)

    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Answer `GroupWritten` with the group before its removal."""
        async with self._writes.block(request, "group remove", request.match_info["ref"]) as dry_run:
            group = await self._groups.resolve(request.match_info["ref"])
            row = await self._row(group)
            await self._groups.remove(group.id)
            note_change(request, group.name, before={"permissions": group.permissions})
        return render_write(row, Outcome.REMOVED, dry_run=dry_run)

    async def members(self, request: web.Request) -> web.StreamResponse:
        """Answer `MemberList`."""
        group = await self._groups.resolve(request.match_info["ref"])
        return await pages_reply(self._pages(group, await self._groups.list_member_ids(group.id)), "users")

    async def add_members(self, request: web.Request) -> web.StreamResponse:
        """Take `GroupMembers`, answer `GroupWritten` with the number added; not_found for an unknown user."""
        wanted = await read_model(request, wire.GroupMembers)
        async with self._writes.block(request, "group add-member", request.match_info["ref"]) as dry_run:
            group = await self._groups.resolve(request.match_info["ref"])
            count = await self._groups.add_members(group.id, await self._ids(wanted))
            note_change(request, group.name, {"added": wanted.users})
            row = await self._row(await self._groups.get(group.id))
        return render_write(row, _outcome(count), dry_run=dry_run, members=count)

    async def remove_members(self, request: web.Request) -> web.StreamResponse:
        """Take `RemovedMembers`, answer `GroupWritten` with the number of removed members."""
        wanted = await read_model(request, wire.RemovedMembers)
        source = None if wanted.source is None else MembershipSource(wanted.source)
        async with self._writes.block(request, "group remove-member", request.match_info["ref"]) as dry_run:
            group = await self._groups.resolve(request.match_info["ref"])
            user_ids = await self._ids(wanted)
            sources = await self._groups.list_sources(group.id, user_ids)
            provided = _provided(sources, user_ids, source)
            count = await self._groups.remove_members(group.id, user_ids, source)
            note_change(request, group.name, {"removed": wanted.users})
            row = await self._row(await self._groups.get(group.id))
        return render_write(row, _outcome(count), dry_run=dry_run, members=count, provided=provided)

    async def _pages(self, group: Group, user_ids: Sequence[str]) -> AsyncIterator[Sequence[Any]]:
        """Yield pages of members as JSON."""
        async for page in self._users.pages(user_ids):
            sources = await self._groups.list_sources(group.id, [user.id for user in page])
            members = [_member(user, group, sources.get(user.id, ())) for user in page]
            yield [member.model_dump(mode="json") for member in members]

    async def _row(self, group: Group) -> wire.Group:
        return (await render_all([group], self._groups))[0]

    async def _ids(self, members: wire.GroupMembers) -> Sequence[str]:
        return [(await self._users.resolve(ref)).id for ref in members.users]


async def render_all(groups: Sequence[Group], service: Groups) -> list[wire.Group]:
    """Return groups as the wire models; one query counts the members of all groups."""
    counts = await service.count_members(groups)
    return [render(group, counts[group.id]) for group in groups]


def render(group: Group, member_count: int, sources: Mapping[str, int] | None = None) -> wire.Group:
    """Return a group as its wire model."""
    return wire.Group(
        id=group.id,
        name=group.name,
        description=group.description,
        permissions=group.permissions,
        member_count=member_count,
        created_at=timestamp(group.created_at),
        updated_at=timestamp(group.updated_at),
        external_ids=read_links(group.scim, EXTERNAL_ID_FIELD),
        sources=dict(sources or {}),
    )


def render_write(
    row: wire.Group, outcome: Outcome, *, dry_run: bool, members: int = 0, provided: int = 0
) -> web.Response:
    """Return the reply to a write."""
    counts = {"changed_members": members, "provided_members": provided}
    return control_reply(wire.GroupWritten(**row.model_dump(), outcome=outcome, dry_run=dry_run, **counts))


def _member(user: User, group: Group, sources: Sequence[MembershipSource]) -> wire.Member:
    row = user_routes.render(user, [group.name]).model_dump()
    return wire.Member(**row, sources=[source.value for source in MembershipSource if source in sources])


def _provided(
    sources: Mapping[str, Sequence[MembershipSource]],
    user_ids: Sequence[str],
    source: MembershipSource | None,
) -> int:
    """Return the number of removed members that an identity provider has added."""
    removed = PROVIDER_SOURCES if source is None else PROVIDER_SOURCES & {source}
    return sum(not removed.isdisjoint(sources.get(user_id, ())) for user_id in set(user_ids))


def _outcome(is_changed: object) -> Outcome:
    return Outcome.CHANGED if is_changed else Outcome.UNCHANGED


def _new_group(wanted: wire.NewGroup) -> NewGroup:
    return NewGroup(
        name=wanted.name, description=wanted.description or "", permissions=wanted.permissions or {}
    )
