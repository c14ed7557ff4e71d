"""One way in for every external identity: to its account, with its role and groups."""

import hashlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

from gatewayd import ids
from gatewayd.accounts.groups import Groups
from gatewayd.accounts.identity.external_groups import ExternalGroups
from gatewayd.accounts.identity.interfaces import IdentityStore
from gatewayd.accounts.identity.records import (
    EVERYBODY,
    MAX_ISSUER_CHARACTERS,
    MAX_PROVIDER_CHARACTERS,
    MAX_SUBJECT_CHARACTERS,
    ExternalIdentity,
    IdentityRules,
    LinkedIdentity,
    RefusalCode,
    ResolvedAccount,
    ResolveOutcome,
    RoleRules,
)
from gatewayd.accounts.records import MembershipSource, NewUser, Role, User, UserChange
from gatewayd.accounts.runtime_settings import RuntimeSettings
from gatewayd.accounts.texts import (
    MAX_NAME,
    clean,
    email_key,
    is_plain,
    normalise_email,
    object_or_empty,
    strip_direction_marks,
)
from gatewayd.accounts.users import CHANGE_LOCK, Users
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.transactions import Transactor

log = logging.getLogger(__name__)

LEEWAY_SECONDS: Final = 86_400
"""Maximum set-back of the clock after a value was used."""


def refuse(code: RefusalCode, reason: str) -> GatewayError:
    """Return the refusal of a sign-in: `code` is for the browser, `reason` for the log."""
    return GatewayError(ErrorKind.FORBIDDEN, f"cannot sign in: {reason}", code=code.value)


@dataclass(frozen=True, slots=True)
class _Match:
    """An account that an identity may use: by its link, or by what allows to link it now."""

    user: User
    link: LinkedIdentity | None


