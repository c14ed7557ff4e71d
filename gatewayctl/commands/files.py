"""`gatewayctl file`: uploaded documents and their extracted text."""

import os
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Final

import typer

from gatewayctl.client import ControlClient, everything
from gatewayctl.command import DryRun, Noun, Session, Yes, describe
from gatewayctl.completion import completing, files
from gatewayctl.failures import FAILURE, CommandError
from gatewayctl.ingest.folder import READ, IrregularError, reason, regular
from gatewayctl.ingest.readers import ReadError, Stream, place_of
from gatewayctl.ingest.stop import Stop, StoppedError
from gatewayctl.ingest.wait import settled
from gatewayctl.prompts import confirm, usage
from gatewayctl.render import Bars, Output, View
from gatewayctl.sanitize import clean
from gatewayctl.wire import routes
from gatewayctl.wire.files import File, FileWritten, Gift, NewFile, Queue

noun = Noun("Documents: what was uploaded, and whether it can be searched.")

MAX_PAGE_FILES: Final = 1000

ROWS: View[File] = View(
    name=lambda file: file.id,
    columns={
        "NAME": lambda file: file.name,
        "STATUS": lambda file: file.status,
        "SIZE": lambda file: file.size,
        "PASSAGES": lambda file: file.passages,
        "USER": lambda file: file.user or file.user_id,
        "REMARK": lambda file: file.error or file.warning,
        "ID": lambda file: file.id,
    },
)
DETAIL: View[File] = View(
    name=ROWS.name,
    columns={
        **ROWS.columns,
        "CHARACTERS": lambda file: file.characters,
        "PAGES": lambda file: file.pages,
        "TYPE": lambda file: file.content_type,
        "CHECKSUM": lambda file: file.checksum,
        "COLLECTIONS": lambda file: file.collections,
        "CREATED": lambda file: file.created_at,
        "UPDATED": lambda file: file.updated_at,
    },
)
QUEUE: View[Queue] = View(
    name=lambda queue: str(queue.waiting + queue.working),
    columns={
        "WAITING": lambda queue: queue.waiting,
        "WORKING": lambda queue: queue.working,
        "FAILED": lambda queue: queue.failed,
    },
)
WRITTEN: View[FileWritten] = View(name=lambda file: file.id, columns={})

# After a failure of one of these kinds the other files are still uploaded.
OF_THE_FILE: Final = frozenset({"invalid_request", "too_large", "empty_content", "usage"})

FileId = Annotated[
    str, typer.Argument(metavar="FILE", help="Id of the file.", autocompletion=completing(files))
]
FileIds = Annotated[
    list[str], typer.Argument(metavar="FILE", help="Ids of the files.", autocompletion=completing(files))
]
Owner = Annotated[
    str | None,
    typer.Option("--user", metavar="USER", help="Owner of the files; the first administrator if not given."),
]
NewOwner = Annotated[str, typer.Option("--to", metavar="USER", help="Id or e-mail address of the new owner.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until the files are processed.")]


@noun.verb(
    "add",
    "gatewayctl file add handbook.pdf --collection handbook --wait",
    "gatewayctl file add *.md --user ada@example.org",
)
def add(
    session: Session,
    paths: Annotated[list[Path], typer.Argument(metavar="PATH", help="Paths of the files to upload.")],
    collection: Annotated[
        str | None,
        typer.Option(
            "--collection", "-c", metavar="COLLECTION", help="Add the files to this collection (name or id)."
        ),
    ] = None,
    user: Owner = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name", help="Name of the uploaded file, for one path; the name at the path if not given."
        ),
    ] = None,
    wait: Wait = False,
) -> None:
    """Upload files, each as a new one; a whole directory goes with `gatewayctl ingest`.

    A file that fails does not keep the others from being uploaded. Exits with 1 when one failed, here or,
    with --wait, while it was processed.
    """
    if name is not None and len(paths) > 1:
        raise usage("cannot give one name to several files", param="--name")
    batch = UploadBatch(session, is_alone=len(paths) == 1)
    for path in paths:
        request = NewFile(name=path.name if name is None else name, collection=collection, user=user)
        batch.add(path, request)
    batch.finish(wait=wait)


