"""Password hashing with argon2id in a small thread pool, which checks hashes of bcrypt, too."""

import asyncio
import os
import re
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from gatewayd import ids
from gatewayd.accounts.password_rules import PasswordRules, check_password
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.extras import PackageExtra, find_library, missing_extra_error

BCRYPT_PREFIXES: Final = ("$2a$", "$2b$", "$2y$")
"""How hashes of bcrypt begin, which accounts from Open WebUI have up to their first sign-in."""

_BCRYPT: Final = re.compile(r"\$2[aby]\$(?:0[4-9]|1[0-6])\$[./A-Za-z0-9]{53}")
MAX_BCRYPT_BYTES: Final = 72
"""Bytes of a password that count for bcrypt; Open WebUI cuts longer ones."""

MAX_WAITING: Final = 64
"""Maximum number of waiting passwords: about a second of work."""

MAX_THREADS: Final = 2

Result = TypeVar("Result")


class Passwords:
    """argon2id with 19 MiB, two passes and a parallelism of one, in a thread pool of its own.

    The pool uses at most half of the processors, so that many sign-ins leave capacity for other requests. A
    check of bcrypt takes longer; from the first one on, every failure takes as long.
    """

    def __init__(self, rules: PasswordRules | None = None) -> None:
        threads = max(1, min(MAX_THREADS, (os.cpu_count() or 1) // 2))
        self._rules = rules or PasswordRules()
        self._hasher = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="passwords")
        self._waiting = 0
        self._bcrypt_seconds = 0.0
        """The longest check of a hash of bcrypt so far."""
        # Checked in place of a missing hash, so that an unknown account takes as long as a known one.
        self._dummy = self._hasher.hash(ids.new_secret())

    def check_new(self, password: str, about: Iterable[str], param: str = "password") -> None:
        """Raise invalid_request (code `weak_password`) for a weak new password.

        `about` are the e-mail address and the names of the owner.
        """
        self._rules.check(password, about, param)

    async def hash(self, password: str) -> str:
        """Return the encoded argon2id hash; raise invalid_request if unusable, unavailable when busy."""
        check_password(password)
        return await self._run(lambda: self._hasher.hash(password))

    async def verify(self, password_hash: str | None, password: str) -> bool:
        """Tell whether a password matches its hash; a hash of None costs the same work.

        Raises not_configured for a hash of bcrypt without the extra that checks it.
        """
        try:
            check_password(password)
        except GatewayError:
            return False
        began = time.monotonic()
        fits = await self._run(lambda: self._fits(password_hash or self._dummy, password))
        if not fits:
            await asyncio.sleep(self._bcrypt_seconds - (time.monotonic() - began))
        return fits and password_hash is not None

    def needs_rehash(self, password_hash: str) -> bool:
        """Tell whether a hash was made with weaker parameters than today's, or by bcrypt."""
        return is_bcrypt(password_hash) or self._hasher.check_needs_rehash(password_hash)

    def close(self) -> None:
        """Wait for running jobs and stop the threads."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _fits(self, password_hash: str, password: str) -> bool:
        if is_bcrypt(password_hash):
            return self._fits_bcrypt(password_hash, password)
        try:
            return self._hasher.verify(password_hash, password)
        except (VerificationError, InvalidHashError):
            return False

    def _fits_bcrypt(self, password_hash: str, password: str) -> bool:
        bcrypt = find_library(PackageExtra.OPEN_WEBUI)
        if bcrypt is None:
            raise missing_extra_error(
                "cannot check the password of an imported account", PackageExtra.OPEN_WEBUI
            )
        began = time.monotonic()
        try:
            return bool(bcrypt.checkpw(password.encode()[:MAX_BCRYPT_BYTES], password_hash.encode()))
        except ValueError:
            return False
        finally:
            self._bcrypt_seconds = max(self._bcrypt_seconds, time.monotonic() - began)

    async def _run(self, work: Callable[[], Result]) -> Result:
        if self._waiting >= MAX_WAITING:
            raise GatewayError(
                ErrorKind.UNAVAILABLE, "cannot check passwords now: too many are being checked", retry_after=2
            )
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._waiting -= 1


def is_bcrypt(password_hash: str) -> bool:
    """Tell whether a hash was made by bcrypt."""
    return password_hash.startswith(BCRYPT_PREFIXES)


def is_known_hash(password_hash: str) -> bool:
    """Tell whether a hash of another program is one that `Passwords` checks: of argon2, or of bcrypt.

    A hash of bcrypt with far more rounds than usual would occupy a processor for minutes.
    """
    return _BCRYPT.fullmatch(password_hash) is not None or password_hash.startswith("$argon2")
