"""User service of SCIM, for all accounts of the gateway (RFC 7644, 3; gatewayd-scim(7), Users).

The rules of `accounts.users` apply here too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gatewayd.accounts.display_identity import address_of, display_identity
from gatewayd.accounts.records import NewUser, ProviderIdentity, Role, User, UserChange
from gatewayd.accounts.texts import MAX_NAME, email_key, strip_direction_marks
from gatewayd.accounts.users import CHANGE_LOCK, Users
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.scim.external_ids import EXTERNAL_ID, changed_store, check_draft, check_steps, new_store
from gatewayd.scim.filters.conditions import CompareCondition, Operator
from gatewayd.scim.filters.list_query import plan_query, start_index_of
from gatewayd.scim.filters.resolver import has_external_id_eq
from gatewayd.scim.input_records import UserDraft
from gatewayd.scim.interfaces import ScimDirectory
from gatewayd.scim.parser import read_operations, read_user
from gatewayd.scim.patch.resource import patch_stepwise
from gatewayd.scim.patch.steps import PatchStep, parse_steps
from gatewayd.scim.records import (
    Resource,
    ResourceQuery,
    ResourceType,
    ScimSearchResult,
    SearchParameters,
    UserEntry,
    WriteResult,
)
from gatewayd.scim.renderer import auditable_attributes, render_user, writable_attributes
from gatewayd.time_slices import iterate_paced
from gatewayd.transactions import Transactor


class ProvisionedUsers:
    """The user service of SCIM. `provider` is the provider of external ids, "" for none.

    Errors: invalid_request with a SCIM error type as code, or with the field of an account; not_found;
    conflict with the code `taken` or `last_administrator`; not_configured for an external id without a
    provider. A failed request changes nothing; a request without a change writes nothing.
    """

    def __init__(self, users: Users, directory: ScimDirectory, transactor: Transactor, provider: str) -> None:
        self._users = users
        self._directory = directory
        self._transactor = transactor
        self._provider = provider

    async def create(self, body: Mapping[str, Any]) -> WriteResult[UserEntry]:
        """Add an account without a password; it is active unless the body has `active: false`."""
        draft = read_user(body)
        check_draft(draft, self._provider)
        identity = _completed(draft.identity)
        new = NewUser(
            email=address_of(identity),
            name=_name(identity),
            active=draft.active is not False,
            scim=new_store(draft, self._provider),
            identity=identity,
        )
        async with self._transactor.exclusive(CHANGE_LOCK):
            await self._check_subject(draft)
            user = await self._users.create(new)
        return WriteResult(UserEntry(user, ()), None, self._audited(user))

    async def get(self, user_id: str, *, with_groups: bool) -> UserEntry:
        """Return an account; raise not_found without it."""
        user = await self._users.get(user_id)
        return (await self._entries([user], with_groups=with_groups))[0]

    async def replace(self, user_id: str, body: Mapping[str, Any]) -> WriteResult[UserEntry]:
        """Replace the data of a person; absent `active` and `externalId` stay unchanged."""
        draft = read_user(body, _addresses(await self._users.get(user_id)))
        check_draft(draft, self._provider)
        draft = replace(draft, identity=_completed(draft.identity))
        async with self._transactor.exclusive(CHANGE_LOCK):
            before = await self._users.get(user_id)
            after = await self._apply(before, draft, is_whole=True)
        return await self._written(before, after)

    async def patch(self, user_id: str, body: Mapping[str, Any]) -> WriteResult[UserEntry]:
        """Apply all operations of a PATCH request or none."""
        planned = await iterate_paced(parse_steps(read_operations(body), ResourceType.USER))
        check_steps(planned, self._provider)
        # Planned outside of the transaction: many steps are slow, and on SQLite a transaction blocks others.
        found = await self._users.get(user_id)
        draft = await self._patched(found, planned)
        async with self._transactor.exclusive(CHANGE_LOCK):
            before = await self._users.get(user_id)
            if before != found:
                draft = await self._patched(before, planned)
            after = await self._apply(before, draft, is_whole=False)
        return await self._written(before, after)

    async def deactivate(self, user_id: str) -> WriteResult[UserEntry]:
        """Deactivate an account, which stays visible (gatewayd-scim(7), Users); idempotent."""
        async with self._transactor.exclusive(CHANGE_LOCK):
            before = await self._users.get(user_id)
            after = await self._users.change(user_id, UserChange(active=False), None)
        return await self._written(before, after)

    async def search(self, search: SearchParameters, *, with_groups: bool) -> ScimSearchResult[UserEntry]:
        """Return a page of accounts; an unknown external id is searched as an OAuth subject.

        See gatewayd-scim(7), External ids.
        """
        query = plan_query(search, ResourceType.USER, self._provider)
        page = await self._directory.list_users(query)
        if page.total == 0 and query.condition is not None and has_external_id_eq(query.condition):
            page = await self._directory.list_users(replace(query, by_subject=True))
        entries = await self._entries(page.items, with_groups=with_groups)
        return ScimSearchResult(entries, page.total, start_index_of(search))

    async def _check_subject(self, draft: UserDraft) -> None:
        """Raise conflict if the person has an account from a sign-in, which a client finds by its filter."""
        if not draft.external_id:
            return
        condition = CompareCondition(EXTERNAL_ID, Operator.EQ, draft.external_id)
        query = ResourceQuery(condition=condition, provider=self._provider, limit=1, by_subject=True)
        if (await self._directory.list_users(query)).total:
            raise GatewayError(
                ErrorKind.CONFLICT,
                "cannot create the user: the externalId is the OAuth subject of an account",
                param="externalId",
                code="taken",
            )

    async def _patched(self, before: User, planned: Sequence[PatchStep]) -> UserDraft:
        """Return the account after the steps of a message."""
        resource = writable_attributes(self._rendered(before))
        await iterate_paced(patch_stepwise(resource, planned))
        draft = read_user(resource, _addresses(before))
        # A pending account is rendered as not active: only an explicit step changes `active`.
        sets_active = any(step.attribute == "active" for step in planned)
        return replace(draft, active=draft.active if sets_active else None)

    async def _apply(self, before: User, draft: UserDraft, *, is_whole: bool) -> User:
        change = UserChange(active=draft.active, scim=changed_store(before, draft, self._provider))
        if draft.active and before.role is Role.PENDING:
            change = replace(change, role=Role.USER)
        change = _described(before, change, draft.identity, is_whole=is_whole)
        return await self._users.change(before.id, change, None)

    async def _written(self, before: User, after: User) -> WriteResult[UserEntry]:
        entry = (await self._entries([after], with_groups=True))[0]
        return WriteResult(entry, self._audited(before), self._audited(after))

    async def _entries(self, users: Sequence[User], *, with_groups: bool) -> list[UserEntry]:
        if not with_groups or not users:
            return [UserEntry(user) for user in users]
        groups = await self._directory.list_groups_of([user.id for user in users])
        return [UserEntry(user, groups.get(user.id, ())) for user in users]

    def _rendered(self, user: User) -> Resource:
        return render_user(UserEntry(user), self._provider, "")

    def _audited(self, user: User) -> Resource:
        return auditable_attributes(self._rendered(user))


def _described(before: User, change: UserChange, identity: ProviderIdentity, *, is_whole: bool) -> UserChange:
    """Return a change with the identity; an identity equal to the displayed one changes nothing.

    The account has only the address that the provider sends; its former address becomes free.
    """
    address = _moved_to(before, identity)
    if identity == display_identity(before) and not (is_whole and address):
        return change
    return replace(change, identity=identity, email=address, name=_name(identity))


def _addresses(user: User) -> frozenset[str]:
    """Return the present addresses of an account, which stay valid under stricter rules."""
    person = display_identity(user)
    return frozenset({person.user_name or "", *(email.value for email in person.emails)})


def _moved_to(before: User, identity: ProviderIdentity) -> str | None:
    """Return the new e-mail address of an account, None when it is the present one."""
    address = address_of(identity)
    return None if email_key(address) == before.email else address


def _completed(identity: ProviderIdentity) -> ProviderIdentity:
    """Return the identity with a display name, for a complete user."""
    return replace(identity, display_name=_name(identity))


def _name(identity: ProviderIdentity) -> str:
    """Return the display name of the account."""
    parts = (part for part in (identity.given_name, identity.family_name) if part)
    name = identity.display_name or identity.formatted_name or " ".join(parts) or identity.user_name or ""
    return strip_direction_marks(name)[:MAX_NAME].strip() or identity.user_name or ""
