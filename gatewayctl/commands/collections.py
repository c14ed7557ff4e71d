"""`gatewayctl collection`: sets of files that are searched together."""

import sys
from typing import Annotated, Final

import typer

from gatewayctl.client import everything
from gatewayctl.command import DryRun, Noun, Session, Yes
from gatewayctl.commands.files import FileIds, NewOwner, leave, ownerless, settle, wait_for
from gatewayctl.failures import CommandError
from gatewayctl.ingest.stop import Stop, StoppedError
from gatewayctl.prompts import confirm, usage
from gatewayctl.render import Bars, Output, View
from gatewayctl.sanitize import begun, clean
from gatewayctl.wire import routes
from gatewayctl.wire.collections import (
    CheckReport,
    Collection,
    CollectionChange,
    CollectionFile,
    CollectionMembers,
    CollectionWritten,
    MemberResult,
    MembersWritten,
    NewCollection,
    Passage,
    Query,
    Reindex,
    SearchAnswer,
)
from gatewayctl.wire.files import Gift

noun = Noun("Collections: files that are searched together, and who may search them.")

PAGE: Final = 1000
POLL_SECONDS: Final = 1.0
TEASER: Final = 200
MAX_CELL_CHARS: Final = 60
"""Maximum number of characters of a description in a list."""

ROWS: View[Collection] = View(
    name=lambda row: row.name,
    columns={
        "NAME": lambda row: row.name,
        "FILES": lambda row: row.files,
        "USER": lambda row: row.user or row.user_id,
        "READERS": lambda row: row.readers,
        "WRITERS": lambda row: row.writers,
        "DESCRIPTION": lambda row: begun(row.description, MAX_CELL_CHARS),
        "ID": lambda row: row.id,
    },
)
DETAIL: View[Collection] = View(
    name=ROWS.name,
    columns={
        **ROWS.columns,
        "DESCRIPTION": lambda row: row.description,
        "CREATED": lambda row: row.created_at,
        "UPDATED": lambda row: row.updated_at,
    },
)
WRITTEN: View[CollectionWritten] = View(name=lambda row: row.name, columns={})
FILES: View[CollectionFile] = View(
    name=lambda row: row.file.id,
    columns={
        "NAME": lambda row: row.file.name,
        "STATUS": lambda row: row.file.status,
        "PATH": lambda row: row.path,
        "ORIGIN": lambda row: row.origin,
        "REMARK": lambda row: row.file.error or row.file.warning,
        "ID": lambda row: row.file.id,
    },
)
RESULTS: View[MemberResult] = View(
    name=lambda row: row.id,
    columns={
        "FILE": lambda row: row.id,
        "OUTCOME": lambda row: row.outcome,
        "ERROR": lambda row: row.error,
    },
)
REPORTS: View[CheckReport] = View(
    name=lambda row: row.name,
    columns={
        "NAME": lambda row: row.name,
        "FILES": lambda row: row.files,
        "PASSAGES": lambda row: row.passages,
        "VECTORS": lambda row: row.vectors,
        "PROBLEMS": lambda row: row.problems,
    },
)
REINDEX: View[Reindex] = View(
    name=lambda row: row.state,
    columns={
        "STATE": lambda row: row.state,
        "DONE": lambda row: f"{row.done} of {row.total}",
        "ACTIVE": lambda row: row.active,
        "TARGET": lambda row: row.target,
        "ERROR": lambda row: row.error,
    },
)


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.3f}"


def _ranked(value: float | None, rank: int | None) -> str | None:
    return None if rank is None else f"#{rank} {_number(value) or ''}".rstrip()


def _teaser(row: Passage) -> str:
    return begun(row.text, TEASER)


FOUND: View[Passage] = View(
    name=lambda row: row.file_id,
    columns={
        "SCORE": lambda row: _number(row.score),
        "FILE": lambda row: row.file,
        "PAGE": lambda row: row.page,
        "TEXT": _teaser,
    },
)
EXPLAINED: View[Passage] = View(
    name=FOUND.name,
    columns={
        **{heading: read for heading, read in FOUND.columns.items() if heading != "TEXT"},
        "DENSE": lambda row: _ranked(row.dense, row.dense_rank),
        "LEXICAL": lambda row: _ranked(row.lexical, row.lexical_rank),
        "SIMILARITY": lambda row: _number(row.similarity),
        "TEXT": _teaser,
    },
)

Ref = Annotated[
    str,
    typer.Argument(
        metavar="COLLECTION",
        help="Name or id of the collection.",
    ),
]
Description = Annotated[str | None, typer.Option("--description", help="Description of the collection.")]
Readers = Annotated[
    list[str] | None,
    typer.Option(
        "--reader",
        metavar="WHO",
        help="Holder of the right to search: a user, group:NAME, or * for everybody.",
    ),
]
Writers = Annotated[
    list[str] | None,
    typer.Option(
        "--writer",
        metavar="WHO",
        help="Holder of the right to change: a user, group:NAME, or * for everybody.",
    ),
]