@noun.verb(
    "list",
    "gatewayctl file list --query '*.pdf'",
    "gatewayctl file list --status failed -o name",
    "gatewayctl file list --orphaned",
)
def list_files(
    session: Session,
    query: Annotated[
        str,
        typer.Option(
            "--query", "-q", metavar="GLOB", help="List only files whose name matches; * and ? are wildcards."
        ),
    ] = "",
    status: Annotated[
        str | None,
        typer.Option(
            "--status", help="List only files in this status: stored, pending, completed or failed."
        ),
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", metavar="USER", help="List only files of this user.")
    ] = None,
    orphaned: Annotated[
        bool,
        typer.Option("--orphaned", help="List only files of removed users; the column USER shows their ids."),
    ] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Maximum number of files to list.")
    ] = None,
) -> None:
    """List files, newest first."""
    if orphaned and user is not None:
        raise usage("cannot list the orphaned files of a user: these have none", param="--orphaned")
    found = session.client.call(
        routes.LIST_FILES, query=query or None, user=user, status=status, limit=limit, orphaned=orphaned
    )
    session.show_all(found.files, ROWS)
    if len(found.files) < found.total:
        session.note(f"{len(found.files)} of {found.total}")


@noun.verb("queue", "gatewayctl file queue", "gatewayctl file queue -o json")
def show_queue(session: Session) -> None:
    """Show how many files are waiting, being processed, and failed.

    With -o name the number of those that are not finished.
    """
    session.show(session.client.call(routes.GET_QUEUE), QUEUE)


@noun.verb("show", "gatewayctl file show 4c0f9b6e-8a0e-4c53-9d0e-0d7a3c1f5b7a")
def show(session: Session, file: FileId) -> None:
    """Show one file."""
    session.show(session.client.call(routes.GET_FILE, file), DETAIL)


@noun.verb("text", "gatewayctl file text 4c0f9b6e-8a0e-4c53-9d0e-0d7a3c1f5b7a | less")
def text(session: Session, file: FileId) -> None:
    """Print the extracted text of a file."""
    found = session.client.call(routes.GET_FILE_TEXT, file)
    if session.output in {Output.JSON, Output.JSONL}:
        session.renderer.json(found.model_dump(mode="json"))
        return
    session.renderer.text(found.text)


@noun.verb(
    "give",
    "gatewayctl file give 4c0f9b6e-8a0e-4c53-9d0e-0d7a3c1f5b7a --to ada@example.org",
    "gatewayctl file give $(gatewayctl file list --orphaned -o name) --to ada@example.org",
)
def give(session: Session, files: FileIds, to: NewOwner, dry_run: DryRun = False) -> None:
    """Make another user the owner of files, such as those that a removed user left."""
    request = Gift(user=to)
    show_written(
        session,
        [session.client.call(routes.GIVE_FILE, each, body=request, dry_run=dry_run) for each in files],
    )


