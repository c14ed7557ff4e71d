"""Searches in the messages of several chats: favourites, and the passages that match a text."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatewayd.chats.records import FavouriteMessage, MatchedMessage
from gatewayd.storage.chat_slices import IS_COMPLETE
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import fits_columns
from gatewayd.storage.engine.statements import SqlStatement, contains_pattern, storable_ids
from gatewayd.storage.tables.chats import ChatRow
from gatewayd.text import casefold_nfc

MAX_FAVOURITE_CHARACTERS: Final = 600
"""Maximum length of the beginning of a favourite in the list."""

CHARACTERS_BEFORE: Final = 80
MAX_SNIPPET_CHARACTERS: Final = 320
"""Characters before a match, and the maximum length of the text around it."""

TEXT: Final = "COALESCE(NULLIF(m.content, ''), m.content_key)"
"""The text of a message; the content of a message of parts is empty."""

# The conditions of the index of 0012_folders; the second one of SQLite excludes nested members.
SQLITE_FAVOURITE: Final = (
    "instr(m.attributes, '\"favorite\":true') > 0 AND json_extract(m.attributes, '$.favorite') = 1"
)
POSTGRES_FAVOURITE: Final = "m.attributes @> '{\"favorite\": true}'::jsonb"


class TortoiseMessageSearch:
    """Implements `chats.interfaces.MessageSearch`."""

    async def favourites(self, user_id: str, offset: int, limit: int) -> Sequence[FavouriteMessage]:
        """Return a page of the favourite messages of a user, the newest first."""
        if not fits_columns(ChatRow, user_id=user_id):
            return []
        with translate_errors("list favourite messages"):
            statement = SqlStatement(ChatRow._meta.db)
            is_favourite = POSTGRES_FAVOURITE if statement.is_postgres else SQLITE_FAVOURITE
            model = (
                "m.attributes ->> 'model'"
                if statement.is_postgres
                else "json_extract(m.attributes, '$.model')"
            )
            rows = await statement.run(
                f"SELECT c.id AS chat_id, c.title, c.folder_id, m.id AS message_id, m.role, {model} AS model,"  # noqa: S608
                f" substr({TEXT}, 1, {MAX_FAVOURITE_CHARACTERS}) AS text, m.timestamp"
                " FROM chat_messages m JOIN chats c ON c.id = m.chat_id"
                f" WHERE {is_favourite} AND c.user_id = {statement.bind(user_id)} AND {IS_COMPLETE}"
                f" ORDER BY m.timestamp DESC, m.number DESC{statement.window(offset, limit)}"
            )
        return [FavouriteMessage(**{**row, "model": str(row["model"] or "")}) for row in rows]

    async def matches(self, chat_ids: Sequence[str], text: str) -> Sequence[MatchedMessage]:
        """Return the newest match of each of the chats whose messages contain a text."""
        pattern, wanted = contains_pattern(text), storable_ids(ChatRow, chat_ids)
        if not text or pattern is None or not wanted:
            return []
        key = casefold_nfc(text)
        with translate_errors("search in messages"):
            statement = SqlStatement(ChatRow._meta.db)
            chats, like = statement.among(wanted), statement.like(pattern)
            find, most = ("strpos", "GREATEST") if statement.is_postgres else ("instr", "max")
            start = f"{most}({find}(m.content_key, {statement.bind(key)}) - {CHARACTERS_BEFORE}, 1)"
            rows = await statement.run(
                f"SELECT m.chat_id, m.id, substr({TEXT}, {start}, {MAX_SNIPPET_CHARACTERS}) AS snippet,"  # noqa: S608
                f" substr(m.content_key, {start}, {MAX_SNIPPET_CHARACTERS}) AS folded FROM chat_messages m"
                " WHERE m.number IN (SELECT MAX(n.number) FROM chat_messages n"
                f" WHERE n.chat_id {chats} AND n.content_key {like} GROUP BY n.chat_id)"
            )
        return [MatchedMessage(row["chat_id"], row["id"], _snippet(row, key)) for row in rows]


def _snippet(row: Mapping[str, Any], key: str) -> str:
    """Return the text around a match on one line.

    Folding the case may change the length of a text, so that the match is elsewhere in the original.
    """
    has_match = key in casefold_nfc(row["snippet"])
    return " ".join((row["snippet"] if has_match else row["folded"]).split())
