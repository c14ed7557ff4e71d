"""Store of sessions."""

from collections.abc import Mapping, Sequence

from gatewayd.accounts.records import SessionOrigin, SignInMethod, StoredSession
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import fits_columns
from gatewayd.storage.engine.transactions import placeholder, write_transaction
from gatewayd.storage.tables.accounts import SessionRow, UserRow

MAX_IDS_PER_STATEMENT = 500


class TortoiseSessions:
    """Implements `accounts.interfaces.SessionStore`."""

    async def add(self, session: StoredSession) -> None:
        """Insert a session."""
        async with write_transaction("add the session"):
            await _row_of(session).save(force_create=True)

    async def find(self, session_id: str) -> StoredSession | None:
        """Return the session with this id."""
        if not fits_columns(SessionRow, jti=session_id):
            return None
        with translate_errors("read a session"):
            row = await SessionRow.get_or_none(jti=session_id)
            found = [] if row is None else await _current([row])
        return found[0] if found else None

    async def list(self, user_id: str, *, after: int) -> Sequence[StoredSession]:
        """Return the sessions of a user that expire later than `after`, newest first."""
        if not fits_columns(SessionRow, user_id=user_id):
            return []
        with translate_errors("list sessions"):
            wanted = SessionRow.filter(user_id=user_id, expires_at__gt=after)
            return await _current(await wanted.order_by("-created_at", "jti"))

    async def list_of_provider(
        self, provider: str, *, user_id: str | None = None, provider_session: str | None = None
    ) -> Sequence[StoredSession]:
        """Return the sessions that began at a provider, of one user or with one id at the provider."""
        given = {"provider": provider, "user_id": user_id, "provider_session": provider_session}
        values = {name: value for name, value in given.items() if value is not None}
        if not fits_columns(SessionRow, **values):
            return []
        with translate_errors("list sessions"):
            return await _current(await SessionRow.filter(**values).order_by("-created_at", "jti"))

    async def remove(self, session_ids: Sequence[str]) -> int:
        """Delete sessions; return how many there were."""
        removed = 0
        async with write_transaction("remove sessions"):
            for start in range(0, len(session_ids), MAX_IDS_PER_STATEMENT):
                part = session_ids[start : start + MAX_IDS_PER_STATEMENT]
                removed += await SessionRow.filter(jti__in=part).delete()
        return removed

    async def confirm(self, session_id: str, at: int) -> bool:
        """Write the time of a confirmation by a password."""
        async with write_transaction("confirm the session"):
            return await SessionRow.filter(jti=session_id).update(confirmed_at=at) > 0

    async def touch(self, seen: Mapping[str, int]) -> None:
        """Write last_seen_at for many sessions in one transaction, never backwards."""
        # The same order everywhere prevents a deadlock between processes.
        rows = [(at, jti) for jti, at in sorted(seen.items()) if fits_columns(SessionRow, jti=jti)]
        async with write_transaction("write last-seen times") as client:
            one, two = placeholder(client, 1), placeholder(client, 2)
            await client.execute_many(
                f"UPDATE sessions SET last_seen_at = {one}"  # noqa: S608 - placeholders only
                f" WHERE jti = {two} AND last_seen_at < {one}",
                rows,
            )

    async def prune(self, before: int) -> int:
        """Delete the sessions that expired before a time; return how many."""
        async with write_transaction("delete expired sessions"):
            return await SessionRow.filter(expires_at__lt=before).delete()


async def _current(rows: Sequence[SessionRow]) -> Sequence[StoredSession]:
    """Return the sessions of rows whose token version is that of the user."""
    user_ids = {row.user_id for row in rows}  # type: ignore[attr-defined]
    users = await UserRow.filter(id__in=list(user_ids)).values_list("id", "token_version") if rows else []
    versions = dict(users)
    return [
        _record_of(row)
        for row in rows
        if versions.get(row.user_id) == row.token_version  # type: ignore[attr-defined]
    ]


def _row_of(session: StoredSession) -> SessionRow:
    origin = session.origin
    return SessionRow(
        jti=session.id,
        user_id=session.user_id,
        token_version=session.token_version,
        created_at=session.created_at,
        expires_at=session.expires_at,
        last_seen_at=session.last_seen_at,
        confirmed_at=session.confirmed_at,
        method=origin.method.value,
        provider=origin.provider,
        provider_session=origin.provider_session,
        user_agent=origin.user_agent,
        address=origin.address,
    )


def _record_of(row: SessionRow) -> StoredSession:
    origin = SessionOrigin(
        SignInMethod(row.method), row.provider, row.provider_session, row.user_agent, row.address
    )
    return StoredSession(
        id=row.jti,
        user_id=str(row.user_id),  # type: ignore[attr-defined]
        token_version=row.token_version,
        created_at=row.created_at,
        expires_at=row.expires_at,
        last_seen_at=row.last_seen_at,
        origin=origin,
        confirmed_at=row.confirmed_at,
    )
