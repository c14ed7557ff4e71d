"""A large directory of accounts and groups, put straight into the tables: what a provider has provisioned."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from gatewayd import ids
from gatewayd.accounts.records import Email, Group, MembershipSource, ProviderIdentity, Role, User
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import DatabaseLocation
from gatewayd.storage.engine.migrate import migrate_open
from gatewayd.storage.groups import _columns as group_columns
from gatewayd.storage.tables.accounts import (
    GroupExternalIdRow,
    GroupRow,
    MembershipRow,
    UserEmailRow,
    UserExternalIdRow,
    UserRow,
)
from gatewayd.storage.users import _columns as user_columns

PROVIDER: Final = "bench"
BATCH: Final = 1000
AT: Final = 1_750_000_000
SURNAMES: Final = ("Byron", "Hopper", "Lovelace", "Noether", "Germain", "Kowalewskaja", "Ångström", "Çelik")

Item = TypeVar("Item")


@dataclass(frozen=True)
class Population:
    """How much there is: the first group has `largest` members, every other ten."""

    users: int = 100_000
    groups: int = 1_000
    largest: int = 10_000


def email_of(number: int) -> str:
    """Return the user name of a user, counted from 0."""
    return f"person{number}@example.org"


def external_id_of(number: int) -> str:
    """Return the external id of a user."""
    return f"ext-{number:08d}"


async def populate(location: DatabaseLocation, size: Population) -> list[str]:
    """Fill an empty database and return the ids of the groups."""
    async with Database.open(location) as database:
        await migrate_open(database)
        users = [_user(number) for number in range(size.users)]
        groups = [_group(number) for number in range(size.groups)]
        async with database.transaction():
            await _add_users(users)
            await _add_groups(groups)
            await _add_members(groups, users, size)
        # What the database does by itself within minutes of such a load.
        await database.engine.execute_query_dict("ANALYZE")
        if not location.is_sqlite:
            await database.engine.execute_query_dict("VACUUM")
        return [group.id for group in groups]


def _user(number: int) -> User:
    surname = SURNAMES[number % len(SURNAMES)]
    email = email_of(number)
    return User(
        id=ids.new_id(),
        email=email,
        name=f"Person{number} {surname}",
        role=Role.USER,
        active=number % 20 != 0,
        scim={PROVIDER: {"external_id": external_id_of(number)}},
        identity=ProviderIdentity(
            email,
            f"Person{number} {surname}",
            None,
            f"Person{number}",
            surname,
            (Email(email, primary=True),),
        ),
        updated_at=AT,
        created_at=AT + number // 100,
        modified_us=AT * 1_000_000 + number,
    )


def _group(number: int) -> Group:
    return Group(
        id=ids.new_id(),
        name=f"Group {number}",
        scim={PROVIDER: {"external_id": f"group-{number}"}},
        updated_at=AT,
        created_at=AT,
        modified_us=AT * 1_000_000,
    )


async def _add_users(users: Sequence[User]) -> None:
    for part in _parts(users):
        await UserRow.bulk_create([UserRow(**user_columns(user), password_hash=None) for user in part])
        await UserEmailRow.bulk_create(
            [
                UserEmailRow(user_id=user.id, value_key=user.email, type_key="work", is_primary=True)
                for user in part
            ]
        )
        await UserExternalIdRow.bulk_create(
            [
                UserExternalIdRow(user_id=user.id, provider=PROVIDER, external_id=each["external_id"])
                for user in part
                for each in (user.scim or {}).values()
            ]
        )


async def _add_groups(groups: Sequence[Group]) -> None:
    for part in _parts(groups):
        await GroupRow.bulk_create([GroupRow(**group_columns(group)) for group in part])
        await GroupExternalIdRow.bulk_create(
            [
                GroupExternalIdRow(group_id=group.id, provider=PROVIDER, external_id=each["external_id"])
                for group in part
                for each in (group.scim or {}).values()
            ]
        )


async def _add_members(groups: Sequence[Group], users: Sequence[User], size: Population) -> None:
    pairs = [(groups[0].id, user.id) for user in users[: size.largest]]
    for number, group in enumerate(groups[1:], 1):
        pairs += [(group.id, users[(number * 97 + step) % len(users)].id) for step in range(10)]
    for part in _parts(pairs):
        await MembershipRow.bulk_create(
            [
                MembershipRow(group_id=group, user_id=user, source=MembershipSource.SCIM.value, created_at=AT)
                for group, user in part
            ]
        )


def _parts(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    return (items[start : start + BATCH] for start in range(0, len(items), BATCH))
