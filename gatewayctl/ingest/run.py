"""One run: compares a directory with a collection, uploads new files, waits, and removes deleted ones."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath
from typing import Final

from gatewayctl.client import ControlClient
from gatewayctl.failures import CommandError
from gatewayctl.ingest.readers import Reader, ReadError, composed
from gatewayctl.ingest.records import Progress, Report, Version, What
from gatewayctl.ingest.scan import Scan
from gatewayctl.ingest.stop import Stop
from gatewayctl.ingest.threads import in_threads
from gatewayctl.ingest.wait import settled
from gatewayctl.wire import routes
from gatewayctl.wire.collections import (
    CollectionFile,
    CollectionMembers,
    Difference,
    Entry,
    NewCollection,
    Sync,
)
from gatewayctl.wire.files import File, NewFile

# A file that the daemon refuses with one of these kinds counts as failed; other kinds end the run.
OF_THE_FILE: Final = frozenset({"invalid_request", "empty_content", "too_large", "conflict", "internal"})
REMOVED_AT_ONCE: Final = 500
FAILED_BEFORE: Final = "failed before, and the file is the same; --retry tries again"
UNREAD: Final = "nothing was removed, because not all of the directory could be read; --force removes"
EMPTY: Final = "nothing was removed, because the directory holds no files; --force removes"


@dataclass(frozen=True, slots=True)
class Plan:
    """Options of a run; `collection` is an id or a name, `user` owns new files and collections."""

    collection: str
    origin: str
    user: str | None = None
    delete: bool = False
    force: bool = False
    wait: bool = True
    retry: bool = False
    dry_run: bool = False
    jobs: int = 2


@dataclass(slots=True)
class Hopes:
    """Files that are being processed: their paths, and their outcomes once they are completed."""

    places: dict[str, tuple[str, What]] = field(default_factory=dict)

    def add(self, file_id: str, place: str, what: What) -> None:
        """Expect a file."""
        self.places[file_id] = (place, what)


class Run:
    """Synchronises a collection with the scan of a directory.

    Everything that the daemon has acknowledged stays when the run is interrupted, and the next one continues
    there. Raises CommandError and StoppedError; `report` has the work done until then.
    """

    def __init__(
        self, client: ControlClient, reader: Reader, plan: Plan, stop: Stop, progress: Progress
    ) -> None:
        self._client = client
        self._reader = reader
        self._plan = plan
        self._stop = stop
        self._progress = progress
        self._hopes = Hopes()

    def bring(self, scan: Scan, report: Report) -> None:
        """Run all stages, and add the outcome of each file to the report."""
        report.skipped = scan.skipped
        for problem in scan.problems:
            report.add(problem.path, What.FAILED, error=problem.error)
        collection = self._collection()
        difference = self._compare(collection, scan)
        for place in difference.unmodified:
            report.add(place, What.UNCHANGED)
        new = dict.fromkeys(difference.added, What.ADDED)
        new |= dict.fromkeys(difference.modified, What.CHANGED)
        if self._plan.dry_run or collection is None:
            self._foretell(difference, new, report)
        else:
            self._go_on(difference, report)
            self._upload(collection, scan, new, report)
            self._settle(report)
        if self._plan.delete:
            self._remove(collection, _gone(difference, scan), scan, report)

    def _collection(self) -> str | None:
        """Return the id of the collection, which is created if absent; None for a dry run without one."""
        plan = self._plan
        try:
            return self._client.call(routes.GET_COLLECTION, plan.collection).id
        except CommandError as error:
            if error.kind != "not_found":
                raise
        request = NewCollection(name=plan.collection)
        if plan.user is not None:
            request.user = plan.user
        made = self._client.call(routes.ENSURE_COLLECTION, body=request, dry_run=plan.dry_run)
        return None if plan.dry_run else made.id

    def _compare(self, collection: str | None, scan: Scan) -> Difference:
        if collection is None:
            return Difference(added=list(scan.versions))
        entries = [Entry(path=place, checksum=version.checksum) for place, version in scan.versions.items()]
        return self._client.call(
            routes.COMPARE_COLLECTION, collection, body=Sync(origin=self._plan.origin, entries=entries)
        )

    def _foretell(self, difference: Difference, new: dict[str, What], report: Report) -> None:
        for place, what in new.items():
            report.add(place, what)
        for held in difference.pending:
            report.add(held.path, What.PENDING, held.file.id)
        for held in difference.failed:
            if self._plan.retry:
                report.add(held.path, What.PENDING, held.file.id)
            else:
                _tell_failed_before(held, report)

    def _go_on(self, difference: Difference, report: Report) -> None:
        """Continue with the files of earlier runs that are pending or failed."""
        for held in difference.pending:
            self._hopes.add(held.file.id, held.path, What.ADDED)
        for held in difference.failed:
            if not self._plan.retry:
                _tell_failed_before(held, report)
                continue
            self._stop.check()
            try:
                self._client.call(routes.RETRY_FILE, held.file.id)
            except CommandError as error:
                if error.kind not in {*OF_THE_FILE, "not_found"}:
                    raise
                report.add(held.path, What.FAILED, held.file.id, error.message)
            else:
                self._hopes.add(held.file.id, held.path, What.ADDED)

    def _upload(self, collection: str, scan: Scan, new: dict[str, What], report: Report) -> None:
        versions = [version for place, version in scan.versions.items() if place in new]
        self._progress.begin("uploading", sum(version.stamp.size for version in versions))

        for version, sent in in_threads(partial(self._send, collection), versions, self._plan.jobs):
            if isinstance(sent, str):
                report.add(version.place, What.FAILED, error=sent)
                continue
            report.uploaded += 1
            self._hopes.add(sent.id, version.place, new[version.place])

    def _send(self, collection: str, version: Version) -> tuple[Version, File | str]:
        """Upload one file; return the reply of the daemon, or why it failed."""
        plan = self._plan
        request = NewFile(
            name=PurePosixPath(version.place).name,
            user=plan.user,
            collection=collection,
            origin=plan.origin,
            path=version.place,
            checksum=version.checksum,
        )
        try:
            with closing(self._reader.stream(version, self._progress.advance)) as stream:
                return version, self._client.upload(request, stream, stream.size)
        except ReadError as error:
            return version, str(error)
        except CommandError as error:
            if error.kind not in OF_THE_FILE:
                raise
            return version, error.message

    def _settle(self, report: Report) -> None:
        """Wait for the pending files, or leave them to the daemon."""
        places = self._hopes.places
        if not self._plan.wait:
            for file_id, (place, _) in places.items():
                report.add(place, What.PENDING, file_id)
            return
        self._progress.begin("processing", len(places))
        for file_id, file in settled(self._client, list(places), self._stop):
            place, what = places[file_id]
            self._progress.advance(1)
            if file is None:
                report.add(place, What.FAILED, file_id, "it was deleted before it was processed")
            elif file.status == "completed":
                report.add(place, what, file_id, warning=file.warning)
            elif file.status == "failed":
                report.add(place, What.FAILED, file_id, file.error or "processing it failed")
            else:
                report.add(place, What.PENDING, file_id)

    def _remove(
        self, collection: str | None, gone: Sequence[CollectionFile], scan: Scan, report: Report
    ) -> None:
        """Remove the files that the directory no longer contains, if the scan is complete."""
        if not gone or collection is None:
            return
        if not self._plan.force and not (scan.is_whole and scan.versions):
            report.note(UNREAD if not scan.is_whole else EMPTY)
            return
        paths = {held.file.id: held.path for held in gone}
        if self._plan.dry_run:
            for file_id, path in paths.items():
                report.add(path, What.REMOVED, file_id)
            return
        ids = list(paths)
        for start in range(0, len(ids), REMOVED_AT_ONCE):
            self._stop.check()
            request = CollectionMembers(files=ids[start : start + REMOVED_AT_ONCE], delete=True)
            for result in self._client.call(routes.REMOVE_FROM_COLLECTION, collection, body=request).results:
                is_bad = result.outcome == "failed"
                what = What.FAILED if is_bad else What.REMOVED
                report.add(paths.get(result.id, result.id), what, result.id, result.error)


def _gone(difference: Difference, scan: Scan) -> Sequence[CollectionFile]:
    """Return the files to remove, without those in directories that could not be read."""
    there = {composed(problem.path) for problem in scan.problems}
    return [held for held in difference.deleted if not there & {held.path, *_above(held.path)}]


def _above(path: str) -> Sequence[str]:
    return [str(folder) for folder in PurePosixPath(path).parents]


def _tell_failed_before(held: CollectionFile, report: Report) -> None:
    error = held.file.error or "processing it failed"
    report.add(held.path, What.FAILED, held.file.id, f"{error} ({FAILED_BEFORE})")
