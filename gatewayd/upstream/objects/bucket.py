"""A bucket of S3, Google Cloud Storage or Azure: its objects, and errors that name it."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from gatewayd.errors import ErrorKind, GatewayError, shorten
from gatewayd.extras import PackageExtra, find_library, missing_extra_error
from gatewayd.upstream.objects.part_feed import PartFeed

PART_BYTES: Final = 8 << 20
"""Size of the parts of an upload, and of the ranges in which an object is read."""

PARTS_AT_ONCE: Final = 2
REQUEST_SECONDS: Final = 60
CONNECT_SECONDS: Final = 5
RETRIES: Final = 3
RETRY_SECONDS: Final = 30
PROBE_SECONDS: Final = 20.0
PROBE_FOLDER: Final = "probe"
MAX_REASON_CHARACTERS: Final = 300


@dataclass(frozen=True, slots=True)
class BucketAddress:
    """Address of a bucket with a prefix; empty fields are left to the environment of the library.

    `url` is `s3://bucket/prefix`, `gs://bucket/prefix` or `az://container/prefix`.
    """

    url: str
    endpoint: str = ""
    region: str = ""
    access_key: str = ""
    secret_key: str = ""

    @property
    def scheme(self) -> str:
        """The part before the colon."""
        return self.url.partition(":")[0]

    def options(self) -> Mapping[str, str]:
        """Return the configuration of the library for the kind of store."""
        if self.scheme == "gs":
            given = {"base_url": self.endpoint, "service_account_key": self.secret_key}
        elif self.scheme == "az":
            given = {
                "endpoint": self.endpoint,
                "account_name": self.access_key,
                "account_key": self.secret_key,
            }
        else:
            given = {
                "endpoint": self.endpoint,
                "region": self.region,
                "access_key_id": self.access_key,
                "secret_access_key": self.secret_key,
                # The store compares the bytes that it received with it.
                "checksum_algorithm": "SHA256",
            }
        return {name: value for name, value in given.items() if value}


@dataclass(frozen=True, slots=True)
class StoredObject:
    """The key of an object, its size in bytes, and the time of its last change in epoch seconds."""

    key: str
    size: int
    modified_at: float


class Bucket:
    """The objects below a prefix. Errors of the store are unavailable; an absent object is not_found."""

    def __init__(self, address: BucketAddress) -> None:
        self.address = address
        self._library = find_library(PackageExtra.OBJECT_STORE)
        if self._library is None:
            raise missing_extra_error(
                f"cannot use file_store {address.url}", PackageExtra.OBJECT_STORE, param="file_store"
            )
        try:
            self._store: Any = self._library.store.from_url(
                address.url,
                config=dict(address.options()),
                client_options={
                    "allow_http": address.endpoint.startswith("http://"),
                    "timeout": f"{REQUEST_SECONDS}s",
                    "connect_timeout": f"{CONNECT_SECONDS}s",
                },
                retry_config={"max_retries": RETRIES, "retry_timeout": timedelta(seconds=RETRY_SECONDS)},
            )
        except (self._library.exceptions.BaseError, ValueError) as error:
            raise self._unusable(_reason(error)) from error

    async def check(self) -> None:
        """Write, read and delete an object; not_configured with the reason unless that works."""
        key = f"{PROBE_FOLDER}/{secrets.token_hex(8)}"
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                await self.put(key, b"probe")
                found = b"".join([piece async for piece in self.read(key, 0, 5)])
                await self.delete(key)
        except TimeoutError as error:
            raise self._unusable(f"it did not answer within {PROBE_SECONDS:.0f} seconds") from error
        except GatewayError as error:
            is_absent = error.kind is ErrorKind.NOT_FOUND
            raise self._unusable("there is no such bucket" if is_absent else error.message) from error
        if found != b"probe":
            raise self._unusable("it did not return what was written")

    async def put(self, key: str, data: bytes) -> None:
        """Store a small object; conflict if there is one, where the store can tell."""
        with self._failures(key):
            await self._library.put_async(self._store, key, data, mode="create", use_multipart=False)

    async def put_parts(self, key: str, pieces: AsyncIterator[bytes]) -> None:
        """Store an object in parts; nothing is kept if this raises or is cancelled, or `pieces` raises.

        At most PARTS_AT_ONCE + 2 parts are in memory.
        """
        feed = PartFeed()
        putting: asyncio.Future[Any] = self._library.put_async(
            self._store,
            key,
            feed.pieces(),
            use_multipart=True,
            chunk_size=PART_BYTES,
            max_concurrency=PARTS_AT_ONCE,
        )
        putting.add_done_callback(lambda _: feed.close())
        is_sent = False
        try:
            async for piece in pieces:
                await feed.offer(piece)
                if putting.done():
                    break
            feed.end()
            is_sent = True
        finally:
            # The library gives the parts back when the pieces fail, and leaves them when it is cancelled.
            if not is_sent:
                feed.fail(_AbortedError())
                await asyncio.shield(_ended(putting))
        with self._failures(key):
            await putting

    async def head(self, key: str) -> StoredObject:
        """Return what is known of an object."""
        with self._failures(key):
            return _found(await self._library.head_async(self._store, key))

    async def read(self, key: str, start: int, end: int) -> AsyncGenerator[bytes, None]:
        """Yield the bytes from `start` to before `end`, in requests of their own, for slow readers."""
        while start < end:
            with self._failures(key):
                piece = bytes(
                    await self._library.get_range_async(
                        self._store, key, start=start, end=min(end, start + PART_BYTES)
                    )
                )
            if not piece:
                raise GatewayError(
                    ErrorKind.UNAVAILABLE, f"cannot read the object {key!r}: it ended too early"
                )
            yield piece
            start += len(piece)

    async def delete(self, key: str) -> None:
        """Delete an object; an absent one is ignored."""
        try:
            with self._failures(key):
                await self._library.delete_async(self._store, key)
        except GatewayError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise

    async def list(self, prefix: str) -> AsyncGenerator[StoredObject, None]:
        """Yield the objects whose keys begin with a folder."""
        with self._failures(prefix):
            async for batch in self._library.list(self._store, prefix):
                for found in batch:
                    yield _found(found)

    def _unusable(self, reason: str) -> GatewayError:
        return GatewayError(
            ErrorKind.NOT_CONFIGURED,
            f"cannot use file_store {self.address.url}: {reason}",
            param="file_store",
        )

    @contextmanager
    def _failures(self, key: str) -> Iterator[None]:
        errors = self._library.exceptions
        try:
            yield
        except FileNotFoundError as error:
            raise GatewayError(
                ErrorKind.NOT_FOUND, f"cannot find the object {key!r}: {_reason(error)}"
            ) from error
        except errors.AlreadyExistsError as error:
            raise GatewayError(ErrorKind.CONFLICT, f"cannot store the object {key!r}: it exists") from error
        except (errors.PermissionDeniedError, errors.UnauthenticatedError, PermissionError) as error:
            raise GatewayError(
                ErrorKind.UNAVAILABLE, f"the object store refuses the keys: {_reason(error)}"
            ) from error
        except (errors.BaseError, OSError, ValueError) as error:
            raise GatewayError(
                ErrorKind.UNAVAILABLE, f"cannot reach the object store: {_reason(error)}"
            ) from error


class _AbortedError(Exception):
    """Ends an upload whose sender failed."""


async def _ended(putting: "asyncio.Future[Any]") -> None:
    """Wait for the end of an upload, whatever it is."""
    await asyncio.wait([putting], timeout=REQUEST_SECONDS)
    if putting.done() and not putting.cancelled():
        putting.exception()


def _found(meta: Mapping[str, Any]) -> StoredObject:
    return StoredObject(meta["path"], meta["size"], meta["last_modified"].timestamp())


def _reason(error: BaseException) -> str:
    """Return the first line of an error of the library."""
    return shorten(str(error).partition("\n")[0], MAX_REASON_CHARACTERS)