@noun.verb(
    "list",
    "gatewayctl collection list",
    "gatewayctl collection list --query hand -o name",
    "gatewayctl collection list --orphaned",
)
def list_collections(
    session: Session,
    query: Annotated[
        str,
        typer.Option(
            "--query",
            "-q",
            metavar="TEXT",
            help="List only collections with this text in name or description.",
        ),
    ] = "",
    orphaned: Annotated[
        bool,
        typer.Option(
            "--orphaned", help="List only collections of removed users; the column USER shows their ids."
        ),
    ] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Maximum number of collections to list.")
    ] = None,
) -> None:
    """List collections, last changed first."""
    found = session.client.call(routes.LIST_COLLECTIONS, query=query or None, limit=limit, orphaned=orphaned)
    session.show_all(found.collections, ROWS)
    if len(found.collections) < found.total:
        session.note(f"{len(found.collections)} of {found.total}")


@noun.verb("show", "gatewayctl collection show handbook")
def show(session: Session, collection: Ref) -> None:
    """Show one collection."""
    session.show(session.client.call(routes.GET_COLLECTION, collection), DETAIL)


@noun.verb("files", "gatewayctl collection files handbook", "gatewayctl collection files handbook -o name")
def files(session: Session, collection: Ref) -> None:
    """List the files of a collection, and where those that were ingested come from."""
    client = session.client
    found = everything(
        lambda at: client.call(routes.LIST_COLLECTION_FILES, collection, offset=at or None, limit=PAGE),
        lambda page: page.files,
    )
    session.show_all(found, FILES)


@noun.verb("create", "gatewayctl collection create handbook --reader '*' --writer group:editors")
def create(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the collection.")],
    description: Description = None,
    user: Annotated[
        str | None,
        typer.Option(
            "--user", metavar="USER", help="Owner of the collection; the first administrator if not given."
        ),
    ] = None,
    reader: Readers = None,
    writer: Writers = None,
    dry_run: DryRun = False,
) -> None:
    """Create a collection; by default only its owner and administrators see it."""
    given = _given(description=description, user=user, readers=reader, writers=writer)
    request = NewCollection.model_validate({"name": name, **given})
    session.written(
        session.client.call(routes.CREATE_COLLECTION, body=request, dry_run=dry_run), WRITTEN, "collection"
    )


