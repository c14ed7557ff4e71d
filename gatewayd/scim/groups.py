"""Group service of SCIM (RFC 7644, 3; gatewayd-scim(7), Groups).

A provider sees and changes only members that providers added; members from other sources stay.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final

from gatewayd.accounts.groups import CHANGE_LOCK, MAX_MEMBERS_AT_ONCE, Groups
from gatewayd.accounts.records import Group, GroupChange, MembershipSource, NewGroup
from gatewayd.errors import invalid
from gatewayd.scim.external_ids import changed_store, check_draft, check_steps, new_store
from gatewayd.scim.filters.list_query import plan_query, start_index_of
from gatewayd.scim.filters.syntax import FilterExpression, comparisons
from gatewayd.scim.input_records import GroupDraft, MemberChange, PatchVerb
from gatewayd.scim.interfaces import ScimDirectory
from gatewayd.scim.parser import read_group, read_operations
from gatewayd.scim.patch.resource import plan_group
from gatewayd.scim.patch.steps import parse_steps
from gatewayd.scim.patch.value_selection import compile_selector
from gatewayd.scim.records import (
    GroupEntry,
    MembershipReference,
    Resource,
    ResourceType,
    ScimSearchResult,
    SearchParameters,
    WriteResult,
)
from gatewayd.scim.renderer import auditable_attributes, render_group, render_member, writable_attributes
from gatewayd.scim.values import too_many
from gatewayd.time_slices import LoopPacer, iterate_paced
from gatewayd.transactions import Transactor

MAX_LISTED_MEMBERS: Final = 50_000
"""Maximum number of members on a page of several groups."""

MAX_MEMBER_COMPARISONS: Final = 500_000
"""Maximum comparisons of filters with members per message; each filter counts one comparison more."""

_AT_ONCE: Final = 100


@dataclass(slots=True)
class _Tally:
    """Result of the member changes of one message: counts, and unknown user ids.

    `compared` counts the comparisons of filters with members. `members` caches the members of the group, None
    after a change.
    """

    added: int = 0
    removed: int = 0
    compared: int = 0
    members: Sequence[MembershipReference] | None = None
    skipped: dict[str, None] = field(default_factory=dict)

    def __str__(self) -> str:
        counts = [f"+{self.added}"] * bool(self.added) + [f"-{self.removed}"] * bool(self.removed)
        return " ".join(["members", *counts]) if counts else ""


class ProvisionedGroups:
    """The group service of SCIM. `provider` is the provider of external ids, "" for none.

    Errors: invalid_request with a SCIM error type as code, or with the field of a group; not_found; conflict
    with the code `taken`; too_large for more than 10,000 members in one message; not_configured for an
    external id without a provider. A failed request changes nothing; a request without a change writes
    nothing.

    Unknown user ids of members are skipped: a provider does not repeat a refused message, so one account that
    was removed here would block all other changes of the group.

    A message may name 10,000 members; it is parsed in a thread, as that takes tens of milliseconds.
    """

    def __init__(
        self, groups: Groups, directory: ScimDirectory, transactor: Transactor, provider: str
    ) -> None:
        self._groups = groups
        self._directory = directory
        self._transactor = transactor
        self._provider = provider

    async def create(self, body: Mapping[str, Any]) -> WriteResult[GroupEntry]:
        """Add a group; the entry has `members` only if there are none."""
        draft = await asyncio.to_thread(read_group, body)
        check_draft(draft, self._provider)
        tally = _Tally()
        async with self._transactor.exclusive(CHANGE_LOCK):
            members = await self._known(draft.members or (), tally)
            new = NewGroup(draft.display_name, scim=new_store(draft, self._provider))
            group = await self._groups.create(new)
            if members:
                displays = draft.displays
                tally.added = await self._groups.add_members(
                    group.id, members, MembershipSource.SCIM, displays
                )
                group = await self._groups.get(group.id)
        entry = GroupEntry(group, None if members else ())
        return WriteResult(entry, None, self._audited(group), str(tally), tuple(tally.skipped))

    async def get(self, group_id: str, *, with_members: bool) -> GroupEntry:
        """Return a group; raise not_found without it."""
        group = await self._groups.get(group_id)
        return (await self._entries([group], with_members=with_members))[0]

    async def replace(self, group_id: str, body: Mapping[str, Any]) -> WriteResult[GroupEntry]:
        """Replace a group; absent `members` and `externalId` stay unchanged."""
        draft = await asyncio.to_thread(read_group, body)
        check_draft(draft, self._provider)
        changes: tuple[MemberChange, ...] = ()
        if draft.members is not None:
            changes = (MemberChange(PatchVerb.REPLACE, draft.members, displays=draft.displays),)
        async with self._transactor.exclusive(CHANGE_LOCK):
            before = await self._groups.get(group_id)
            return await self._apply(before, draft, changes)

    async def patch(self, group_id: str, body: Mapping[str, Any]) -> WriteResult[GroupEntry]:
        """Apply all operations of a PATCH request or none; other members are not loaded."""
        planned = await iterate_paced(parse_steps(read_operations(body), ResourceType.GROUP))
        check_steps(planned, self._provider)
        async with self._transactor.exclusive(CHANGE_LOCK):
            before = await self._groups.get(group_id)
            shown = writable_attributes(self._rendered(before))
            resource, changes = await asyncio.to_thread(plan_group, shown, planned)
            return await self._apply(before, read_group(resource), changes)

    async def remove(self, group_id: str) -> WriteResult[GroupEntry]:
        """Delete a group; its members keep their accounts. `after` is empty."""
        async with self._transactor.exclusive(CHANGE_LOCK):
            before = await self._groups.get(group_id)
            await self._groups.remove(group_id)
        return WriteResult(GroupEntry(before), self._audited(before), {})

    async def search(self, search: SearchParameters, *, with_members: bool) -> ScimSearchResult[GroupEntry]:
        """Return a page of groups; with members it ends before 50,000 members, after at least one group.

        A page may be shorter than requested (RFC 7644 section 3.4.2.4): the client continues after it.
        """
        page = await self._directory.list_groups(plan_query(search, ResourceType.GROUP, self._provider))
        groups = await self._fitting(page.items) if with_members else page.items
        entries = await self._entries(groups, with_members=with_members)
        return ScimSearchResult(entries, page.total, start_index_of(search))

    async def _apply(
        self, before: Group, draft: GroupDraft, changes: Sequence[MemberChange]
    ) -> WriteResult[GroupEntry]:
        name = None if draft.display_name == before.name else draft.display_name
        change = GroupChange(name=name, scim=changed_store(before, draft, self._provider))
        after = before
        if change != GroupChange():
            after = await self._groups.change(before.id, change)
        tally = await self._change_members(before.id, changes)
        if tally.added or tally.removed:
            after = await self._groups.get(before.id)
        audited = self._audited(before), self._audited(after)
        return WriteResult(GroupEntry(after), *audited, str(tally), tuple(tally.skipped))

    async def _change_members(self, group_id: str, changes: Sequence[MemberChange]) -> _Tally:
        tally = _Tally()
        for change in changes:
            before = tally.added, tally.removed
            match change.verb:
                case _ if change.is_naming:
                    await self._name(group_id, change, tally)
                case PatchVerb.ADD:
                    wanted = await self._known(change.user_ids, tally)
                    tally.added += await self._add(group_id, wanted, change.displays)
                case PatchVerb.REPLACE:
                    wanted = await self._known(change.user_ids, tally)
                    more, fewer = await self._groups.set_members(
                        group_id, wanted, MembershipSource.SCIM, change.displays
                    )
                    tally.added, tally.removed = tally.added + more, tally.removed + fewer
                case PatchVerb.REMOVE if change.where is None:
                    tally.removed += await self._remove(group_id, change.user_ids)
                case PatchVerb.REMOVE:
                    tally.removed += await self._remove_where(group_id, change.where, tally)
            if before != (tally.added, tally.removed):
                tally.members = None
        return tally

    async def _add(self, group_id: str, user_ids: Sequence[str], displays: Mapping[str, str]) -> int:
        if not user_ids:
            return 0
        return await self._groups.add_members(group_id, user_ids, MembershipSource.SCIM, displays)

    async def _remove(self, group_id: str, user_ids: Sequence[str]) -> int:
        if not user_ids:
            return 0
        _check_count(user_ids)
        return await self._groups.remove_members(group_id, user_ids, MembershipSource.SCIM)

    async def _remove_where(self, group_id: str, where: FilterExpression, tally: _Tally) -> int:
        gone = await self._selected(group_id, where, tally)
        return sum([await self._remove(group_id, batch) for batch in _batches(gone)])

    async def _name(self, group_id: str, change: MemberChange, tally: _Tally) -> None:
        """Set the display name of members, or restore that of the account by removing and adding them."""
        user_ids = await self._selected(group_id, change.where, tally)
        if not user_ids and change.where is not None and change.display is not None:
            message = "cannot change members.display: the filter selects no member"
            raise invalid(message, param="members.display", code="noTarget")
        for batch in _batches(user_ids):
            displays = {}
            if change.display is None:
                tally.removed += await self._remove(group_id, batch)
            else:
                displays = dict.fromkeys(batch, change.display)
            tally.added += await self._add(group_id, batch, displays)

    async def _selected(self, group_id: str, where: FilterExpression | None, tally: _Tally) -> list[str]:
        """Return the ids of the members that a filter selects; None selects all."""
        members = await self._members(group_id, where, tally)
        if where is None:
            return [member.id for member in members]
        is_one = compile_selector(where, ResourceType.GROUP, "members")
        pace, found = LoopPacer(), list[str]()
        for start in range(0, len(members), _AT_ONCE):
            some = members[start : start + _AT_ONCE]
            found.extend(member.id for member in some if is_one(render_member(member, "")))
            await pace.turn()
        return found

    async def _members(
        self, group_id: str, where: FilterExpression | None, tally: _Tally
    ) -> Sequence[MembershipReference]:
        """Return the members for a filter; raise too_large above MAX_MEMBER_COMPARISONS per message."""
        if tally.members is None:
            group = await self._groups.get(group_id)
            count = (await self._groups.count_members([group], MembershipSource.SCIM))[group_id]
        else:
            count = len(tally.members)
        tally.compared += count * (1 + (0 if where is None else comparisons(where)))
        if tally.compared > MAX_MEMBER_COMPARISONS:
            raise too_many("comparisons with members", MAX_MEMBER_COMPARISONS)
        if tally.members is None:
            tally.members = (await self._directory.list_members_of([group_id])).get(group_id, ())
        return tally.members

    async def _known(self, user_ids: Sequence[str], tally: _Tally) -> Sequence[str]:
        """Return the ids of existing users, and record the others as skipped."""
        if not user_ids:
            return ()
        _check_count(user_ids)
        known = await self._directory.list_known(user_ids)
        tally.skipped.update((user_id, None) for user_id in user_ids if user_id not in known)
        return [user_id for user_id in user_ids if user_id in known]

    async def _fitting(self, groups: Sequence[Group]) -> Sequence[Group]:
        """Return the first groups that have at most MAX_LISTED_MEMBERS together, at least one."""
        if len(groups) < 2:
            return groups
        counts = await self._groups.count_members(groups, MembershipSource.SCIM)
        sums = accumulate(counts[group.id] for group in groups)
        return groups[: max(1, sum(members <= MAX_LISTED_MEMBERS for members in sums))]

    async def _entries(self, groups: Sequence[Group], *, with_members: bool) -> list[GroupEntry]:
        if not with_members or not groups:
            return [GroupEntry(group) for group in groups]
        members = await self._directory.list_members_of([group.id for group in groups])
        return [GroupEntry(group, members.get(group.id, ())) for group in groups]

    def _rendered(self, group: Group) -> Resource:
        return render_group(GroupEntry(group), self._provider, "")

    def _audited(self, group: Group) -> Resource:
        return auditable_attributes(self._rendered(group))


def _batches(user_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the ids in batches of MAX_MEMBERS_AT_ONCE."""
    for start in range(0, len(user_ids), MAX_MEMBERS_AT_ONCE):
        yield user_ids[start : start + MAX_MEMBERS_AT_ONCE]


def _check_count(user_ids: Sequence[str]) -> None:
    if len(user_ids) > MAX_MEMBERS_AT_ONCE:
        raise too_many("members", MAX_MEMBERS_AT_ONCE)