@noun.verb("delete", "gatewayctl file delete 4c0f9b6e-8a0e-4c53-9d0e-0d7a3c1f5b7a --yes")
def delete(session: Session, files: FileIds, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Delete files, with their passages and their places in collections."""
    what = files[0] if len(files) == 1 else f"{len(files)} files"
    confirm(f"Delete {what}?", yes=yes or dry_run)
    rows = [session.client.call(routes.REMOVE_FILE, each, dry_run=dry_run) for each in files]
    show_written(session, rows)


@noun.verb(
    "retry",
    "gatewayctl file retry --failed --wait",
    "gatewayctl file retry 4c0f9b6e-8a0e-4c53-9d0e-0d7a3c1f5b7a",
)
def retry(
    session: Session,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE", help="Ids of the files; or use --failed.", autocompletion=completing(files)
        ),
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Retry all files that failed.")] = False,
    wait: Wait = False,
    dry_run: DryRun = False,
) -> None:
    """Process files again; their earlier text is searched until that is done.

    Exits with 1 when, with --wait, one of them failed.
    """
    if bool(files) is failed:
        raise usage("cannot process files again without a selection: add ids or --failed", param="FILE")
    ids = files or [file.id for file in _failed(session)]
    rows = [session.client.call(routes.RETRY_FILE, each, dry_run=dry_run) for each in ids]
    if not wait or dry_run:
        show_written(session, rows)
        return
    found = wait_for(session, ids)
    session.show_all(found, ROWS)
    leave(len(found) < len(ids) or any(map(has_failed, found)))


def _failed(session: Session) -> list[File]:
    """Return all files that failed."""
    client = session.client
    return everything(
        lambda at: client.call(routes.LIST_FILES, status="failed", offset=at or None), lambda page: page.files
    )


class UploadBatch:
    """Uploads files one after the other, and reports failed ones."""

    def __init__(self, session: Session, *, is_alone: bool) -> None:
        self._session = session
        self._is_alone = is_alone
        self._rows: list[FileWritten] = []
        self._has_failed = False

    def add(self, path: Path, request: NewFile) -> None:
        """Upload a file; report a failure, and raise it if it concerns all files or the only one."""
        try:
            place_of((request.name,))
            with closing(open_stream(path)) as stream:
                self._rows.append(self._session.client.upload(request, stream, stream.size))
        except (ReadError, CommandError) as error:
            failure = (
                error if isinstance(error, CommandError) else CommandError("invalid_request", str(error))
            )
            if self._is_alone or failure.kind not in OF_THE_FILE:
                raise failure from error
            complain(self._session, str(path), failure)
            self._has_failed = True

    def finish(self, *, wait: bool) -> None:
        """Show the files, with `wait` after they are processed; exit with 1 if one failed."""
        if wait:
            files = wait_for(self._session, [row.id for row in self._rows])
            self._session.show_all(files, ROWS)
            self._has_failed |= len(files) < len(self._rows) or any(map(has_failed, files))
        else:
            show_written(self._session, self._rows)
        leave(self._has_failed)


def open_stream(path: Path) -> Stream:
    """Open a file to upload; raises usage if it is no regular file or cannot be read."""
    try:
        file = regular(os.open(path, READ))
    except IrregularError as error:
        advice = ": gatewayctl ingest takes directories" if path.is_dir() else ""
        raise usage(f"cannot upload {path}: it is no regular file{advice}", param="PATH") from error
    except OSError as error:
        raise usage(f"cannot upload {path}: {reason(error)}", param="PATH") from error
    return Stream(file, os.fstat(file.fileno()).st_size, Stop())


def wait_for(session: Session, file_ids: Sequence[str]) -> list[File]:
    """Return files when they are processed, without those deleted in the meantime."""
    stop = Stop()
    found: list[File] = []
    with Bars(sys.stderr, is_wanted=session.output is Output.TABLE) as bars, stop.on_signals():
        bars.begin("processing", len(file_ids))
        try:
            for _, file in settled(session.client, file_ids, stop):
                bars.advance(1)
                found += [file] if file is not None else []
        except StoppedError as error:
            raise CommandError("stopped", "stopped waiting: the files are processed all the same") from error
    return found


def has_failed(file: File) -> bool:
    """Return whether a file has failed for good, so that it cannot be searched."""
    return file.status == "failed"


def show_written(session: Session, rows: Sequence[FileWritten]) -> None:
    """Show the results of writes: a sentence each for people, one list for programs."""
    if session.output is not Output.TABLE:
        session.show_all(rows, WRITTEN)
        return
    for row in rows:
        session.renderer.say(f"{describe(row.outcome, dry_run=row.dry_run)} file {row.name} {row.id}")


def complain(session: Session, what: str, failure: CommandError) -> None:
    """Print a failure that does not end the command."""
    is_json = session.output in {Output.JSON, Output.JSONL}
    sentence = failure.as_json() if is_json else f"gatewayctl: {clean(what)}: {clean(failure.message)}"
    sys.stderr.write(f"{sentence}\n")


def leave(is_failure: bool) -> None:
    """Exit with 1 if something failed, after the output is written."""
    if is_failure:
        sys.stdout.flush()
        raise typer.Exit(FAILURE)


def ownerless(client: ControlClient, collection: str) -> list[str]:
    """Return the ids of the files in a collection that belong to removed accounts."""
    members = everything(
        lambda at: client.call(
            routes.LIST_COLLECTION_FILES, collection, offset=at or None, limit=MAX_PAGE_FILES
        ),
        lambda page: page.files,
    )
    return [member.file.id for member in members if not member.file.user]


def settle(session: Session, found: Sequence[str], to: str, *, gives: bool, dry_run: bool) -> None:
    """Give files to a user, or report the number of files without an owner."""
    if not found:
        return
    if not gives:
        session.note(f"{len(found)} files in it still have no owner: --with-files gives them, too")
        return
    for file_id in found:
        session.client.call(routes.GIVE_FILE, file_id, body=Gift(user=to), dry_run=dry_run)
    session.note(f"{'dry run: ' if dry_run else ''}gave {len(found)} files that had no owner")
