"""Store of requests with idempotency keys; their replies are encrypted, as they may hold secrets."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from gatewayd.encryption import DecryptionError, SecretKeys, TextCipher
from gatewayd.resumption.records import RequestRecord, StoredReply
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import decode, encode
from gatewayd.storage.engine.statements import SqlStatement
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.engine.upserts import upsert_rows
from gatewayd.storage.tables.streams import IdempotentRequestRow

DERIVATION_INFO: Final = b"gatewayd replies of idempotent requests"

MAX_SHORT_CHARACTERS: Final = 64 * 1024
"""Length of a text that is encrypted on the event loop."""


class TortoiseReplies:
    """Implements `resumption.interfaces.ReplyStore`. `secret` is the secret of the gateway."""

    def __init__(self, secret: bytes | SecretKeys) -> None:
        self._cipher = TextCipher(secret, DERIVATION_INFO)

    async def find(self, digest: str) -> RequestRecord | None:
        """Return a request; None if absent, and if the secret of the gateway was replaced."""
        with translate_errors("read the reply of a request"):
            row = await IdempotentRequestRow.get_or_none(digest=digest)
        if row is None:
            return None
        reply = None
        if row.reply is not None:
            try:
                reply = _reply_of(decode(self._cipher.decrypt(row.reply), "the reply of a request"))
            except DecryptionError:
                return None
        return RequestRecord(row.digest, row.user_id, row.fingerprint, row.created_at, reply)

    async def put(self, record: RequestRecord) -> None:
        """Insert a request, or replace the one with the same digest."""
        reply = record.reply
        text = None if reply is None else await self._encrypted(encode(_members_of(reply), "reply"))
        columns = {
            "digest": record.digest,
            "user_id": record.user_id,
            "fingerprint": record.fingerprint,
            "reply": text,
            "created_at": record.created_at,
        }
        async with write_transaction("store the reply of a request"):
            await upsert_rows(IdempotentRequestRow, [columns], ["digest"])

    async def _encrypted(self, text: str) -> str:
        if len(text) <= MAX_SHORT_CHARACTERS:
            return self._cipher.encrypt(text)
        return await asyncio.to_thread(self._cipher.encrypt, text)

    async def remove(self, digest: str) -> None:
        """Delete a request, if there is one."""
        async with write_transaction("forget a request"):
            await IdempotentRequestRow.filter(digest=digest).delete()

    async def prune(self, before: int) -> int:
        """Delete requests older than a time; return how many."""
        async with write_transaction("forget old requests"):
            return await IdempotentRequestRow.filter(created_at__lt=before).delete()

    async def remove_user(self, user_id: str) -> None:
        """Delete all requests of a user."""
        async with write_transaction("forget the requests of a user"):
            await delete_requests_of(user_id)

    async def trim(self, user_id: str, most: int, characters: int) -> None:
        """Delete all but the newest requests of a user; running ones stay."""
        with translate_errors("count the requests of a user"):
            statement = SqlStatement(IdempotentRequestRow._meta.db)
            rows = await statement.run(
                "SELECT digest, reply IS NULL AS runs, LENGTH(reply) AS size"  # noqa: S608
                f" FROM idempotent_requests WHERE user_id = {statement.bind(user_id)}"
                " ORDER BY created_at DESC, digest"
            )
        gone, size = [], 0
        for number, row in enumerate(rows, start=1):
            size += row["size"] or 0
            if (number > most or size > characters) and not row["runs"]:
                gone.append(row["digest"])
        if gone:
            async with write_transaction("forget old requests"):
                await IdempotentRequestRow.filter(digest__in=gone).delete()


async def delete_requests_of(user_id: str) -> None:
    """Delete all requests of a user, within the transaction of the caller."""
    await IdempotentRequestRow.filter(user_id=user_id).delete()


def _members_of(reply: StoredReply) -> dict[str, Any]:
    return {
        "status": reply.status,
        "headers": dict(reply.headers),
        "text": reply.text,
        "stream_id": reply.stream_id,
    }


def _reply_of(members: Mapping[str, Any]) -> StoredReply:
    return StoredReply(**members)