@noun.verb("change", "gatewayctl collection change handbook --reader group:staff")
def change(
    session: Session,
    collection: Ref,
    name: Annotated[str | None, typer.Option("--name", help="New name of the collection.")] = None,
    description: Description = None,
    reader: Readers = None,
    writer: Writers = None,
    private: Annotated[
        bool, typer.Option("--private", help="Remove all readers and writers of the collection.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Change a collection; given readers and writers replace all others."""
    if private and (reader or writer):
        raise usage("cannot use --private together with readers", param="--private")
    readers, writers = ([], []) if private else (reader, writer)
    given = _given(name=name, description=description, readers=readers, writers=writers)
    if not given:
        raise usage("cannot change the collection: nothing to change was given")
    request = CollectionChange.model_validate(given)
    row = session.client.call(routes.CHANGE_COLLECTION, collection, body=request, dry_run=dry_run)
    session.written(row, WRITTEN, "collection")


@noun.verb("add", "gatewayctl collection add handbook 4c0f9b6e-8a0e-4c53-9d0e-0d7a3c1f5b7a")
def add(
    session: Session,
    collection: Ref,
    files: FileIds,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until pending files are processed.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Add files to a collection; a file that is in it already is no error.

    Exits with 1 when one could not be added.
    """
    if wait and not dry_run:
        wait_for(session, files)
    answer = session.client.call(
        routes.ADD_TO_COLLECTION, collection, body=CollectionMembers(files=files), dry_run=dry_run
    )
    _show_results(session, answer)


@noun.verb(
    "remove",
    "gatewayctl collection remove handbook 4c0f9b6e-8a0e-4c53-9d0e-0d7a3c1f5b7a",
    "gatewayctl collection remove handbook 4c0f9b6e-8a0e-4c53-9d0e-0d7a3c1f5b7a --delete --yes",
)
def remove(
    session: Session,
    collection: Ref,
    files: FileIds,
    delete: Annotated[
        bool, typer.Option("--delete", help="Also delete files that no other collection holds.")
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Remove files from a collection; without --delete the files stay.

    Exits with 1 when one could not be removed.
    """
    if delete:
        confirm(f"Delete {len(files)} files of the collection {collection}?", yes=yes or dry_run)
    request = CollectionMembers(files=files)
    if delete:
        request.delete = True
    _show_results(
        session, session.client.call(routes.REMOVE_FROM_COLLECTION, collection, body=request, dry_run=dry_run)
    )


@noun.verb(
    "query",
    "gatewayctl collection query handbook 'How many days of leave?'",
    "gatewayctl collection query handbook leave -k 20 --explain",
)
def query(
    session: Session,
    collection: Ref,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="Text to search for.")],
    k: Annotated[int | None, typer.Option("--count", "-k", min=1, help="Number of passages to show.")] = None,
    threshold: Annotated[
        float | None,
        typer.Option("--threshold", min=0.0, max=1.0, help="Minimum similarity of a passage, 0 to 1."),
    ] = None,
    hybrid: Annotated[
        bool | None,
        typer.Option("--hybrid/--dense", help="Search by words and by vectors, or by vectors alone."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also show the rank of each passage in each search.")
    ] = False,
) -> None:
    """Search a collection as a chat with this collection does.

    The search by meaning (dense) and the search by words (lexical) rank passages separately; the score is the
    order of both together. Options that are left out have the values of the settings.
    """
    given = _given(k=k, threshold=threshold, hybrid=hybrid)
    request = Query.model_validate({"query": question, **given})
    answer = session.client.call(routes.QUERY_COLLECTION, collection, body=request)
    _show_answer(session, answer, EXPLAINED if explain else FOUND)


@noun.verb(
    "give",
    "gatewayctl collection give handbook --to ada@example.org",
    "gatewayctl collection give handbook --to ada@example.org --with-files",
)
def give(
    session: Session,
    collections: Annotated[
        list[str], typer.Argument(metavar="COLLECTION", help="Names or ids of the collections.")
    ],
    to: NewOwner,
    with_files: Annotated[
        bool, typer.Option("--with-files", help="Also give the files of removed users in these collections.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Make another user the owner of collections.

    The files in them keep their owners. The command prints how many files belong to removed accounts; with
    --with-files these files get the new owner, too.
    """
    for ref in collections:
        row = session.client.call(routes.GIVE_COLLECTION, ref, body=Gift(user=to), dry_run=dry_run)
        session.written(row, WRITTEN, "collection")
        settle(session, ownerless(session.client, row.id), to, gives=with_files, dry_run=dry_run)


@noun.verb("delete", "gatewayctl collection delete handbook --yes")
def delete(session: Session, collection: Ref, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Delete a collection; its files stay."""
    confirm(f"Delete the collection {collection}?", yes=yes or dry_run)
    row = session.client.call(routes.REMOVE_COLLECTION, collection, dry_run=dry_run)
    session.written(row, WRITTEN, "collection")


@noun.verb(
    "reindex", "gatewayctl collection reindex --wait", "gatewayctl collection reindex --status -o name"
)
def reindex(
    session: Session,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the reindex has ended.")] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Show progress without starting a reindex.")
    ] = False,
) -> None:
    """Make the vectors of all files with the configured embedding model, then search by them.

    Searches go on with the old ones until the new ones are complete. What was done is kept when the daemon is
    stopped; given again, it goes on from there. With --wait, one that runs already is no error. Exits with 1
    when it failed.
    """
    row = session.client.call(routes.GET_REINDEX) if status else _start(session, joins=wait)
    if wait:
        row = _wait_for_reindex(session, row)
    session.show(row, REINDEX)
    leave(row.state == "failed")


@noun.verb("check", "gatewayctl collection check", "gatewayctl collection check handbook -o json")
def check(
    session: Session,
    collections: Annotated[
        list[str] | None,
        typer.Argument(metavar="COLLECTION", help="Names or ids of the collections; all if not given."),
    ] = None,
) -> None:
    """Compare the indexes of collections with the stored passages, and repair differences.

    Exits with 1 if the indexes differed, even if the differences were repaired.
    """
    client = session.client
    refs = collections or [
        row.id
        for row in everything(
            lambda at: client.call(routes.LIST_COLLECTIONS, offset=at or None), lambda page: page.collections
        )
    ]
    rows = [session.client.call(routes.CHECK_COLLECTION, ref) for ref in refs]
    session.show_all(rows, REPORTS)
    leave(any(row.problems for row in rows))


def _start(session: Session, *, joins: bool) -> Reindex:
    """Start a reindex; a running one is a conflict unless the command waits for it."""
    try:
        return session.client.call(routes.START_REINDEX)
    except CommandError as error:
        if error.kind != "conflict" or not joins:
            raise
        return session.client.call(routes.GET_REINDEX)


def _given(**values: object) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}


def _show_results(session: Session, answer: MembersWritten) -> None:
    if session.output is Output.TABLE and answer.dry_run:
        session.note("dry run: nothing was changed")
    session.show_all(answer.results, RESULTS)
    leave(any(row.outcome == "failed" for row in answer.results))


def _show_answer(session: Session, answer: SearchAnswer, view: View[Passage]) -> None:
    if session.output is Output.JSON:
        session.renderer.json(answer.model_dump(mode="json"))
        return
    session.show_all(answer.passages, view)
    for warning in answer.warnings:
        sys.stderr.write(f"gatewayctl: {clean(warning)}\n")


def _wait_for_reindex(session: Session, row: Reindex) -> Reindex:
    stop = Stop()
    with Bars(sys.stderr, is_wanted=session.output is Output.TABLE) as bars, stop.on_signals():
        bars.begin("embedding", row.total)
        done = 0
        try:
            while row.state == "running":
                bars.advance(row.done - done)
                done = row.done
                stop.sleep(POLL_SECONDS)
                row = session.client.call(routes.GET_REINDEX)
        except StoppedError as error:
            raise CommandError("stopped", "stopped waiting: the daemon goes on") from error
    return row
