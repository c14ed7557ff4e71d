"""Store of everything that belongs to one person, by table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import fits_columns
from gatewayd.storage.engine.statements import SqlStatement, like_pattern
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.tables.accounts import UserRow

PAGE_ROWS: Final = 500
"""Rows that one transaction changes."""


@dataclass(frozen=True, slots=True)
class PersonTable:
    """Rows of one kind: the table, its key, and the condition, with `{user}`, `{email}` and `{holder}`."""

    kind: str
    table: str
    key: str = "id"
    condition: str = "user_id = {user}"


DELETED: Final = (
    # First: the nodes stop the answers whose claims are gone.
    PersonTable("running answers", "answer_runs"),
    PersonTable("stored responses", "stored_responses"),
    PersonTable("ids of responses", "response_ids", "digest"),
    PersonTable(
        "frames of streams",
        "stream_frames",
        condition="stream_id IN (SELECT id FROM streams WHERE user_id = {user})",
    ),
    PersonTable("resumable streams", "streams"),
    PersonTable("replies of repeated requests", "idempotent_requests", "digest"),
    PersonTable(
        "states of batches at providers",
        "passed_batches",
        condition="batch_id IN (SELECT id FROM batches WHERE user_id = {user})",
    ),
    PersonTable(
        "answers of unfinished batches",
        "batch_answers",
        condition="batch_id IN (SELECT id FROM batches WHERE user_id = {user})",
    ),
    PersonTable("batches", "batches"),
    # Links to create an account have no user, and links to sign in no address.
    PersonTable(
        "one-time links",
        "one_time_links",
        condition="user_id = {user} OR (email = {email} AND email <> '')",
    ),
    PersonTable(
        "entries of access lists",
        "access_grants",
        condition="principal_type = 'user' AND principal_id = {user}",
    ),
    PersonTable("revoked tokens", "revoked_tokens", "jti"),
    PersonTable("counters of limits", "limit_counters", condition="id {holder}"),
)
"""What `remove` deletes."""

CASCADED: Final = (
    PersonTable("accounts", "users", condition="id = {user}"),
    PersonTable("API keys", "api_keys"),
    PersonTable("sessions", "sessions", "jti"),
    PersonTable("linked identities", "user_identities"),
    PersonTable("memberships", "group_members"),
    PersonTable("folders of chats", "chat_folders"),
    PersonTable("settings of plugins", "user_valves"),
)
"""What goes with the row of the account."""

SEPARATE: Final = (
    PersonTable("chats", "chats"),
    PersonTable("files", "files"),
    PersonTable("collections", "collections"),
    PersonTable("files of batches", "batch_files"),
    PersonTable("limits", "limits", condition="subject = 'user' AND subject_id = {user}"),
    PersonTable("rows of usage", "usage"),
)
"""What services of their own delete or change."""

RENAMED: Final = (
    PersonTable("owners of models", "models"),
    PersonTable("owners of functions and tools", "plugins", "number"),
    PersonTable("owners of groups", "groups"),
    PersonTable("files in collections of others", "collection_files"),
    PersonTable("directories in collections of others", "collection_directories"),
)
"""What stays, with a pseudonym in place of the person."""


class TortoisePersonRows:
    """Implements `privacy.interfaces.PersonRowStore`."""

    def may_be_id(self, text: str) -> bool:
        """Return whether a text can be the id of a person."""
        return bool(text) and fits_columns(UserRow, id=text)

    async def counts(self, user_id: str, email: str) -> Mapping[str, int]:
        """Return the numbers of rows by kind, those of 0 included."""
        found = {}
        with translate_errors("count what belongs to the user"):
            for each in (*SEPARATE, *DELETED, *CASCADED, *RENAMED):
                statement = SqlStatement(UserRow._meta.db)
                where = bound_condition(statement, each, user_id, email)
                [row] = await statement.run(f'SELECT COUNT(*) AS total FROM "{each.table}" WHERE {where}')  # noqa: S608
                found[each.kind] = int(row["total"])
        return found

    async def collections(self, user_id: str) -> Sequence[str]:
        """Return the ids of the collections of a person."""
        statement = SqlStatement(UserRow._meta.db)
        with translate_errors("list the collections of the user"):
            rows = await statement.run(
                f"SELECT id FROM collections WHERE user_id = {statement.bind(user_id)} ORDER BY id"  # noqa: S608
            )
        return [row["id"] for row in rows]

    async def remove(self, user_id: str, email: str) -> None:
        """Delete the rows of DELETED, PAGE_ROWS in a transaction."""
        for each in DELETED:
            await self._page_by_page(each, "DELETE FROM {table}", user_id, email)

    async def rename(self, user_id: str, pseudonym: str) -> None:
        """Replace a person as the owner of what stays, PAGE_ROWS in a transaction."""
        for each in RENAMED:
            await self._page_by_page(each, "UPDATE {table} SET user_id = {name}", user_id, pseudonym)

    async def _page_by_page(self, table: PersonTable, change: str, user_id: str, other: str) -> None:
        changed = PAGE_ROWS
        while changed:
            async with write_transaction("erase what belongs to the user") as client:
                statement = SqlStatement(client)
                sql = change.replace("{table}", f'"{table.table}"')
                if "{name}" in sql:
                    sql = sql.replace("{name}", statement.bind(other))
                where = bound_condition(statement, table, user_id, other)
                rows = await statement.run(
                    f"{sql} WHERE {table.key} IN"  # noqa: S608 - no values
                    f' (SELECT {table.key} FROM "{table.table}" WHERE {where} LIMIT {PAGE_ROWS})'
                    f" RETURNING {table.key}"
                )
            changed = len(rows)


def bound_condition(statement: SqlStatement, table: PersonTable, user_id: str, email: str) -> str:
    """Return the condition of a table with its values bound."""
    condition = table.condition
    if "{user}" in condition:
        condition = condition.replace("{user}", statement.bind(user_id))
    if "{email}" in condition:
        condition = condition.replace("{email}", statement.bind(email))
    if "{holder}" in condition:
        condition = condition.replace("{holder}", statement.like(like_pattern(f"*/{user_id}/*") or ""))
    return condition
