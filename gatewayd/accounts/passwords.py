"""Password hashing with argon2id in a small thread pool."""

import asyncio
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from gatewayd import ids
from gatewayd.accounts.password_rules import PasswordRules, check_password
from gatewayd.errors import ErrorKind, GatewayError

MAX_WAITING: Final = 64
"""Maximum number of waiting passwords: about a second of work."""

MAX_THREADS: Final = 2

Result = TypeVar("Result")


class Passwords:
    """argon2id with 19 MiB, two passes and a parallelism of one, in a thread pool of its own.

    The pool uses at most half of the processors, so that many sign-ins leave capacity for other requests.
    """

    def __init__(self, rules: PasswordRules | None = None) -> None:
        threads = max(1, min(MAX_THREADS, (os.cpu_count() or 1) // 2))
        self._rules = rules or PasswordRules()
        self._hasher = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="passwords")
        self._waiting = 0
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
        """Tell whether a password matches its hash; a hash of None costs the same work."""
        try:
            check_password(password)
        except GatewayError:
            return False
        fits = await self._run(lambda: self._fits(password_hash or self._dummy, password))
        return fits and password_hash is not None

    def needs_rehash(self, password_hash: str) -> bool:
        """Tell whether a hash was made with weaker parameters than today's."""
        return self._hasher.check_needs_rehash(password_hash)

    def close(self) -> None:
        """Wait for running jobs and stop the threads."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _fits(self, password_hash: str, password: str) -> bool:
        try:
            return self._hasher.verify(password_hash, password)
        except (VerificationError, InvalidHashError):
            return False

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
