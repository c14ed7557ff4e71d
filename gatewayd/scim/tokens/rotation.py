"""Creation, rotation and retirement of the SCIM tokens in the database; all nodes apply a change."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from gatewayd import ids
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.scim.interfaces import ScimTokenStore
from gatewayd.scim.records import StoredScimToken
from gatewayd.scim.tokens.file import MAX_TOKENS, read_tokens
from gatewayd.transactions import Transactor, after_commit

log = logging.getLogger(__name__)

FINGERPRINT_CHARACTERS: Final = 12
TOKENS_LOCK: Final = "SCIM tokens"
DATABASE: Final = "the database"
"""Origin of the tokens that `ScimTokenKeeper` makes."""


class TokenChecker(Protocol):
    """Checker of the tokens of requests; `credential.ScimTokens` is one."""

    def replace(self, enabled: bool, digests: Sequence[str]) -> None:
        """Replace the SHA-256 of the valid tokens; none is valid while SCIM is not enabled."""
        ...


@dataclass(frozen=True, slots=True)
class TokenSource:
    """Source of the tokens according to the settings.

    External tokens are `values`: they are set by the configuration, the environment or a credential, which
    `origin` names. Otherwise the tokens are in the database, which takes over those of the file at `path`.
    """

    enabled: bool
    path: Path
    values: tuple[str, ...] = field(default=(), repr=False)
    origin: str = DATABASE
    is_external: bool = False


@dataclass(frozen=True, slots=True)
class TokenReport:
    """Public data about the tokens, without their values.

    `fingerprints` are the first 12 hexadecimal digits of the SHA-256 of each, the newest first. `is_stale`
    says that the file has a token that was not taken over. `written_at` is the creation of the newest token
    in epoch seconds.
    """

    enabled: bool
    origin: str
    is_external: bool
    path: Path
    fingerprints: tuple[str, ...]
    written_at: int | None
    is_stale: bool


class ScimTokenKeeper:
    """Manages the tokens in the database; no two changes overlap, also on several nodes.

    Errors: conflict if the number of tokens does not allow the operation, or the tokens are external;
    not_configured if the file cannot be read; unavailable without the database.
    """

    def __init__(
        self,
        tokens: TokenChecker,
        source: TokenSource,
        store: ScimTokenStore,
        transactor: Transactor,
        make_secret: Callable[[], str] = ids.new_secret,
        clock: ids.Clock = ids.now,
    ) -> None:
        self._tokens = tokens
        self._source = source
        self._store = store
        self._transactor = transactor
        self._make_secret = make_secret
        self._clock = clock
        self._valid: Sequence[StoredScimToken] = ()
        self._reading = asyncio.Lock()

    async def open(self) -> None:
        """Take over the tokens of the file, unless SCIM is off, and use those of the database."""
        self._apply()
        if self._source.enabled and not self._source.is_external:
            async with self._changing():
                pass
        await self.load()
        if self._source.enabled and not self._source.is_external and not self._valid:
            log.warning(
                "SCIM clients are refused: there is no SCIM token yet, gatewayctl scim-token create makes one"
            )

    async def configure(self, source: TokenSource) -> None:
        """Apply the settings after a reload."""
        self._source = source
        await self.open()

    async def load(self) -> None:
        """Read the tokens of the database, which this or another node has changed."""
        # A slower answer to an earlier question never replaces a later one.
        async with self._reading:
            self._remember(_valid(await self._store.list()))

    async def create(self, *, dry_run: bool = False) -> str:
        """Create the first token and return it."""
        async with self._changing("create", dry_run=dry_run) as present:
            if present:
                raise _conflict("cannot create the SCIM token: there is one already, rotate it to replace it")
            value, added = await self._add()
        if not dry_run:
            await self._changed([added])
        return value

    async def rotate(self, *, dry_run: bool = False) -> str:
        """Create a further token and return it; the present one stays valid."""
        async with self._changing("rotate", dry_run=dry_run) as present:
            if not present:
                raise _conflict("cannot rotate the SCIM token: there is none yet, create one")
            if len(present) > 1:
                raise _conflict("cannot rotate the SCIM token: there are two already, retire the older one")
            value, added = await self._add()
        if not dry_run:
            await self._changed([added, *present])
        return value

    async def retire(self, *, dry_run: bool = False) -> str:
        """Drop the older of two tokens and return its fingerprint."""
        async with self._changing("retire", dry_run=dry_run) as present:
            if len(present) < 2:
                count = "only one" if present else "none"
                raise _conflict(f"cannot retire a SCIM token: there is {count}, rotate it first")
            await self._store.retire(present[1].digest, self._clock())
        if not dry_run:
            await self._changed(present[:1])
        return _shorten(present[1].digest)

    async def describe(self) -> TokenReport:
        """Return the public data about the tokens."""
        source = self._source
        digests, written_at, is_stale = [ids.digest(value) for value in source.values], None, False
        if not source.is_external:
            stored = await self._store.list()
            valid = _valid(stored)
            digests = [token.digest for token in valid]
            written_at = valid[0].created_at if valid else None
            is_stale = source.enabled and bool(_unknown(await self._read_file(), stored))
        return TokenReport(
            enabled=source.enabled,
            origin=source.origin if source.is_external else DATABASE,
            is_external=source.is_external,
            path=source.path,
            fingerprints=tuple(map(_shorten, digests)),
            written_at=written_at,
            is_stale=is_stale,
        )

    @asynccontextmanager
    async def _changing(
        self, verb: str = "", *, dry_run: bool = False
    ) -> AsyncIterator[Sequence[StoredScimToken]]:
        """Run a transaction that no other change overlaps, with the valid tokens, the newest first.

        The file is taken over without a verb. A verb of a user takes it over only if the database never had a
        token: else a token that nobody was shown could replace the one that clients use.
        """
        source = self._source
        if source.is_external:
            raise _conflict(
                f"cannot {verb or 'take over'} the SCIM token: scim_token is set by {source.origin}; "
                f"change it there, or remove it there and restart the daemon to have it kept in {DATABASE}"
            )
        given = () if verb and await self._store.list() else await self._read_file()
        commits = self._transactor
        async with commits.rehearsal() if dry_run else commits.exclusive(TOKENS_LOCK):
            yield await self._take_over(given)

    async def _take_over(self, given: Sequence[str]) -> Sequence[StoredScimToken]:
        """Store the digests of the file that never were; return the valid tokens.

        A token that was retired stays so. Nothing is taken over if there were too many tokens then.
        """
        stored = await self._store.list()
        valid, unknown = _valid(stored), _unknown(given, stored)
        if not unknown:
            return valid
        if len(valid) + len(unknown) > MAX_TOKENS:
            log.warning(
                "the SCIM tokens of the file are not accepted: there would be over %d, retire the older one",
                MAX_TOKENS,
                extra={"file": str(self._source.path)},
            )
            return valid
        at = self._clock()
        for digest in reversed(unknown):
            await self._store.add(digest, at)
        taken = {"file": str(self._source.path), "fingerprints": list(map(_shorten, unknown))}
        after_commit(lambda: log.info("the database has the SCIM tokens of the file now", extra=taken))
        return [*(StoredScimToken(digest, at) for digest in unknown), *valid]

    async def _read_file(self) -> Sequence[str]:
        """Return the digests of the tokens of the file, the newest first."""
        values = await asyncio.to_thread(read_tokens, self._source.path)
        return [ids.digest(value) for value in dict.fromkeys(values)]

    async def _add(self) -> tuple[str, StoredScimToken]:
        value = self._make_secret()
        added = StoredScimToken(ids.digest(value), self._clock())
        await self._store.add(added.digest, added.created_at)
        return value, added

    async def _changed(self, valid: Sequence[StoredScimToken]) -> None:
        """Apply a committed change, also if the database is away by now."""
        try:
            await self.load()
        except GatewayError as error:
            log.warning("cannot read the SCIM tokens after their change: %s", error.full_message)
            self._remember(valid)

    def _remember(self, valid: Sequence[StoredScimToken]) -> None:
        self._valid = valid
        self._apply()

    def _apply(self) -> None:
        source = self._source
        external = [ids.digest(value) for value in source.values]
        stored = [token.digest for token in self._valid]
        self._tokens.replace(source.enabled, external if source.is_external else stored)


def fingerprint(token: str) -> str:
    """Return the first 12 hexadecimal digits of the SHA-256 of a token, which identify it."""
    return _shorten(ids.digest(token))


def _shorten(digest: str) -> str:
    return digest[:FINGERPRINT_CHARACTERS]


def _valid(tokens: Sequence[StoredScimToken]) -> list[StoredScimToken]:
    return [token for token in tokens if token.retired_at is None]


def _unknown(digests: Sequence[str], stored: Sequence[StoredScimToken]) -> list[str]:
    known = {token.digest for token in stored}
    return [digest for digest in digests if digest not in known]


def _conflict(message: str) -> GatewayError:
    return GatewayError(ErrorKind.CONFLICT, message, param="scim_token")
