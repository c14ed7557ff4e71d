"""Serializers of files and collections for the control protocol."""

from collections.abc import Iterable, Sequence

from gatewayctl.wire import collections as wire
from gatewayctl.wire.files import File as WireFile
from gatewayd.catalog.access_grants import READ, WRITE
from gatewayd.http.control.accounts.grantees import GranteeFinder
from gatewayd.http.control.transactions import timestamp
from gatewayd.ingest.records import File
from gatewayd.ingest.serializers import file_warning
from gatewayd.knowledge.collections import CollectionService
from gatewayd.knowledge.records import Collection, CollectionLink


class DocumentViews:
    """Serializer of pages of records, with one look-up for the related records of a page."""

    def __init__(self, collections: CollectionService, principals: GranteeFinder) -> None:
        self._collections = collections
        self._principals = principals

    async def files(self, found: Sequence[File]) -> list[WireFile]:
        """Return files with the e-mails of their owners and the names of the collections that hold them."""
        emails = await self._principals.emails(file.user_id for file in found)
        holding = await self._collections.holding([file.id for file in found])
        return [
            _file(file, emails[file.user_id], [each.name for each in holding.get(file.id, ())])
            for file in found
        ]

    async def file(self, file: File) -> WireFile:
        """Return one file."""
        return (await self.files([file]))[0]

    async def members(self, held: Sequence[tuple[CollectionLink, File]]) -> list[wire.CollectionFile]:
        """Return files with their paths in a collection."""
        shown = await self.files([file for _, file in held])
        return [
            wire.CollectionFile(file=file, origin=link.origin, path=link.path)
            for (link, _), file in zip(held, shown, strict=True)
        ]

    async def collections(self, found: Sequence[Collection]) -> list[wire.Collection]:
        """Return collections with their numbers of files, counted where they are not known."""
        emails = await self._principals.emails(each.user_id for each in found)
        names = await self._principals.names(grant for each in found for grant in each.grants)
        shown = []
        for each in found:
            allowed = [
                (grant.permission, names[grant.principal_type, grant.principal_id]) for grant in each.grants
            ]
            count = each.file_count
            shown.append(
                wire.Collection(
                    id=each.id,
                    name=each.name,
                    description=each.description,
                    user_id=each.user_id,
                    user=emails[each.user_id],
                    files=await self._collections.count_files(each) if count is None else count,
                    readers=_named(allowed, READ),
                    writers=_named(allowed, WRITE),
                    updated_at=timestamp(each.updated_at),
                    created_at=timestamp(each.created_at),
                )
            )
        return shown

    async def collection(self, collection: Collection) -> wire.Collection:
        """Return one collection."""
        return (await self.collections([collection]))[0]


def _file(file: File, email: str, collections: list[str]) -> WireFile:
    return WireFile(
        id=file.id,
        name=file.name,
        user_id=file.user_id,
        user=email,
        status=file.status.value,
        error=file.error,
        size=file.size,
        content_type=file.content_type,
        checksum=file.checksum,
        passages=file.chunks,
        characters=file.characters,
        pages=file.pages,
        blank_pages=file.blank_pages,
        warning=file_warning(file),
        collections=collections,
        updated_at=timestamp(file.updated_at),
        created_at=timestamp(file.created_at),
    )


def _named(allowed: Iterable[tuple[str, str]], permission: str) -> list[str]:
    return [name for each, name in allowed if each == permission]