class ExternalAccounts:
    """Finds or creates the account of an external identity.

    `may_create_first` allows the first account of the gateway, which is an administrator.
    """

    def __init__(
        self,
        users: Users,
        groups: Groups,
        runtime: RuntimeSettings,
        store: IdentityStore,
        transactor: Transactor,
        *,
        may_create_first: bool = False,
        clock: ids.Clock = ids.now,
    ) -> None:
        self._users = users
        self._groups = groups
        self._memberships = ExternalGroups(groups)
        self._runtime = runtime
        self._store = store
        self._transactor = transactor
        self._may_create_first = may_create_first
        self._clock = clock

    async def resolve(self, identity: ExternalIdentity, rules: IdentityRules) -> ResolvedAccount:
        """Return the account of an identity, with the role and the groups that its claims give.

        The account is that of the link (issuer and subject), else that of the SCIM external id of the same
        provider, else that of a verified address as `rules` allow, else a new one. Raises forbidden with a
        `RefusalCode`; a refusal changes nothing, except that a new account which is pending stays.
        """
        identity = _checked(identity)
        role = _role_of(identity, rules.roles)
        _check_domain(identity, rules)
        async with self._transactor.exclusive(CHANGE_LOCK):
            match = await self._match(identity, rules)
            if match is None:
                found = await self._create(identity, rules, role)
            else:
                found = await self._use(match, identity, rules.roles, role)
            changed = await self._memberships.apply(found.user, identity, rules.groups)
        if found.user.role is Role.PENDING:
            raise refuse(RefusalCode.PENDING, f"the account {found.user.email!r} waits for an administrator")
        return replace(found, changes=(*found.changes, *changed))

    async def find(self, issuer: str, subject: str) -> User | None:
        """Return the account that an identity is linked to."""
        link = await self._store.find(issuer, subject)
        return None if link is None else await self._users.find(link.user_id)

    async def link(self, user_id: str, identity: ExternalIdentity) -> LinkedIdentity:
        """Link an identity to an account whose owner asked for it; raise forbidden (`email_taken`) if the
        identity belongs to another account, conflict if the account has another one of this provider."""
        identity = _checked(identity)
        async with self._transactor.exclusive(CHANGE_LOCK):
            user = await self._users.get(user_id)
            owner = await self._find_owner(identity)
            if owner is not None and owner.user.id != user_id:
                raise refuse(RefusalCode.EMAIL_TAKEN, "the identity belongs to another account")
            if owner is not None and owner.link is not None:
                return owner.link
            return await self._add_link(user, identity)

    async def prune(self) -> int:
        """Delete the values that were used once and cannot be accepted any more; return how many."""
        return await self._store.prune(self._clock() - LEEWAY_SECONDS)

    async def _match(self, identity: ExternalIdentity, rules: IdentityRules) -> _Match | None:
        found = await self._find_owner(identity)
        if found is None and identity.email:
            found = await self._match_email(identity, rules)
        return found

    async def _find_owner(self, identity: ExternalIdentity) -> _Match | None:
        """Return the account of a link, of a subject that an operator entered, or of a SCIM external id."""
        link = await self._store.find(identity.issuer, identity.subject)
        if link is not None:
            return _Match(await self._users.get(link.user_id), link)
        provider = identity.provider
        owner_ids = [await self._store.find_subject_owner(provider, identity.subject)]
        owner_ids += [await self._store.find_external_id_owner(provider, name) for name in identity.names]
        for owner_id in owner_ids:
            if owner_id is not None and not await self._is_linked(owner_id, provider):
                return _Match(await self._users.get(owner_id), None)
        return None

    async def _match_email(self, identity: ExternalIdentity, rules: IdentityRules) -> _Match | None:
        """Return the account of the address if the identity may join it; raise forbidden if it may not."""
        user = await self._users.find_by_email(identity.email)
        if user is None:
            return None
        scim = object_or_empty(object_or_empty(user.scim).get(identity.provider))
        may_join = rules.merge_by_email or bool(scim.get("external_id"))
        if may_join and not identity.email_verified:
            raise refuse(RefusalCode.EMAIL_UNVERIFIED, f"{identity.email!r} is not verified by the provider")
        is_linked = await self._is_linked(user.id, identity.provider)
        is_protected = user.role is Role.ADMIN and not rules.joins_admins
        if not may_join or is_linked or is_protected:
            raise refuse(RefusalCode.EMAIL_TAKEN, f"{identity.email!r} belongs to another account")
        return _Match(user, None)

    async def _is_linked(self, user_id: str, provider: str) -> bool:
        return any(link.provider == provider for link in await self._store.list(user_id))

    async def _use(
        self, match: _Match, identity: ExternalIdentity, rules: RoleRules, role: Role | None
    ) -> ResolvedAccount:
        user = match.user
        if not user.active:
            raise refuse(RefusalCode.DEACTIVATED, f"the account {user.email!r} is deactivated")
        if user.role is Role.PENDING:
            raise refuse(RefusalCode.PENDING, f"the account {user.email!r} waits for an administrator")
        outcome = ResolveOutcome.KNOWN
        if match.link is None:
            await self._add_link(user, identity)
            outcome = ResolveOutcome.LINKED
        else:
            await self._store.touch(_seen(match.link, identity, self._clock()))
        after = await self._with_role(user, rules, role)
        changes = () if after.role is user.role else (f"role {user.role} to {after.role}",)
        return ResolvedAccount(await self._users.get(user.id), outcome, changes)

    async def _with_role(self, user: User, rules: RoleRules, role: Role | None) -> User:
        if role is None or role is user.role:
            return user
        if user.role is Role.ADMIN and not rules.may_lower_admins:
            log.warning("administrator without a role of administrators kept", extra={"user": user.email})
            return user
        try:
            return await self._users.change(user.id, UserChange(role=role), None)
        except GatewayError as error:
            if error.code != "last_administrator":
                raise
            log.warning("the last administrator keeps the role", extra={"user": user.email})
            return user

    async def _create(
        self, identity: ExternalIdentity, rules: IdentityRules, role: Role | None
    ) -> ResolvedAccount:
        if not rules.sign_up:
            raise refuse(RefusalCode.NO_ACCOUNT, f"{identity.subject!r} has no account")
        if not identity.email and not rules.without_email:
            raise refuse(RefusalCode.PROVIDER, "the provider sent no usable e-mail address")
        if identity.email and not (identity.email_verified or rules.trust_email):
            raise refuse(RefusalCode.EMAIL_UNVERIFIED, f"{identity.email!r} is not verified by the provider")
        new = NewUser(
            email=identity.email or _placeholder(identity),
            name=_name_of(identity),
            role=role or Role(self._runtime.text("DEFAULT_USER_ROLE")),
        )
        made = await self._users.sign_up(new, self._welcome(identity))
        return ResolvedAccount(await self._users.get(made.id), ResolveOutcome.CREATED)

    def _welcome(self, identity: ExternalIdentity) -> Callable[[User, bool], Awaitable[None]]:
        async def welcome(user: User, is_first: bool) -> None:
            if is_first and not self._may_create_first:
                raise refuse(RefusalCode.SIGNUP_CLOSED, "the gateway has no administrator yet")
            await self._add_link(user, identity)
            group_id = self._runtime.text("DEFAULT_GROUP_ID")
            if group_id and not is_first and await self._groups.find(group_id) is not None:
                await self._groups.add_members(group_id, [user.id], MembershipSource.DEFAULT)

        return welcome

    async def _add_link(self, user: User, identity: ExternalIdentity) -> LinkedIdentity:
        now = self._clock()
        link = _seen(
            LinkedIdentity(user.id, identity.provider, identity.issuer, identity.subject, linked_at=now),
            identity,
            now,
        )
        await self._store.add(link)
        await self._users.change(user.id, await self._names(user, identity), None)
        return link

    async def _names(self, user: User, identity: ExternalIdentity) -> UserChange:
        """Return the change by which SCIM finds the account: its subject, and its provisioning id."""
        provider, change = identity.provider, UserChange()
        if await self._store.find_subject_owner(provider, identity.subject) is None:
            change = replace(
                change, oauth={**object_or_empty(user.oauth), provider: {"sub": identity.subject}}
            )
        name, known = identity.provisioning_id, object_or_empty(user.scim)
        has_one = bool(object_or_empty(known.get(provider)).get("external_id"))
        if not name or name == identity.subject or has_one:
            return change
        if await self._store.find_external_id_owner(provider, name) is None:
            change = replace(change, scim={**known, provider: {"external_id": name}})
        return change


