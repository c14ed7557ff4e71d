"""The blob stores: a directory, or a bucket of an object store."""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.blob_copies import BlobCopies
from gatewayd.ingest.blobs import LocalBlobs
from gatewayd.ingest.interfaces import BlobStore
from gatewayd.settings import Settings
from gatewayd.upstream.objects.blobs import ObjectBlobs
from gatewayd.upstream.objects.bucket import Bucket, BucketAddress

DOCUMENTS_FOLDER: Final = "files"
BATCHES_FOLDER: Final = "batches/files"
COPIES_FOLDER: Final = "copies"
DIRECTORY: Final = "directory"


@dataclass(frozen=True, slots=True)
class FileStores:
    """The bytes of documents, and those of the files of batches."""

    documents: BlobStore
    batches: BlobStore
    bucket: Bucket | None = None
    copies: BlobCopies | None = None


def make_file_stores(settings: Settings, node_id: str = "") -> FileStores:
    """Return the stores that the settings name; not_configured if their library is missing.

    A node has a folder of its own for what it receives in a shared directory.
    """
    place = settings.file_store
    if place == DIRECTORY or place.startswith("/"):
        is_shared = place != DIRECTORY
        folder = Path(place) if is_shared else settings.data_dir
        return FileStores(
            LocalBlobs(folder / DOCUMENTS_FOLDER, node_id, is_shared=is_shared),
            LocalBlobs(folder / BATCHES_FOLDER, node_id, is_shared=is_shared),
        )
    bucket = Bucket(
        BucketAddress(
            place,
            settings.file_store_endpoint,
            settings.file_store_region,
            settings.file_store_access_key.get_secret_value(),
            settings.file_store_secret_key.get_secret_value(),
        )
    )
    copies = BlobCopies(settings.data_dir / COPIES_FOLDER)
    return FileStores(
        ObjectBlobs(bucket, DOCUMENTS_FOLDER, copies),
        ObjectBlobs(bucket, BATCHES_FOLDER, copies),
        bucket,
        copies,
    )


async def open_file_stores(settings: Settings, node_id: str = "") -> FileStores:
    """Return the stores once they can be written; not_configured with the reason otherwise."""
    stores = make_file_stores(settings, node_id)
    if stores.bucket is not None:
        await stores.bucket.check()
    elif settings.file_store != DIRECTORY:
        await asyncio.to_thread(_check_directory, Path(settings.file_store))
    if stores.copies is not None:
        await stores.copies.clear()
    return stores


def _check_directory(folder: Path) -> None:
    if not folder.is_dir():
        reason = "it is not a directory"
    elif not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        reason = "the user of the gateway may not write it"
    else:
        return
    raise GatewayError(
        ErrorKind.NOT_CONFIGURED, f"cannot use file_store {folder}: {reason}", param="file_store"
    )
