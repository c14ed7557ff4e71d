"""Requests that fail, by when they do."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tests.fakes.documents.site import DocumentsSite
from tests.fakes.http.multipart_forms import file_part, form


async def too_many(site: DocumentsSite) -> Any:
    for _ in range(2):
        await site.upload(b"x")
    return await site.post_form(form(file_part(b"x")))


async def not_permitted(site: DocumentsSite) -> Any:
    await site.services.accounts.permissions.set_defaults({"chat": {"file_upload": False}}, by="test")
    return await site.post_form(form(file_part(b"x")))


async def shared(site: DocumentsSite) -> Any:
    """Have somebody change a collection that may be read by all."""
    everybody = {"principal_type": "user", "principal_id": "*", "permission": "read"}
    made = await site.collection(site.admin, access_grants=[everybody])
    return await site.call("POST", f"/api/v1/knowledge/{made['id']}/update", site.user, {"name": "mine"})


async def being_processed(site: DocumentsSite) -> Any:
    file = await site.upload(b"words")
    return await site.call("POST", f"/api/v1/files/{file['id']}/process", site.user)


async def unfinished(site: DocumentsSite) -> Any:
    file, made = await site.upload(b"words"), await site.collection()
    return await add(site, made["id"], file["id"])


async def duplicate(site: DocumentsSite) -> Any:
    site.services.queue.start()
    made = await site.collection()
    first, second = await site.processed(b"words"), await site.processed(b"words")
    assert (await add(site, made["id"], first["id"]))[0] == 200
    return await add(site, made["id"], second["id"])


async def add(site: DocumentsSite, collection: str, file: str) -> Any:
    return await site.call("POST", f"/api/v1/knowledge/{collection}/file/add", site.user, {"file_id": file})


ERRORS: Mapping[str, Callable[[DocumentsSite], Awaitable[Any]]] = {
    "a file is larger than rag_file_max_size": lambda site: site.post_form(form(file_part(b"x" * 2000))),
    "the account has rag_file_max_count files": too_many,
    "the extension is not in rag_allowed_file_extensions": lambda site: site.post_form(
        form(file_part(b"x", "a.pdf"))
    ),
    "the name of a file is empty, too long or has control characters": lambda site: site.post_form(
        form(file_part(b"x", "a" * 300 + ".txt"))
    ),
    "the form has no file": lambda site: site.post_form(form()),
    "the permission chat.file_upload is missing": not_permitted,
    "the caller may read the file or collection, but not change it": shared,
    "the file or collection does not exist, or the caller may not read it": lambda site: site.call(
        "GET", "/api/v1/files/unknown", site.user
    ),
    "the file is still being processed": being_processed,
    "the added file has no passages": unfinished,
    "the collection has another file with the same text": duplicate,
}
