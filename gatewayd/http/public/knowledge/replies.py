"""Replies about collections for several routes."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from aiohttp import web

from gatewayd.accounts.records import Actor
from gatewayd.errors import GatewayError
from gatewayd.http.body import json_reply, warning_headers
from gatewayd.http.public.files.owners import OwnerFinder, RenderedDocument
from gatewayd.ingest.records import File
from gatewayd.ingest.serializers import render_file, render_metadata
from gatewayd.knowledge.collections import CollectionService
from gatewayd.knowledge.members import CollectionMembers, MemberResult
from gatewayd.knowledge.records import Collection
from gatewayd.knowledge.serializers import render_collection

MAX_FAILURES_SHOWN: Final = 5
MAX_FILES_IN_REPLY: Final = 1000
"""Largest collection whose files the reply to a change lists. The replies of many additions would grow with
each."""

MAX_FILES_SHOWN: Final = 10_000
"""Largest collection whose files the reply to a read lists."""


class CollectionReplies:
    """Serializer of collections for an actor: lists with owners, single collections with files."""

    def __init__(
        self, collections: CollectionService, members: CollectionMembers, owners: OwnerFinder
    ) -> None:
        self._collections = collections
        self._members = members
        self._owners = owners

    async def listed(self, actor: Actor, found: Sequence[Collection]) -> list[RenderedDocument]:
        """Return collections with `user`, `file_count` and `write_access`."""
        owners = await self._owners.shown(each.user_id for each in found)
        return [
            {
                **render_collection(each),
                "user": owners[each.user_id],
                "file_count": each.file_count,
                "write_access": self._collections.may_write(actor, each),
            }
            for each in found
        ]

    async def files(self, found: Iterable[File]) -> list[RenderedDocument]:
        """Return files with `user`."""
        files = list(found)
        owners = await self._owners.shown(file.user_id for file in files)
        return [{**render_file(file), "user": owners[file.user_id]} for file in files]

    async def shown(
        self, actor: Actor, collection: Collection, *, limit: int = MAX_FILES_IN_REPLY
    ) -> RenderedDocument:
        """Return a collection with `files` (completed ones) and `write_access`.

        `files` is None for a collection with over `limit` files, which clients list in pages.
        """
        files = await self._members.completed(actor, collection.id, limit)
        count = await self._collections.count_files(collection) if files is None else len(files)
        return {
            **render_collection(collection),
            "files": None if files is None else [render_metadata(file) for file in files],
            "file_count": count,
            "write_access": self._collections.may_write(actor, collection),
        }

    async def whole(
        self, actor: Actor, collection: Collection, *, limit: int = MAX_FILES_IN_REPLY
    ) -> web.StreamResponse:
        """Return the reply with `shown`."""
        return json_reply(await self.shown(actor, collection, limit=limit))

    async def batch(
        self, actor: Actor, collection: Collection, results: Sequence[MemberResult]
    ) -> web.StreamResponse:
        """Return the reply with `shown` and the result of each file; raises when all of them failed.

        `{..., "results": [{"file_id", "status", "error"?}], "warnings"?: {"message", "errors": [text]}}`
        """
        failures = [
            (result.file_id, result.error) for result in results if isinstance(result.error, GatewayError)
        ]
        if failures and len(failures) == len(results):
            raise _joined(failures)
        reply = {**await self.shown(actor, collection), "results": [_show_result(each) for each in results]}
        if not failures:
            return json_reply(reply)
        message = f"{len(failures)} of {len(results)} files could not be added"
        errors = [f"{file_id}: {error.message}" for file_id, error in failures]
        reply["warnings"] = {"message": message, "errors": errors}
        return json_reply(reply, headers=warning_headers([message, *errors[:MAX_FAILURES_SHOWN]]))


def _show_result(result: MemberResult) -> dict[str, Any]:
    if result.error is not None:
        return {"file_id": result.file_id, "status": "failed", "error": result.error.message}
    return {"file_id": result.file_id, "status": "added" if result.is_changed else "unchanged"}


def _joined(failures: Sequence[tuple[str, GatewayError]]) -> GatewayError:
    first = failures[0][1]
    sentences = list(dict.fromkeys(error.message for _, error in failures))
    more = len(sentences) - MAX_FAILURES_SHOWN
    message = "; ".join(sentences[:MAX_FAILURES_SHOWN]) + (f"; and {more} more" if more > 0 else "")
    return GatewayError(first.kind, message, param=first.param, code=first.code)
