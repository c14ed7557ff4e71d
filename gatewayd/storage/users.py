"""Users and their password hashes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from tortoise.expressions import Q
from tortoise.transactions import in_transaction

from gatewayd.accounts.records import Role, User
from gatewayd.errors import invalid
from gatewayd.storage.failures import translated
from gatewayd.storage.rows import UserRow

TAKEN: Final = "the e-mail address or username is taken"
ORDERS: Final = frozenset({"name", "email", "role", "created_at", "updated_at", "last_active_at"})


class TortoiseUsers:
    """Implements `accounts.interfaces.UserStore`."""

    async def add(self, user: User, password_hash: str | None) -> None:
        """Insert a user; conflict when id, e-mail or username is taken."""
        async with translated(f"add user {user.email!r}", TAKEN):
            await UserRow(**_columns(user), password_hash=password_hash).save(force_create=True)

    async def find(self, user_id: str) -> User | None:
        """Return the user with this id."""
        async with translated("read a user"):
            row = await UserRow.get_or_none(id=user_id)
        return None if row is None else record_of(row)

    async def find_by_email(self, email: str) -> User | None:
        """Return the user with this normalised e-mail address."""
        async with translated("read a user"):
            row = await UserRow.get_or_none(email=email)
        return None if row is None else record_of(row)

    async def find_password_hash(self, user_id: str) -> str | None:
        """Return the password hash, None when there is none."""
        async with translated("read a user"):
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
        """Return one page and the count of all that fit."""
        if order_by not in ORDERS:
            raise invalid(f"cannot order users by {order_by!r}", param="order_by")
        found = UserRow.filter(search_key__contains=fold(query)) if query else UserRow.all()
        sign = "-" if descending else ""
        page = found.order_by(f"{sign}{order_by}", f"{sign}id").offset(offset)
        async with translated("list users"):
            total = await found.count()
            rows = await (page if limit is None else page.limit(limit))
        return [record_of(row) for row in rows], total

    async def change(self, user: User) -> bool:
        """Write every field but the password; conflict when e-mail or username is taken."""
        columns = _columns(user)
        del columns["id"]
        async with translated(f"change user {user.email!r}", TAKEN):
            return await UserRow.filter(id=user.id).update(**columns) > 0

    async def set_password_hash(self, user_id: str, password_hash: str | None) -> bool:
        """Write the password hash alone."""
        async with translated("change a password"):
            return await UserRow.filter(id=user_id).update(password_hash=password_hash) > 0

    async def remove(self, user_id: str) -> bool:
        """Delete a user; memberships and keys go along by their foreign keys."""
        async with translated("remove a user"):
            return await UserRow.filter(id=user_id).delete() > 0

    async def count(self) -> int:
        """Return how many users exist."""
        async with translated("count users"):
            return await UserRow.all().count()

    async def count_active_admins(self) -> int:
        """Return how many active administrators exist."""
        async with translated("count users"):
            return await UserRow.filter(role=Role.ADMIN.value, active=True).count()

    async def find_first_admin_id(self) -> str | None:
        """Return the id of the oldest administrator."""
        async with translated("read a user"):
            row = await UserRow.filter(role=Role.ADMIN.value).order_by("created_at", "id").first().only("id")
        return None if row is None else row.id

    async def touch(self, seen: Mapping[str, int]) -> None:
        """Write last_active_at for many users in one transaction, never backwards."""
        async with translated("write last-active times"), in_transaction():
            for user_id, at in seen.items():
                await UserRow.filter(Q(id=user_id) & Q(last_active_at__lt=at)).update(last_active_at=at)


def record_of(row: UserRow) -> User:
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
        profile=row.profile or {},
        settings=row.settings,
        info=row.info,
        oauth=row.oauth,
        scim=row.scim,
        last_active_at=row.last_active_at,
        updated_at=row.updated_at,
        created_at=row.created_at,
    )


def fold(text: str) -> str:
    """Return the form in which texts are compared without regard to case."""
    return text.casefold()


def _columns(user: User) -> dict[str, Any]:
    return {**asdict(user), "role": user.role.value, "search_key": fold(f"{user.name}\n{user.email}")}
