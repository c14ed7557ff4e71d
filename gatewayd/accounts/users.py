"""Account service: create, change and remove accounts; the last active administrator stays."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from gatewayd import ids
from gatewayd.accounts.change_notifier import AccountChange, AccountChangeNotifier
from gatewayd.accounts.display_identity import with_email, with_name
from gatewayd.accounts.interfaces import GroupStore, UserStore
from gatewayd.accounts.password_rules import check_password
from gatewayd.accounts.passwords import Passwords
from gatewayd.accounts.records import Actor, EnsureOutcome, NewUser, ProviderIdentity, Role, User, UserChange
from gatewayd.accounts.texts import (
    clean,
    clean_object,
    clean_person,
    clean_picture,
    email_key,
    is_plain,
    normalise_email,
)
from gatewayd.errors import ErrorKind, GatewayError, invalid, not_found
from gatewayd.transactions import Transactor

SORT_FIELDS: Final = ("name", "email", "role", "created_at", "updated_at", "last_active_at")
USERS_PER_PAGE: Final = 100
"""Accounts that are read at a time from a list of any length."""
# Held during a sign-up: concurrent sign-ups make one first administrator.
FIRST_ADMIN_LOCK: Final = "first-admin"
# Held during a change: two administrators cannot demote each other at the same time.
CHANGE_LOCK: Final = "users"

AfterCreation = Callable[[User], Awaitable[None]]
AfterSignUp = Callable[[User, bool], Awaitable[None]]


class Users:
    """The account service. `by` is the actor; None is the operator on the control socket.

    Errors: invalid_request naming the field; conflict for a taken e-mail address or username and for the last
    active administrator; forbidden for a change of the own role or of the primary administrator.
    """

    def __init__(
        self,
        users: UserStore,
        groups: GroupStore,
        transactor: Transactor,
        passwords: Passwords,
        changes: AccountChangeNotifier,
        clock: ids.Clock = ids.now,
    ) -> None:
        self._users = users
        self._groups = groups
        self._transactor = transactor
        self._passwords = passwords
        self._changes = changes
        self._clock = clock

    async def create(self, new: NewUser, then: AfterCreation | None = None) -> User:
        """Add an account; `then(user)` runs in the same transaction."""
        user = self._checked(new)
        password_hash = await self._hash(new.password, user)
        async with self._transactor.transaction():
            await self._users.add(user, password_hash)
            if then is not None:
                await then(user)
        self._changes.publish(AccountChange(user.id))
        return user

    def check_new(self, new: NewUser) -> User:
        """Return the account that `create` adds; raise invalid_request naming the field of an invalid one."""
        user = self._checked(new)
        if new.password is not None:
            self._passwords.check_new(new.password, _about(user))
            check_password(new.password)
        return user

    async def sign_up(self, new: NewUser, then: AfterSignUp | None = None) -> User:
        """Add an account; the first account becomes administrator, also with concurrent sign-ups.

        `then(user, is_first)` runs in the same transaction.
        """
        user = self._checked(new)
        password_hash = await self._hash(new.password, user)
        async with self._transactor.exclusive(FIRST_ADMIN_LOCK):
            is_first = await self._users.count() == 0
            if is_first:
                user = replace(user, role=Role.ADMIN)
            await self._users.add(user, password_hash)
            if then is not None:
                await then(user, is_first)
        self._changes.publish(AccountChange(user.id))
        return user

    async def get(self, user_id: str) -> User:
        """Return an account; raise not_found without it."""
        user = await self.find(user_id)
        if user is None:
            raise not_found("user", user_id)
        return user

    async def find(self, user_id: str) -> User | None:
        """Return an account, or None."""
        return await self._users.find(user_id) if is_plain(user_id) else None

    async def find_by_email(self, email: str) -> User | None:
        """Return the account with this e-mail address, or None."""
        key = email_key(email)
        return await self._users.find_by_email(key) if key else None

    async def resolve(self, ref: str) -> User:
        """Return the account with this id or e-mail address; raise not_found without it."""
        if address := email_key(ref):
            user = await self._users.find_by_email(address)
            if user is not None:
                return user
        return await self.get(ref)

    async def list(
        self,
        *,
        query: str = "",
        order_by: str = "created_at",
        descending: bool = False,
        offset: int = 0,
        limit: int | None = None,
    ) -> tuple[Sequence[User], int]:
        """Return one page and the total count; raise invalid_request for an unknown order."""
        if order_by not in SORT_FIELDS:
            raise invalid(
                f"cannot order by {order_by!r}: expected one of {', '.join(SORT_FIELDS)}", param="order_by"
            )
        return await self._users.list(
            query=clean(query, "query", empty=True),
            order_by=order_by,
            descending=descending,
            offset=offset,
            limit=limit,
        )

    async def list_ids(self, query: str = "") -> Sequence[str]:
        """Return the ids of all accounts whose name or address contains `query`, oldest first."""
        return await self._users.list_ids(query=clean(query, "query", empty=True))

    async def pages(self, user_ids: Sequence[str]) -> AsyncIterator[Sequence[User]]:
        """Yield the accounts with these ids, in this order, 100 at a time; unknown ids are left out.

        Other requests are served between two pages.
        """
        for start in range(0, len(user_ids), USERS_PER_PAGE):
            yield await self._users.list_by_ids(user_ids[start : start + USERS_PER_PAGE])

    async def count(self) -> int:
        """Return the number of accounts."""
        return await self._users.count()

    async def list_group_ids(self, users: Sequence[User]) -> Mapping[str, Sequence[str]]:
        """Return the group ids by user id; users without groups are absent."""
        return await self._groups.list_group_ids([user.id for user in users])

    async def find_primary(self) -> User | None:
        """Return the primary administrator: the oldest one, whom other users cannot change over HTTP."""
        first = await self._users.find_first_admin_id()
        return await self._users.find(first) if first is not None else None

    async def change(
        self, user_id: str, change: UserChange, by: Actor | None, *, field: str = "password"
    ) -> User:
        """Change an account and return it; a new password or role or a deactivation ends its sessions.

        `field` is the name of the new password in errors.
        """
        user = await self.get(user_id)
        await self._check_right(user, change, by)
        password_hash = await self._hash(change.password, _changed(user, change), field)
        async with self._transactor.exclusive(CHANGE_LOCK):
            before = await self.get(user_id)
            await self._check_right(before, change, by)
            user = _changed(before, change)
            if user == before and password_hash is None:
                return before
            await self._check_admins(before, user)
            user = replace(
                user,
                updated_at=self._clock(),
                modified_us=ids.now_us(),
                token_version=before.token_version + _ends_sessions(before, user, password_hash),
            )
            await self._write(user, password_hash)
        is_out = before.is_verified and not user.is_verified
        asks_again = before.token_version != user.token_version
        self._changes.publish(
            AccountChange(user_id, is_out=is_out, asks_again=asks_again, is_signed_out=asks_again)
        )
        return user

    async def end_sessions(self, user_id: str) -> User:
        """End all sessions of an account at once and return it; its keys stay valid."""
        async with self._transactor.exclusive(CHANGE_LOCK):
            before = await self.get(user_id)
            user = replace(before, token_version=before.token_version + 1)
            await self._write(user, None)
        self._changes.publish(AccountChange(user_id, asks_again=True, is_signed_out=True))
        return user

    async def change_as_shown(self, user_id: str, change: UserChange, by: Actor | None) -> User:
        """Change an account for a client that sees a deactivated account as pending (`User.shown_role`).

        The role pending leaves such an account unchanged; any other role activates it.
        """
        user = await self.get(user_id)
        if not user.active and change.role is Role.PENDING:
            change = replace(change, role=None)
        elif not user.active and change.role is not None:
            change = replace(change, active=True)
        return await self.change(user_id, change, by)

    async def set_password(self, user_id: str, password: str, *, field: str = "password") -> None:
        """Set the password of an account and end its sessions; `field` as in `change`."""
        await self.change(user_id, UserChange(password=password), None, field=field)

    async def remove(self, user_id: str, by: Actor | None) -> None:
        """Delete an account with its memberships and keys; raise not_found without it."""
        async with self._transactor.exclusive(CHANGE_LOCK):
            user = await self.get(user_id)
            if by is not None and by.user_id == user_id:
                raise GatewayError(ErrorKind.FORBIDDEN, "cannot remove your own account")
            await self._check_primary(user, by)
            await self._check_admins(user, replace(user, active=False))
            if not await self._users.remove(user_id):
                raise not_found("user", user_id)
        self._changes.publish(AccountChange(user_id, is_out=True, is_removed=True))

    async def ensure(self, new: NewUser) -> tuple[User, EnsureOutcome]:
        """Create or update the account with this e-mail address: name, role, password and username.

        A password that matches already is no change; absent fields of `new` leave the present values.
        """
        existing = await self._users.find_by_email(normalise_email(new.email))
        if existing is None:
            return await self.create(new), EnsureOutcome.CREATED
        password = new.password
        if password is not None:
            known = await self._users.find_password_hash(existing.id)
            password = None if await self._passwords.verify(known, password) else password
        change = UserChange(name=new.name, role=new.role, password=password, username=new.username)
        user = await self.change(existing.id, change, None)
        is_same = user == existing and password is None
        return user, EnsureOutcome.UNCHANGED if is_same else EnsureOutcome.CHANGED

    def _checked(self, new: NewUser) -> User:
        now = self._clock()
        return User(
            id=ids.new_id(),
            email=normalise_email(new.email),
            name=clean_person(new.name),
            role=new.role,
            active=new.active,
            username=clean(new.username, "username") if new.username else None,
            profile_image_url=clean_picture(new.profile_image_url),
            profile=clean_object(new.profile, "profile"),
            oauth=clean_object(new.oauth, "oauth") if new.oauth else None,
            scim=clean_object(new.scim, "scim") if new.scim else None,
            identity=new.identity,
            last_active_at=now,
            updated_at=now,
            created_at=now,
            modified_us=ids.now_us(),
        )

    async def _hash(self, password: str | None, user: User, field: str = "password") -> str | None:
        if password is None:
            return None
        self._passwords.check_new(password, _about(user), field)
        return await self._passwords.hash(password)

    async def _write(self, user: User, password_hash: str | None) -> None:
        if not await self._users.change(user):
            raise not_found("user", user.id)
        if password_hash is not None:
            await self._users.set_password_hash(user.id, password_hash)

    async def _check_right(self, user: User, change: UserChange, by: Actor | None) -> None:
        if by is None:
            return
        if by.user_id != user.id:
            await self._check_primary(user, by)
        elif change.password is not None:
            raise GatewayError(
                ErrorKind.FORBIDDEN,
                "cannot set your own password here: POST /api/v1/auths/update/password takes the present one",
                param="password",
            )
        elif change.active is False:
            raise GatewayError(ErrorKind.FORBIDDEN, "cannot deactivate your own account", param="active")
        elif change.role is not None and change.role is not user.role:
            raise GatewayError(ErrorKind.FORBIDDEN, "cannot change your own role", param="role")

    async def _check_primary(self, user: User, by: Actor | None) -> None:
        if by is not None and user.id == await self._users.find_first_admin_id():
            raise GatewayError(ErrorKind.FORBIDDEN, "cannot change the primary administrator")

    async def _check_admins(self, before: User, after: User) -> None:
        if not _is_active_admin(before) or _is_active_admin(after):
            return
        if await self._users.count_active_admins() <= 1:
            raise GatewayError(
                ErrorKind.CONFLICT,
                f"cannot remove, demote or deactivate the last active administrator {before.email!r}",
                param="role",
                code="last_administrator",
            )


def _about(user: User) -> Sequence[str]:
    """Return the texts about a person that their password must not contain."""
    return [user.email, user.name, user.username or ""]


def _is_active_admin(user: User) -> bool:
    return user.active and user.role is Role.ADMIN


def _ends_sessions(before: User, after: User, password_hash: str | None) -> bool:
    deactivated = before.active and not after.active
    return password_hash is not None or before.role is not after.role or deactivated


def _changed(user: User, change: UserChange) -> User:
    fields: dict[str, Any] = {}
    if change.email is not None:
        fields["email"] = normalise_email(change.email)
    if change.name is not None:
        fields["name"] = clean_person(change.name)
    fields["identity"] = change.identity or _changed_identity(user, fields)
    if change.role is not None:
        fields["role"] = change.role
    if change.active is not None:
        fields["active"] = change.active
    if change.username is not None:
        fields["username"] = clean(change.username, "username", empty=True) or None
    if change.profile_image_url is not None:
        fields["profile_image_url"] = clean_picture(change.profile_image_url)
    return replace(user, **fields, **_changed_objects(user, change))


def _changed_identity(user: User, fields: Mapping[str, Any]) -> ProviderIdentity:
    """Return the identity of a user after a change of name or e-mail address."""
    identity = user.identity
    if fields.get("email", user.email) != user.email:
        identity = with_email(identity, fields["email"])
    if fields.get("name", user.name) != user.name:
        identity = with_name(identity, fields["name"])
    return identity


def _changed_objects(user: User, change: UserChange) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if change.profile is not None:
        merged = {**user.profile, **change.profile}
        kept = {name: value for name, value in merged.items() if value is not None}
        fields["profile"] = clean_object(kept, "profile")
    if change.settings is not None:
        fields["settings"] = clean_object({**(user.settings or {}), **change.settings}, "settings")
    if change.info is not None:
        fields["info"] = clean_object({**(user.info or {}), **change.info}, "info")
    if change.oauth is not None:
        fields["oauth"] = clean_object(change.oauth, "oauth") or None
    if change.scim is not None:
        fields["scim"] = clean_object(change.scim, "scim") or None
    return fields
