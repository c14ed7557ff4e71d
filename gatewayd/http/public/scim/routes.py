"""SCIM routes of users and groups (gatewayd-scim(7), Endpoints; RFC 7644, 3)."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any, Final

from aiohttp import hdrs, web

from gatewayd.http.body import warning_headers
from gatewayd.http.context import REPLY_HEADERS, base_url
from gatewayd.http.public.scim.messages import (
    MEDIA_TYPES,
    QueryParameters,
    large_scim_reply,
    parse_projection,
    parse_search,
    read_body,
    read_query,
    read_search,
    scim_reply,
    search_reply,
)
from gatewayd.http.reply_schemas import provisioning
from gatewayd.http.routes import Handler, Route, RouteAccess, RouteDialect
from gatewayd.http.schemas import answers
from gatewayd.http.scim_auth import AUDIT_RECORD, AuditRecord, summarise_ids
from gatewayd.json_encoder import EncodedJson, encode_pages
from gatewayd.scim.groups import ProvisionedGroups
from gatewayd.scim.projection import Projection
from gatewayd.scim.records import (
    GroupEntry,
    MembershipReference,
    Resource,
    ResourceType,
    UserEntry,
    WriteResult,
)
from gatewayd.scim.renderer import ROOT, render_group, render_member, render_user, resource_url
from gatewayd.scim.users import ProvisionedUsers
from gatewayd.time_slices import LoopPacer

USER, GROUP = ResourceType.USER, ResourceType.GROUP
NO_MEMBERS: Final = EncodedJson([b"[]"])
MEMBERS_PER_BATCH: Final = 200
"""Members that are rendered in one turn of the event loop."""

CHOICE_QUERY: Final = {
    "attributes": "Attributes of the reply, separated by commas.",
    "excludedAttributes": "Attributes to exclude from the reply, separated by commas.",
}
LIST_QUERY: Final = {
    "filter": "Filter expression (RFC 7644, 3.4.2.2).",
    "startIndex": "Number of the first resource, from 1.",
    "count": "Maximum number of resources.",
    "sortBy": "Attribute to sort by.",
    "sortOrder": "ascending (the default) or descending.",
    **CHOICE_QUERY,
}


def row(method: str, path: str, handler: Handler, summary: str, *statuses: int) -> Route:
    """Return a row below the base address; the body of a DELETE is ignored.

    `statuses` are those of a success.
    """
    takes = () if method == "DELETE" else MEDIA_TYPES
    return Route(
        method,
        ROOT + path,
        handler,
        RouteAccess.SCIM,
        summary,
        RouteDialect.SCIM,
        tag="scim",
        takes=takes,
        statuses=statuses,
    )


class ScimUserRoutes:
    """Routes of users; `provider` selects the external ids that are shown."""

    def __init__(self, users: ProvisionedUsers, provider: str) -> None:
        self._users = users
        self._provider = provider

    def routes(self) -> Sequence[Route]:
        """Return the rows (gatewayd-scim(7), Endpoints)."""
        one = "/Users/{id}"
        return [
            row("POST", "/Users", self.create, "Create a user", 201),
            row("GET", one, self.show, "Show a user", 200),
            row("PUT", one, self.replace, "Replace a user", 200),
            row("PATCH", one, self.change, "Change a user", 200),
            row("DELETE", one, self.deactivate, "Deactivate a user", 204),
            row("GET", "/Users", self.list, "List users", 200),
            row("POST", "/Users/.search", self.search, "Search users", 200),
        ]

    @answers(provisioning.scim_user, query=CHOICE_QUERY)
    async def create(self, request: web.Request) -> web.StreamResponse:
        """Take a User, answer it with its address (201)."""
        projection = parse_projection(read_query(request), USER)
        written = await self._users.create(await read_body(request))
        shown = self._render(request, written.entry)
        note_write(request, written, shown["id"])
        return scim_reply(projection.apply(shown), 201, {hdrs.LOCATION: shown["meta"]["location"]})

    @answers(provisioning.scim_user, query=CHOICE_QUERY)
    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer a User."""
        projection = parse_projection(read_query(request), USER)
        entry = await self._users.get(_id(request), with_groups=projection.wants("groups"))
        return scim_reply(projection.apply(self._render(request, entry)))

    @answers(provisioning.scim_user, query=CHOICE_QUERY)
    async def replace(self, request: web.Request) -> web.StreamResponse:
        """Take a User, answer the changed one."""
        projection = parse_projection(read_query(request), USER)
        written = await self._users.replace(_id(request), await read_body(request))
        note_write(request, written, _id(request))
        return scim_reply(projection.apply(self._render(request, written.entry)))

    @answers(provisioning.scim_user, query=CHOICE_QUERY)
    async def change(self, request: web.Request) -> web.StreamResponse:
        """Take a PatchOp, answer the changed User."""
        projection = parse_projection(read_query(request), USER)
        written = await self._users.patch(_id(request), await read_body(request))
        note_write(request, written, _id(request))
        return scim_reply(projection.apply(self._render(request, written.entry)))

    async def deactivate(self, request: web.Request) -> web.StreamResponse:
        """Answer 204; the account stays, inactive (gatewayd-scim(7), Users)."""
        note_write(request, await self._users.deactivate(_id(request)), _id(request))
        return scim_reply(None)

    @answers(provisioning.scim_users, query=LIST_QUERY)
    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer a ListResponse for the query string."""
        return await self._found(request, read_query(request))

    @answers(provisioning.scim_users)
    async def search(self, request: web.Request) -> web.StreamResponse:
        """Answer a ListResponse for a SearchRequest."""
        return await self._found(request, await read_search(request))

    async def _found(self, request: web.Request, asked: QueryParameters) -> web.StreamResponse:
        projection, search = parse_projection(asked, USER), parse_search(asked)
        request[AUDIT_RECORD] = AuditRecord(search.filter or "")
        found = await self._users.search(search, with_groups=projection.wants("groups"))
        shown, pace = [], LoopPacer()
        for entry in found.entries:
            shown.append(projection.apply(self._render(request, entry)))
            await pace.turn()
        return await search_reply(found, shown)

    def _render(self, request: web.Request, entry: UserEntry) -> Resource:
        return render_user(entry, self._provider, base_url(request))


class ScimGroupRoutes:
    """Routes of groups; `provider` selects the external ids that are shown."""

    def __init__(self, groups: ProvisionedGroups, provider: str) -> None:
        self._groups = groups
        self._provider = provider

    def routes(self) -> Sequence[Route]:
        """Return the rows (gatewayd-scim(7), Endpoints)."""
        one = "/Groups/{id}"
        return [
            row("POST", "/Groups", self.create, "Create a group", 201),
            row("GET", one, self.show, "Show a group", 200),
            row("PUT", one, self.replace, "Replace a group", 200),
            row("PATCH", one, self.change, "Change a group", 200, 204),
            row("DELETE", one, self.remove, "Remove a group", 204),
            row("GET", "/Groups", self.list, "List groups", 200),
            row("POST", "/Groups/.search", self.search, "Search groups", 200),
        ]

    @answers(provisioning.scim_group, query=CHOICE_QUERY)
    async def create(self, request: web.Request) -> web.StreamResponse:
        """Take a Group, answer it with its address (201)."""
        projection = parse_projection(read_query(request), GROUP)
        written = await self._groups.create(await read_body(request))
        note_write(request, written, written.entry.group.id)
        address = resource_url(GROUP, written.entry.group.id, base_url(request))
        shown = await self._reread(request, written.entry, projection)
        return await large_scim_reply(shown, 201, {hdrs.LOCATION: address})

    @answers(provisioning.scim_group, query=CHOICE_QUERY)
    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer a Group; its members are read only when they are shown."""
        projection = parse_projection(read_query(request), GROUP)
        entry = await self._groups.get(_id(request), with_members=projection.wants("members"))
        return await large_scim_reply(await self._render(request, entry, projection))

    @answers(provisioning.scim_group, query=CHOICE_QUERY)
    async def replace(self, request: web.Request) -> web.StreamResponse:
        """Take a Group, answer the changed one."""
        projection = parse_projection(read_query(request), GROUP)
        written = await self._groups.replace(_id(request), await read_body(request))
        note_write(request, written, _id(request))
        return await large_scim_reply(await self._reread(request, written.entry, projection))

    @answers(provisioning.scim_group, query=CHOICE_QUERY)
    async def change(self, request: web.Request) -> web.StreamResponse:
        """Take a PatchOp; answer 204, or the Group when the query string selects attributes."""
        projection = parse_projection(read_query(request), GROUP)
        written = await self._groups.patch(_id(request), await read_body(request))
        note_write(request, written, _id(request))
        if not projection.is_asked:
            return scim_reply(None)
        return await large_scim_reply(await self._reread(request, written.entry, projection))

    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Answer 204."""
        note_write(request, await self._groups.remove(_id(request)), _id(request))
        return scim_reply(None)

    @answers(provisioning.scim_groups, query=LIST_QUERY)
    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer a ListResponse for the query string."""
        return await self._found(request, read_query(request))

    @answers(provisioning.scim_groups)
    async def search(self, request: web.Request) -> web.StreamResponse:
        """Answer a ListResponse for a SearchRequest."""
        return await self._found(request, await read_search(request))

    async def _found(self, request: web.Request, asked: QueryParameters) -> web.StreamResponse:
        projection, search = parse_projection(asked, GROUP), parse_search(asked)
        request[AUDIT_RECORD] = AuditRecord(search.filter or "")
        found = await self._groups.search(search, with_members=projection.wants("members"))
        shown = [await self._render(request, entry, projection) for entry in found.entries]
        return await search_reply(found, shown)

    async def _reread(self, request: web.Request, entry: GroupEntry, projection: Projection) -> Resource:
        if entry.members is None and projection.wants("members"):
            entry = await self._groups.get(entry.group.id, with_members=True)
        return await self._render(request, entry, projection)

    async def _render(self, request: web.Request, entry: GroupEntry, projection: Projection) -> Resource:
        """Return the shown attributes of a group. A large group is rendered in parts, so that the event loop
        stays free."""
        base = base_url(request)
        bare = replace(entry, members=None if entry.members is None else ())
        shown = projection.apply(render_group(bare, self._provider, base))
        if not entry.members or "members" not in shown:
            return shown
        members = EncodedJson(await encode_pages(_pages(entry.members, projection, base)))
        if members == NO_MEMBERS:
            del shown["members"]
            return shown
        return {name: members if name == "members" else value for name, value in shown.items()}


async def _pages(
    members: Sequence[MembershipReference], projection: Projection, base: str
) -> AsyncIterator[Sequence[Resource]]:
    for start in range(0, len(members), MEMBERS_PER_BATCH):
        some = members[start : start + MEMBERS_PER_BATCH]
        rendered = {"members": [render_member(each, base) for each in some]}
        yield projection.apply(rendered).get("members", ())


def note_write(request: web.Request, written: WriteResult[Any], target: str) -> None:
    """Record the change of a request for its audit line, and list skipped members in the warning header."""
    request[AUDIT_RECORD] = AuditRecord(
        target, written.before, written.after, written.changes, written.skipped
    )
    if written.skipped:
        sentence = f"members were skipped as no user has their id, {summarise_ids(written.skipped)}"
        request[REPLY_HEADERS].update(warning_headers([sentence]))


def _id(request: web.Request) -> str:
    return request.match_info["id"]
