"""Connections to Redis (extra `redis`), or to the master that Sentinels name, behind a circuit breaker."""

import asyncio
import importlib
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar
from urllib.parse import parse_qs, unquote

from gatewayd.errors import ErrorKind, GatewayError, shorten
from gatewayd.extras import PackageExtra, is_installed, missing_extra_error
from gatewayd.urls import split_url

COMMAND_SECONDS: Final = 0.25
BLOCK_SECONDS: Final = 1.0
PAUSE_SECONDS: Final = 1.0
"""How long no command is sent after one that failed; then one is tried."""

CHECK_SECONDS: Final = 5.0
SENTINEL_PORT: Final = 26379
MAX_CONNECTIONS: Final = 64
MAX_REASON_CHARACTERS: Final = 200

Reply = TypeVar("Reply")


class RedisClient:
    """Commands without retries: one that was repeated after a time-out would be carried out twice.

    `url` is redis://, rediss://, unix:// or redis+sentinel://[:PASSWORD@]HOST[:PORT],.../SERVICE[/DATABASE].
    `blocking` is a client of its own for reads that wait for up to BLOCK_SECONDS.
    """

    def __init__(self, url: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        if not is_installed(PackageExtra.REDIS):
            raise missing_extra_error("cannot use redis_url", PackageExtra.REDIS, param="redis_url")
        self._library = importlib.import_module("redis.asyncio")
        self._errors: tuple[type[Exception], ...] = (self._library.RedisError, OSError, TimeoutError)
        self._clock = clock
        self._closed_until = 0.0
        self._sentinels: list[Any] = []
        self._commands = self._open(url, COMMAND_SECONDS)
        self.blocking = self._open(url, BLOCK_SECONDS + 2.0)

    @property
    def is_usable(self) -> bool:
        """Whether the last command succeeded, or failed long enough ago for another try."""
        return self._clock() >= self._closed_until

    async def run(self, command: Callable[[Any], Awaitable[Reply]]) -> Reply:
        """Run a command on the client; unavailable if it fails, and at once while the last one has failed."""
        if not self.is_usable:
            raise GatewayError(ErrorKind.UNAVAILABLE, "cannot reach Redis: it failed a moment ago")
        # Others wait for the outcome of this one, should it be a try.
        before = self._closed_until
        if before:
            self._closed_until = self._clock() + PAUSE_SECONDS
        is_told = False
        try:
            reply = await command(self._commands)
            is_told = True
        except self._library.ResponseError as error:
            self._closed_until, is_told = 0.0, True
            raise GatewayError(ErrorKind.UNAVAILABLE, f"cannot use Redis: {reason_of(error)}") from error
        except self._errors as error:
            self._closed_until, is_told = self._clock() + PAUSE_SECONDS, True
            raise GatewayError(ErrorKind.UNAVAILABLE, f"cannot reach Redis: {reason_of(error)}") from error
        finally:
            # A cancelled command tells nothing.
            if not is_told:
                self._closed_until = before
        self._closed_until = 0.0
        _check_cancelled()
        return reply

    async def read(self, command: Callable[[Any], Awaitable[Reply]]) -> Reply:
        """Run a blocking read on the client for it; unavailable if it fails."""
        try:
            reply = await command(self.blocking)
        except self._errors as error:
            _check_cancelled()
            raise GatewayError(ErrorKind.UNAVAILABLE, f"cannot reach Redis: {reason_of(error)}") from error
        _check_cancelled()
        return reply

    def script(self, text: str) -> Any:
        """Return a script that `run` calls as `script(keys, args, client)`."""
        return self._commands.register_script(text)

    async def close(self) -> None:
        """Close all connections."""
        for client in (self._commands, self.blocking, *self._sentinels):
            await client.aclose()

    def _open(self, url: str, seconds: float) -> Any:
        retry = importlib.import_module("redis.asyncio.retry").Retry(
            importlib.import_module("redis.backoff").NoBackoff(), 0
        )
        given: dict[str, Any] = {
            "socket_timeout": seconds,
            "socket_connect_timeout": COMMAND_SECONDS,
            "retry": retry,
            "health_check_interval": CHECK_SECONDS,
            "protocol": 2,
        }
        try:
            if url.startswith("redis+sentinel://"):
                return self._open_sentinel(url, given)
            return self._library.Redis.from_url(url, max_connections=MAX_CONNECTIONS, **given)
        except ValueError as error:
            raise GatewayError(
                ErrorKind.NOT_CONFIGURED, f"cannot use redis_url: {reason_of(error)}", param="redis_url"
            ) from error

    def _open_sentinel(self, url: str, given: dict[str, Any]) -> Any:
        parts = split_url(url)
        credentials, _, hosts = parts.netloc.rpartition("@")
        service, _, database = parts.path.strip("/").partition("/")
        if not service or not hosts:
            raise ValueError("it names no service of Sentinels")
        user, _, password = credentials.partition(":")
        sentinels = [
            (host.rpartition(":")[0] or host, int(host.rpartition(":")[2]) if ":" in host else SENTINEL_PORT)
            for host in hosts.split(",")
        ]
        secret = {"username": unquote(user) or None, "password": unquote(password) or None}
        asked = parse_qs(parts.query).get("sentinel_password", [None])[0]
        module = importlib.import_module("redis.asyncio.sentinel")
        found = module.Sentinel(sentinels, sentinel_kwargs={**given, "password": asked})
        self._sentinels += found.sentinels
        return found.master_for(service, db=int(database or 0), **given, **secret)


def _check_cancelled() -> None:
    """Raise the cancellation of the task if the library took it for the end of a time-out of its own."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def reason_of(error: BaseException) -> str:
    """Return the reason of an error of the library."""
    return shorten(str(error) or type(error).__name__, MAX_REASON_CHARACTERS)
