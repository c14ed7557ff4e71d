"""`gatewayctl chat`: stored chats of users, their export and import."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from gatewayctl.client import everything
from gatewayctl.command import DryRun, Session, Yes, describe
from gatewayctl.commands.chat import noun
from gatewayctl.events.portable import BATCH_BYTES, as_array, as_lines, batches, read_chats, write_file
from gatewayctl.events.transcripts import transcript
from gatewayctl.prompts import confirm, usage
from gatewayctl.render import Output, View
from gatewayctl.wire import routes
from gatewayctl.wire.stored_chats import (
    ChatExport,
    ChatImport,
    ChatsImported,
    StoredChat,
    StoredChatDetail,
    StoredChatWritten,
)

__all__ = ["noun"]

ROWS: View[StoredChat] = View(
    name=lambda chat: chat.id,
    columns={
        "TITLE": lambda chat: chat.title,
        "USER": lambda chat: chat.user or chat.user_id,
        "PINNED": lambda chat: chat.pinned,
        "ARCHIVED": lambda chat: chat.archived,
        "TAGS": lambda chat: chat.tags,
        "UPDATED": lambda chat: chat.updated_at,
        "ID": lambda chat: chat.id,
    },
)
DETAIL: View[StoredChatDetail] = View(name=lambda chat: chat.id, columns={})
WRITTEN: View[StoredChatWritten] = View(name=lambda chat: chat.id, columns={})
IMPORTED: View[ChatsImported] = View(name=lambda made: str(len(made.chats)), columns={})

ChatId = Annotated[str, typer.Argument(metavar="CHAT", help="Id of the chat, as chat list shows it.")]


@noun.verb(
    "list",
    "gatewayctl chat list --user ada@example.org",
    "gatewayctl chat list --search 'tag:work pump' --limit 20",
)
def list_chats(
    session: Session,
    user: Annotated[
        str | None, typer.Option("--user", metavar="USER", help="List only the chats of this user.")
    ] = None,
    archived: Annotated[
        bool, typer.Option("--archived", help="List archived chats instead of the others.")
    ] = False,
    search: Annotated[
        str,
        typer.Option(
            "--search", metavar="TEXT", help="List only chats with this text in the title or a message."
        ),
    ] = "",
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Maximum number of chats to list.")
    ] = None,
) -> None:
    """List chats, last changed first.

    The text to search for may have tag:NAME, pinned:true, shared:true and the like in it.
    """
    client = session.client
    if limit is None:
        every = everything(
            lambda offset: client.call(
                routes.LIST_CHATS, query=search or None, user=user, archived=archived, offset=offset or None
            ),
            lambda page: page.chats,
        )
        session.show_all(every, ROWS)
        return
    found = client.call(routes.LIST_CHATS, query=search or None, user=user, archived=archived, limit=limit)
    session.show_all(found.chats, ROWS)
    if len(found.chats) < found.total:
        session.note(f"{len(found.chats)} of {found.total}")


@noun.verb(
    "show",
    "gatewayctl chat show 0f7d2c54-3a57-4c0b-9d0f-5f2f1d4b7a10",
    "gatewayctl chat show 0f7d2c54-3a57-4c0b-9d0f-5f2f1d4b7a10 --tree",
)
def show(
    session: Session,
    chat: ChatId,
    tree: Annotated[
        bool,
        typer.Option("--tree", help="Show the messages of all branches."),
    ] = False,
) -> None:
    """Show the messages of a chat, with their status reports, sources and errors.

    Without --tree these are the messages that lead to the current one.
    """
    found = session.client.call(routes.GET_CHAT, chat, tree=tree)
    if session.output is Output.TABLE:
        session.renderer.text("\n".join(transcript(found)))
        return
    session.show(found, DETAIL)


@noun.verb(
    "export",
    "gatewayctl chat export 0f7d2c54-3a57-4c0b-9d0f-5f2f1d4b7a10 > chat.json",
    "gatewayctl chat export --all --user ada@example.org --to chats.json",
    "gatewayctl chat export --all -o jsonl > chats.jsonl",
)
def export(
    session: Session,
    chat: Annotated[str | None, typer.Argument(metavar="CHAT", help="Id of the chat.")] = None,
    all_chats: Annotated[bool, typer.Option("--all", help="Export every chat, archived chats too.")] = False,
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="USER", help="With --all, export only the chats of this user."),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="FILE",
            help="Write to this file, which only you can read, instead of standard output.",
        ),
    ] = None,
) -> None:
    """Export whole chats as a JSON array, or with -o jsonl one chat a line.

    They have the shape in which clients of the API get them, so that this gateway and others of its family
    can import them. With -o name only the ids are written.
    """
    if (chat is None) is not all_chats or (user is not None and not all_chats):
        raise usage(
            "cannot export without a selection: add a chat, or --all with or without --user", param="CHAT"
        )
    request = ChatExport()
    if chat is not None:
        request.id = chat
    if user is not None:
        request.user = user
    pieces = _pieces(session.client.stream(routes.EXPORT_CHATS, request), session.output)
    if to is None:
        sys.stdout.writelines(pieces)
        return
    write_file(to, pieces)
    if session.output in {Output.JSON, Output.JSONL}:
        session.renderer.json({"file": str(to)})
    else:
        session.renderer.say(str(to) if session.output is Output.NAME else f"exported to {to}")


@noun.verb(
    "import",
    "gatewayctl chat import chats.json --user ada@example.org",
    "gatewayctl chat import - --user ada@example.org --dry-run < chats.jsonl",
)
def import_chats(
    session: Session,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="File of chats as JSON, or one chat a line; - reads standard input."
        ),
    ],
    user: Annotated[str, typer.Option("--user", metavar="USER", help="Owner of the imported chats.")],
    dry_run: DryRun = False,
) -> None:
    """Import chats that were exported here or from Open WebUI; they get new ids.

    All of them are checked before the first one is kept. They are sent in parts of 8 MiB or 1000 chats, or of
    one larger chat; each part is kept whole or not at all. Users write to their chats meanwhile.
    """
    parts = list(batches(read_chats(file), BATCH_BYTES))
    if len(parts) > 1 and not dry_run:
        for part in parts:
            session.client.call(
                routes.IMPORT_CHATS, body=ChatImport(user=user, chats=list(part)), dry_run=True
            )
    done = [
        session.client.call(
            routes.IMPORT_CHATS, body=ChatImport(user=user, chats=list(part)), dry_run=dry_run
        )
        for part in parts
    ]
    made = done[0].model_copy(update={"chats": [chat for each in done for chat in each.chats]})
    match session.output:
        case Output.TABLE:
            word = describe(made.outcome, dry_run=made.dry_run)
            session.renderer.say(f"{word} {len(made.chats)} chats of {user}")
        case Output.NAME:
            session.show_all(made.chats, ROWS)
        case Output.JSON | Output.JSONL:
            session.show(made, IMPORTED)


@noun.verb("remove", "gatewayctl chat remove 0f7d2c54-3a57-4c0b-9d0f-5f2f1d4b7a10 --yes")
def remove(session: Session, chat: ChatId, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Stop the tasks of a chat and delete it with all of its messages."""
    confirm(f"Remove the chat {chat}?", yes=yes or dry_run)
    session.written(session.client.call(routes.REMOVE_CHAT, chat, dry_run=dry_run), WRITTEN, "chat")


def _pieces(records: Iterable[dict[str, Any]], output: Output) -> Iterator[str]:
    match output:
        case Output.JSONL:
            return as_lines(records)
        case Output.NAME:
            return (f"{record.get('id')}\n" for record in records)
        case Output.TABLE | Output.JSON:
            return as_array(records)