def _checked(identity: ExternalIdentity) -> ExternalIdentity:
    """Return an identity with the normalised address, "" for one that no account can have."""
    limits = (
        (identity.provider, MAX_PROVIDER_CHARACTERS, "name of the provider"),
        (identity.issuer, MAX_ISSUER_CHARACTERS, "issuer"),
        (identity.subject, MAX_SUBJECT_CHARACTERS, "subject"),
    )
    for text, longest, what in limits:
        if not text or len(text) > longest or not is_plain(text):
            raise refuse(RefusalCode.PROVIDER, f"the {what} is empty, too long or not plain")
    name = identity.provisioning_id
    if len(name) > MAX_SUBJECT_CHARACTERS or not is_plain(name):
        raise refuse(RefusalCode.PROVIDER, "the provisioning id is too long or not plain")
    if not identity.email:
        return replace(identity, email_verified=False)
    try:
        return replace(identity, email=normalise_email(identity.email))
    except GatewayError as error:
        raise refuse(RefusalCode.PROVIDER, error.message) from error


def _role_of(identity: ExternalIdentity, rules: RoleRules) -> Role | None:
    """Return the role that the claims give, None if they decide nothing; raise forbidden for none allowed."""
    if not rules.is_managed:
        return None
    if identity.roles is None:
        raise refuse(RefusalCode.ROLE_MISSING, "the provider sent no roles")
    roles = set(identity.roles)
    if roles & set(rules.admins):
        return Role.ADMIN
    if roles & set(rules.allowed) or EVERYBODY in rules.allowed:
        return Role.USER
    raise refuse(RefusalCode.ROLE_MISSING, "the provider sent no role that is allowed")


def _check_domain(identity: ExternalIdentity, rules: IdentityRules) -> None:
    if EVERYBODY in rules.allowed_domains:
        return
    domain = identity.email.partition("@")[2]
    allowed = {email_key(f"x@{name}").partition("@")[2] for name in rules.allowed_domains} - {""}
    if domain not in allowed:
        raise refuse(RefusalCode.DOMAIN, f"the domain of {identity.email!r} is not allowed")
    if not (identity.email_verified or rules.trust_email):
        raise refuse(RefusalCode.EMAIL_UNVERIFIED, f"{identity.email!r} is not verified by the provider")


def _seen(link: LinkedIdentity, identity: ExternalIdentity, now: int) -> LinkedIdentity:
    return replace(link, provisioning_id=identity.provisioning_id, email=identity.email, used_at=now)


def _name_of(identity: ExternalIdentity) -> str:
    """Return a name for a new account: the claim if it can be one, else the address or the subject."""
    for text in (identity.name, identity.email.partition("@")[0], identity.subject):
        name = strip_direction_marks(text)[:MAX_NAME].strip()
        try:
            return clean(name, "name")
        except GatewayError:
            continue
    raise refuse(RefusalCode.PROVIDER, "the provider sent no name")


def _placeholder(identity: ExternalIdentity) -> str:
    """Return an address that nobody has (RFC 2606, 2), the same for each sign-in of the identity."""
    digest = hashlib.sha256(f"{identity.issuer}\n{identity.subject}".encode()).hexdigest()
    return f"{digest[:32]}@external.invalid"
