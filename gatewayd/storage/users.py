"""Store of users and their password hashes."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from typing import Any, Final

from tortoise.expressions import Q

from gatewayd.accounts.records import Email, ProviderIdentity, ProviderRole, Role, User
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import decode, encode_optional, fits_columns
from gatewayd.storage.engine.readers import QueryReader, read_column
from gatewayd.storage.engine.statements import SqlStatement, contains_pattern, storable_ids
from gatewayd.storage.engine.transactions import placeholder, write_transaction
from gatewayd.storage.resumption.idempotent_requests import delete_requests_of
from gatewayd.storage.resumption.streams import delete_streams_of
from gatewayd.storage.scim import identity_index
from gatewayd.storage.tables.accounts import UserRow
from gatewayd.text import casefold_nfc

ORDERS: Final = frozenset({"name", "email", "role", "created_at", "updated_at", "last_active_at"})


class TortoiseUsers:
    """Implements `accounts.interfaces.UserStore`.

    `reader`, if present, runs the queries over all users.
    """

    def __init__(self, reader: QueryReader | None = None) -> None:
        self._reader = reader

    async def add(self, user: User, password_hash: str | None) -> None:
        """Insert a user and their lookup rows; conflict when the address, a name or an id is taken."""
        with _conflict_as_email(user):
            async with write_transaction("add the user"):
                await UserRow(**_columns(user), password_hash=password_hash).save(force_create=True)
                await identity_index.update_lookups(
                    {"user_id": user.id}, identity_index.NO_LOOKUPS, identity_index.of_user(user)
                )

    async def find(self, user_id: str) -> User | None:
        """Return the user with this id."""
        if not fits_columns(UserRow, id=user_id):
            return None
        with translate_errors("read a user"):
            row = await UserRow.get_or_none(id=user_id)
        return None if row is None else user_from_row(row)

    async def find_by_email(self, email: str) -> User | None:
        """Return the user with this normalised e-mail address."""
        if not fits_columns(UserRow, email=email):
            return None
        with translate_errors("read a user"):
            row = await UserRow.get_or_none(email=email)
        return None if row is None else user_from_row(row)

    async def has_username(self, username: str) -> bool:
        """Tell whether an account has this username."""
        if not fits_columns(UserRow, username=username):
            return False
        with translate_errors("read a user"):
            return await UserRow.filter(username=username).exists()

    async def find_password_hash(self, user_id: str) -> str | None:
        """Return the password hash of a user, None without one."""
        if not fits_columns(UserRow, id=user_id):
            return None
        with translate_errors("read a user"):
            row = await UserRow.get_or_none(id=user_id).only("password_hash")
        return None if row is None else row.password_hash

    async def list(
        self,
        *,
        query: str = "",
        order_by: str = "created_at",
        descending: bool = False,
        offset: int = 0,
        limit: int | None = None,
    ) -> tuple[Sequence[User], int]:
        """Return one page of users whose name or address contains `query`, and the total count."""
        if order_by not in ORDERS:
            raise invalid(f"cannot order users by {order_by!r}", param="order_by")
        if not (fits_columns(UserRow, name_key=casefold_nfc(query)) or fits_columns(UserRow, email=query)):
            return [], 0
        found = UserRow.all()
        if query:
            # Both columns are case-folded: SQLite itself folds only ASCII.
            key = casefold_nfc(query)
            found = found.filter(Q(name_key__contains=key) | Q(email__contains=key))
        sign = "-" if descending else ""
        column = "name_key" if order_by == "name" else order_by
        page = found.order_by(f"{sign}{column}", f"{sign}id").offset(offset)
        with translate_errors("list users"):
            total = await found.count()
            rows = await (page if limit is None else page.limit(limit))
        return [user_from_row(row) for row in rows], total

    async def list_ids(self, *, query: str = "") -> Sequence[str]:
        """Return the ids of all users whose name or address contains `query`, in one statement."""
        statement, where = SqlStatement(UserRow._meta.db), ""
        if query:
            pattern = contains_pattern(query)
            if pattern is None:
                return []
            name, email = statement.like(pattern), statement.like(pattern)
            where = f" WHERE name_key {name} OR email {email}"
        with translate_errors("list users"):
            found = f"SELECT id FROM users{where} ORDER BY created_at, id"  # noqa: S608 - no values
            return await read_column(self._reader, statement, found)

    async def list_by_ids(self, user_ids: Sequence[str]) -> Sequence[User]:
        """Return the users with these ids, in their order."""
        with translate_errors("list users"):
            rows = await UserRow.filter(id__in=storable_ids(UserRow, user_ids))
        found = {row.id: user_from_row(row) for row in rows}
        return [found[user_id] for user_id in user_ids if user_id in found]

    async def change(self, user: User) -> bool:
        """Write the changed fields, except the password, and the lookup rows; raises the errors of `add`."""
        columns = _columns(user)
        del columns["id"]
        with _conflict_as_email(user):
            async with write_transaction("change the user"):
                # The lock keeps the present lookup rows unchanged until they are replaced.
                row = await UserRow.filter(id=user.id).select_for_update(no_key=True).first()
                if row is None:
                    return False
                # Writing a column updates its indexes even if the value is the same.
                changed = {name: value for name, value in columns.items() if value != getattr(row, name)}
                if changed:
                    await UserRow.filter(id=user.id).update(**changed)
                before, after = identity_index.of_user(user_from_row(row)), identity_index.of_user(user)
                await identity_index.update_lookups({"user_id": user.id}, before, after)
        return True

    async def set_password_hash(self, user_id: str, password_hash: str | None) -> bool:
        """Write the password hash of a user."""
        if not fits_columns(UserRow, id=user_id):
            return False
        async with write_transaction("change the password"):
            return await UserRow.filter(id=user_id).update(password_hash=password_hash) > 0

    async def remove(self, user_id: str) -> bool:
        """Delete a user; foreign keys delete what belongs to them, apart from streams and stored replies."""
        if not fits_columns(UserRow, id=user_id):
            return False
        async with write_transaction("remove the user"):
            await delete_streams_of(user_id)
            await delete_requests_of(user_id)
            return await UserRow.filter(id=user_id).delete() > 0

    async def count(self) -> int:
        """Return the number of users."""
        with translate_errors("count users"):
            return await UserRow.all().count()

    async def count_active_admins(self) -> int:
        """Return the number of active administrators."""
        with translate_errors("count users"):
            return await UserRow.filter(role=Role.ADMIN.value, active=True).count()

    async def find_first_admin_id(self) -> str | None:
        """Return the id of the oldest administrator."""
        with translate_errors("read a user"):
            row = await UserRow.filter(role=Role.ADMIN.value).order_by("created_at", "id").first().only("id")
        return None if row is None else row.id

    async def touch(self, seen: Mapping[str, int]) -> None:
        """Write last_active_at for many users in one transaction, never backwards."""
        # The same order everywhere prevents a deadlock between processes.
        rows = [(at, user_id) for user_id, at in sorted(seen.items()) if fits_columns(UserRow, id=user_id)]
        async with write_transaction("write last-active times") as client:
            one, two = placeholder(client, 1), placeholder(client, 2)
            await client.execute_many(
                f"UPDATE users SET last_active_at = {one} WHERE id = {two} AND last_active_at < {one}",  # noqa: S608
                rows,
            )


def user_from_row(row: UserRow) -> User:
    """Return the record of a row."""
    return User(
        id=row.id,
        email=row.email,
        name=row.name,
        role=Role(row.role),
        active=row.active,
        username=row.username,
        profile_image_url=row.profile_image_url,
        token_version=row.token_version,
        profile=decode(row.profile, f"the profile of user {row.id}"),
        settings=decode(row.settings, f"the settings of user {row.id}"),
        info=decode(row.info, f"the info of user {row.id}"),
        oauth=decode(row.oauth, f"the oauth of user {row.id}"),
        scim=decode(row.scim, f"the scim of user {row.id}"),
        identity=_identity_of(row),
        last_active_at=row.last_active_at,
        updated_at=row.updated_at,
        created_at=row.created_at,
        modified_us=row.modified_us,
    )


def _identity_of(row: UserRow) -> ProviderIdentity:
    emails = decode(row.emails, f"the emails of user {row.id}")
    roles = decode(row.roles, f"the roles of user {row.id}")
    return ProviderIdentity(
        user_name=row.user_name,
        display_name=row.display_name,
        formatted_name=row.formatted_name,
        given_name=row.given_name,
        family_name=row.family_name,
        emails=tuple(Email(**each) for each in emails or ()),
        roles=tuple(ProviderRole(**each) for each in roles or ()),
    )


def _columns(user: User) -> dict[str, Any]:
    columns = {item.name: getattr(user, item.name) for item in fields(user) if item.name != "identity"}
    for name in ("profile", "settings", "info", "oauth", "scim"):
        columns[name] = encode_optional(columns[name], name)
    person = user.identity
    columns |= {item.name: getattr(person, item.name) for item in fields(person)}
    emails = [asdict(each) for each in person.emails]
    columns["emails"] = encode_optional(emails or None, "emails")
    columns["roles"] = encode_optional([asdict(each) for each in person.roles] or None, "roles")
    return {
        **columns,
        "role": user.role.value,
        "name_key": casefold_nfc(user.name),
        **identity_index.keys_of(user),
    }


@contextmanager
def _conflict_as_email(user: User) -> Iterator[None]:
    """Report a taken user name as the taken e-mail address: without a provider both are the same."""
    try:
        yield
    except GatewayError as error:
        if (error.kind, error.param) != (
            ErrorKind.CONFLICT,
            "user_name",
        ) or user.identity.user_name is not None:
            raise
        sentence = "cannot store the user: the e-mail address is taken"
        raise GatewayError(ErrorKind.CONFLICT, sentence, param="email", code=error.code) from error
