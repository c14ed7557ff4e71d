"""Creation, rotation and retirement of the SCIM tokens in their file; changes apply at once."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol

from gatewayd import ids
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.scim.tokens.file import find_written_at, read_tokens, write_tokens

FINGERPRINT_CHARACTERS: Final = 12


class TokenChecker(Protocol):
    """Checker of the tokens of requests; `credential.ScimTokens` is one."""

    def replace(self, enabled: bool, tokens: Sequence[str]) -> None:
        """Replace the valid tokens; none is valid while SCIM is not enabled."""
        ...


@dataclass(frozen=True, slots=True)
class TokenSource:
    """Source of the tokens according to the settings.

    `values` are the valid tokens. They are in the file at `path` unless they are external: set by the
    configuration, the environment or a credential, which `origin` names.
    """

    enabled: bool
    values: tuple[str, ...] = field(repr=False)
    path: Path
    origin: str
    is_external: bool


@dataclass(frozen=True, slots=True)
class TokenReport:
    """Public data about the tokens, without their values.

    `fingerprints` are the first 12 hexadecimal digits of the SHA-256 of each, the newest first. `is_stale`
    says that the file has changed since the daemon read it. `written_at` is in epoch seconds.
    """

    enabled: bool
    origin: str
    is_external: bool
    path: Path
    fingerprints: tuple[str, ...]
    written_at: int | None
    is_stale: bool


class ScimTokenKeeper:
    """Manages the token file; its operations are serialised.

    Errors: conflict if the number of tokens does not allow the operation, or the tokens are external;
    not_configured if the file cannot be read or written.
    """

    def __init__(
        self, tokens: TokenChecker, source: TokenSource, make_secret: Callable[[], str] = ids.new_secret
    ) -> None:
        self._tokens = tokens
        self._source = source
        self._make_secret = make_secret
        self._lock = asyncio.Lock()

    def configure(self, source: TokenSource) -> None:
        """Apply the settings after a reload."""
        self._source = source
        self._tokens.replace(source.enabled, source.values)

    async def create(self, *, dry_run: bool = False) -> str:
        """Create the first token and return it."""
        async with self._lock:
            present = await self._present("create")
            if present:
                raise _conflict("cannot create the SCIM token: there is one already, rotate it to replace it")
            return await self._add((), dry_run=dry_run)

    async def rotate(self, *, dry_run: bool = False) -> str:
        """Create a further token and return it; the present one stays valid."""
        async with self._lock:
            present = await self._present("rotate")
            if not present:
                raise _conflict("cannot rotate the SCIM token: there is none yet, create one")
            if len(present) > 1:
                raise _conflict("cannot rotate the SCIM token: there are two already, retire the older one")
            return await self._add(present, dry_run=dry_run)

    async def retire(self, *, dry_run: bool = False) -> str:
        """Drop the older of two tokens and return its fingerprint."""
        async with self._lock:
            present = await self._present("retire")
            if len(present) < 2:
                count = "only one" if present else "none"
                raise _conflict(f"cannot retire a SCIM token: there is {count}, rotate it first")
            await self._keep(present[:1], dry_run=dry_run)
            return fingerprint(present[1])

    async def describe(self) -> TokenReport:
        """Return the public data about the tokens."""
        source = self._source
        written_at, values = None, source.values
        if not source.is_external:
            values = await asyncio.to_thread(read_tokens, source.path)
            written_at = await asyncio.to_thread(find_written_at, source.path)
        return TokenReport(
            enabled=source.enabled,
            origin=source.origin if source.values else f"file {source.path}",
            is_external=source.is_external,
            path=source.path,
            fingerprints=tuple(fingerprint(value) for value in values),
            written_at=written_at,
            is_stale=source.enabled and values != source.values,
        )

    async def _present(self, verb: str) -> tuple[str, ...]:
        source = self._source
        if source.is_external:
            raise _conflict(
                f"cannot {verb} the SCIM token: scim_token is set by {source.origin}; change it there, "
                f"or remove it there and restart the daemon to have it kept in {source.path}"
            )
        return await asyncio.to_thread(read_tokens, source.path)

    async def _add(self, present: tuple[str, ...], *, dry_run: bool) -> str:
        value = self._make_secret()
        await self._keep((value, *present), dry_run=dry_run)
        return value

    async def _keep(self, values: tuple[str, ...], *, dry_run: bool) -> None:
        path = self._source.path
        await asyncio.to_thread(write_tokens, path, values, dry_run=dry_run)
        # A reload during the write may have changed the source.
        is_ours = self._source.path == path and not self._source.is_external
        if is_ours and not dry_run:
            self.configure(replace(self._source, values=values, origin=f"file {path}"))


def fingerprint(token: str) -> str:
    """Return the first 12 hexadecimal digits of the SHA-256 of a token, which identify it."""
    return ids.digest(token)[:FINGERPRINT_CHARACTERS]


def _conflict(message: str) -> GatewayError:
    return GatewayError(ErrorKind.CONFLICT, message, param="scim_token")
