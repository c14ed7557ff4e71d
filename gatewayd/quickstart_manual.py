"""The manual pages of this program as a collection, for a first try."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

from gatewayd import ids
from gatewayd.accounts.records import Actor
from gatewayd.assembly.documents import DocumentServices
from gatewayd.catalog.access_grants import READ
from gatewayd.catalog.records import EVERYBODY, Grant
from gatewayd.ingest.records import FileStatus
from gatewayd.ingest.upload import NewFile
from gatewayd.knowledge.collections import NewCollection
from gatewayd.knowledge.uploads import UploadDestination

COLLECTION: Final = "gatewayd manual"
ORIGIN: Final = "manual"
PAGES: Final = Path(__file__).parent / "pages"
"""The manual pages as Markdown, which tests/write_manual_texts.py makes: mandoc may not be here."""
INGEST_SECONDS: Final = 120.0


def find_pages() -> Sequence[Path]:
    """Return the pages in the order of their names."""
    return sorted(PAGES.glob("*.md"))


async def ingest(pages: Sequence[Path], documents: DocumentServices, actor: Actor) -> Sequence[str]:
    """Put the pages into a new collection that everybody may read, and wait until they can be searched.

    Returns a sentence for each page that cannot. Raises GatewayError as the services do.
    """
    everybody = Grant("user", EVERYBODY, READ)
    new = NewCollection(COLLECTION, "The manual pages of this gateway", grants=[everybody])
    collection = await documents.collections.create(actor, new)
    uploaded = [await _upload(page, documents, actor, collection.id) for page in pages]
    deadline = asyncio.get_running_loop().time() + INGEST_SECONDS
    problems = []
    for file_id in uploaded:
        rest = max(0.0, deadline - asyncio.get_running_loop().time())
        file = await documents.files.finished(file_id, rest)
        if file.status is not FileStatus.COMPLETED:
            problems.append(f"cannot search {file.name} yet: {file.error or 'it is still being read'}")
    return problems


async def _upload(page: Path, documents: DocumentServices, actor: Actor, collection_id: str) -> str:
    content = await asyncio.to_thread(page.read_bytes)
    upload = NewFile(page.name, "text/markdown", actor.user_id, {}, checksum=ids.digest(content.decode()))
    place = UploadDestination(collection_id, ORIGIN, page.name)
    file = await documents.uploads.accept(actor, upload, _once(content), place)
    return file.id


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
