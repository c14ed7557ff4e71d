"""A scripted daemon behind the client that an ingestion uses: files on a shelf, and failures on demand."""

from collections.abc import Callable
from typing import Any

from gatewayctl.client import ControlClient
from gatewayctl.failures import CommandError
from gatewayctl.transport import Readable
from gatewayctl.wire import routes
from gatewayctl.wire.base import Outcome
from gatewayctl.wire.collections import (
    Collection,
    CollectionFile,
    CollectionMembers,
    CollectionWritten,
    Difference,
    MemberResult,
    MembersWritten,
    NewCollection,
    Sync,
)
from gatewayctl.wire.files import File, FileWritten, NewFile, Wait, Waited


class Shelf(ControlClient):
    """Keeps what is uploaded; `fail` raises what a call is to fail with, `process` settles pending files."""

    def __init__(self) -> None:
        self.files: dict[str, CollectionFile] = {}
        self.contents: dict[str, bytes] = {}
        self.calls: list[str] = []
        self.owners: list[str | None] = []
        self.collection: str | None = None
        self.fail: Callable[[str, str], None] = lambda method, detail: None
        self.process: Callable[[File], str] = lambda file: "completed"

    def paths(self) -> dict[str, str]:
        """Return the status of each file by path."""
        return {held.path: held.file.status for held in self.files.values()}

    def hold(self, path: str, checksum: str, status: str = "completed", error: str | None = None) -> str:
        """Put a file on the shelf and return its id."""
        file_id = f"f{len(self.files)}-{path}"
        file = File(id=file_id, name=path, user_id="u", status=status, error=error, size=1, checksum=checksum)
        self.files[file_id] = CollectionFile(file=file, origin="here", path=path)
        return file_id

    def call(self, endpoint: Any, /, *segments: str, **named: Any) -> Any:
        """Answer a request of one of the endpoints that an ingestion uses."""
        answers: dict[Any, Callable[..., Any]] = {
            routes.GET_COLLECTION: self.get_collection,
            routes.ENSURE_COLLECTION: self.ensure_collection,
            routes.COMPARE_COLLECTION: self.compare_collection,
            routes.RETRY_FILE: self.retry_file,
            routes.WAIT_FOR_FILES: self.wait_for_files,
            routes.REMOVE_FROM_COLLECTION: self.remove_from_collection,
        }
        return answers[endpoint](*segments, **named)

    def get_collection(self, ref: str) -> Collection:
        self._call("get_collection", ref)
        if self.collection is None:
            raise CommandError("not_found", f"cannot find collection {ref!r}")
        return Collection(id="c1", name=ref, user_id="u")

    def ensure_collection(self, body: NewCollection, *, dry_run: bool = False) -> CollectionWritten:
        self._call("ensure_collection", body.name)
        self.owners.append(body.user)
        self.collection = None if dry_run else body.name
        return CollectionWritten(id="c1", name=body.name, user_id="u", outcome=Outcome.CREATED)

    def compare_collection(self, ref: str, body: Sync) -> Difference:
        self._call("compare_collection", ref)
        wanted = {entry.path: entry.checksum for entry in body.entries}
        held = {each.path: each for each in self.files.values()}
        same = [held[path] for path in wanted if path in held and held[path].file.checksum == wanted[path]]
        return Difference(
            added=[path for path in wanted if path not in held],
            modified=[path for path in wanted if path in held and held[path] not in same],
            unmodified=[each.path for each in same if each.file.status == "completed"],
            pending=[each for each in same if each.file.status == "pending"],
            failed=[each for each in same if each.file.status == "failed"],
            deleted=[each for path, each in held.items() if path not in wanted],
        )

    def upload(self, request: NewFile, content: Readable, size: int) -> FileWritten:
        path = request.path or request.name
        self._call("upload", path)
        self.owners.append(request.user)
        data = b"".join(iter(lambda: content.read(4), b""))
        assert len(data) == size
        old = [file_id for file_id, each in self.files.items() if each.path == path]
        file_id = self.hold(path, request.checksum or "", "pending")
        for each in old:
            del self.files[each]
        self.contents[path] = data
        return FileWritten(**self.files[file_id].file.model_dump(), outcome=Outcome.CREATED)

    def retry_file(self, file_id: str, *, dry_run: bool = False) -> FileWritten:
        self._call("retry_file", file_id)
        file = self.files[file_id].file
        file.status = "pending"
        return FileWritten(**file.model_dump(), outcome=Outcome.CHANGED)

    def wait_for_files(self, body: Wait) -> Waited:
        self._call("wait_for_files", ",".join(body.ids))
        found = [self.files[each].file for each in body.ids if each in self.files]
        for file in found:
            if file.status == "pending":
                file.status = self.process(file)
                file.error = "it is locked" if file.status == "failed" else None
        return Waited(files=found, is_done=all(file.status != "pending" for file in found))

    def remove_from_collection(
        self, ref: str, body: CollectionMembers, *, dry_run: bool = False
    ) -> MembersWritten:
        self._call("remove_from_collection", ",".join(body.files))
        return MembersWritten(results=[self._removed(each) for each in body.files])

    def _removed(self, file_id: str) -> MemberResult:
        try:
            self._call("remove", file_id)
        except CommandError as error:
            return MemberResult(id=file_id, outcome="failed", error=error.message)
        del self.files[file_id]
        return MemberResult(id=file_id, outcome="deleted")

    def _call(self, method: str, detail: str) -> None:
        self.calls.append(method)
        self.fail(method, detail)


def failing(method: str, detail: str, kind: str) -> Callable[[str, str], None]:
    """Return a script that makes one call fail."""

    def fail(called: str, with_detail: str) -> None:
        if (called, with_detail) == (method, detail):
            raise CommandError(kind, f"cannot {method} {detail}")

    return fail
