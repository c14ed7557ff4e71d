"""Store of the digests of response and item ids, with the users who received them."""

from collections.abc import Mapping, Sequence
from typing import Final

from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.statements import SqlStatement
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.tables.accounts import ResponseIdRow

BATCH_SIZE: Final = 500
"""Rows of one statement."""


class TortoiseResponseIds:
    """Implements `ResponseIdStore` of the pipeline."""

    async def add(self, digests: Sequence[str], user_id: str, at: int) -> None:
        """Store the user who received ids; an id that is already stored keeps its user."""
        rows = [ResponseIdRow(digest=digest, user_id=user_id, created_at=at) for digest in digests]
        async with write_transaction("store the ids of a response"):
            await ResponseIdRow.bulk_create(rows, batch_size=BATCH_SIZE, ignore_conflicts=True)

    async def owners(self, digests: Sequence[str]) -> Mapping[str, str]:
        """Return the users who received ids, by digest; unknown ids are left out."""
        with translate_errors("read the ids of a response"):
            statement = SqlStatement(ResponseIdRow._meta.db)
            rows = await statement.run(
                f"SELECT digest, user_id FROM response_ids WHERE digest {statement.among(digests)}"  # noqa: S608
            )
        return {row["digest"]: row["user_id"] for row in rows}

    async def prune(self, before: int, most: int) -> int:
        """Delete ids received before a time, and all but the `most` newest of each user; return the count."""
        async with write_transaction("forget the ids of responses"):
            gone = await ResponseIdRow.filter(created_at__lt=before).delete()
        for user_id in await _users_with_over(most):
            async with write_transaction("forget the ids of responses"):
                statement = SqlStatement(ResponseIdRow._meta.db)
                user = statement.bind(user_id)
                rows = await statement.run(
                    "DELETE FROM response_ids WHERE digest IN (SELECT digest FROM response_ids"  # noqa: S608
                    f" WHERE user_id = {user} ORDER BY created_at DESC, digest"
                    f"{statement.window(most, None)}) RETURNING digest"
                )
            gone += len(rows)
        return gone


async def _users_with_over(most: int) -> list[str]:
    statement = SqlStatement(ResponseIdRow._meta.db)
    with translate_errors("count the ids of responses"):
        rows = await statement.run(
            "SELECT user_id FROM response_ids GROUP BY user_id"  # noqa: S608
            f" HAVING COUNT(*) > {statement.bind(most)}"
        )
    return [row["user_id"] for row in rows]
