"""`gatewayctl tool-server`: tool servers and their access lists."""

from typing import Annotated, Any, Final

import typer

from gatewayctl.client import ControlClient
from gatewayctl.command import DryRun, Noun, Session, Yes
from gatewayctl.commands import access_lists as access
from gatewayctl.completion import completing, tool_servers
from gatewayctl.prompts import confirm, read_secret, read_text
from gatewayctl.render import Output, View
from gatewayctl.sanitize import begun
from gatewayctl.values import parse_pairs, read_object
from gatewayctl.wire import routes
from gatewayctl.wire.models import Holders
from gatewayctl.wire.tool_servers import Kind, NewToolServer, OfferedTool, ToolServer, ToolServerWritten

noun = Noun("Tool servers: their operations are tools that models call.")

MAX_CELL_CHARS: Final = 60

ROWS: View[ToolServer] = View(
    name=lambda row: row.id,
    columns={
        "ID": lambda row: row.id,
        "NAME": lambda row: row.name,
        "TYPE": lambda row: row.type,
        "URL": lambda row: row.url,
        "ACTIVE": lambda row: row.is_active,
        "ORIGIN": lambda row: row.origin,
        "ACCESS": lambda row: access.shown(row.grants),
    },
)
DETAIL: View[ToolServer] = View(
    name=ROWS.name,
    columns={
        **ROWS.columns,
        "DESCRIPTION": lambda row: row.description,
        "PATH": lambda row: "kept here" if row.described else row.path,
        "KEY": lambda row: row.keyed,
        "HEADERS": lambda row: row.headers,
        "FUNCTIONS": lambda row: row.functions or "all",
        "TIMEOUT": lambda row: None if row.timeout is None else f"{row.timeout:g} s",
        "UPDATED": lambda row: row.updated_at,
        "CREATED": lambda row: row.created_at,
    },
)
WRITTEN: View[ToolServerWritten] = View(name=lambda row: row.id, columns={})
TOOLS: View[OfferedTool] = View(
    name=lambda row: row.name,
    columns={
        "TOOL": lambda row: row.name,
        "PARAMETERS": lambda row: list(row.parameters.get("properties") or {}),
        "DESCRIPTION": lambda row: begun(row.description, MAX_CELL_CHARS),
    },
)

ServerId = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="Id of the tool server, as list shows it.", autocompletion=completing(tool_servers)
    ),
]
NewServerId = Annotated[str, typer.Argument(metavar="ID", help="Id of the new tool server.")]
Url = Annotated[str, typer.Option("--url", help="Address of the tool server.")]
Speaks = Annotated[Kind, typer.Option("--type", help="Protocol of the tool server.")]
Name = Annotated[str | None, typer.Option("--name", help="Name of the tool server; the id if not given.")]
Description = Annotated[str | None, typer.Option("--description", help="Description of the tool server.")]
SpecPath = Annotated[
    str | None,
    typer.Option(
        "--path", help="Path of the OpenAPI document, below the address; openapi.json if not given."
    ),
]
Spec = Annotated[
    str | None,
    typer.Option("--spec", metavar="FILE", help="OpenAPI document itself; - reads standard input."),
]
KeyFile = Annotated[
    str | None,
    typer.Option(
        "--key-file", metavar="FILE", help="File with the bearer token of the server; - reads standard input."
    ),
]
Headers = Annotated[
    list[str] | None,
    typer.Option("--header", metavar="NAME=VALUE", help="Header of every call; =@FILE reads a file."),
]
Functions = Annotated[
    list[str] | None,
    typer.Option(
        "--function",
        metavar="NAME",
        help="Function that the server may offer; may be repeated; all if not given.",
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option("--timeout", metavar="SECONDS", min=0.1, max=86_400, help="Time limit of one call."),
]


@noun.verb("list", "gatewayctl tool-server list")
def list_servers(session: Session) -> None:
    """List tool servers, those of the settings included."""
    found = session.client.call(routes.LIST_TOOL_SERVERS)
    session.show_all(found.servers, ROWS)
    for problem in found.problems:
        session.note(problem)


@noun.verb("show", "gatewayctl tool-server show maps")
def show(session: Session, server: ServerId) -> None:
    """Show one tool server; its key and the values of its headers are not shown."""
    session.show(session.client.call(routes.GET_TOOL_SERVER, server), DETAIL)


@noun.verb(
    "add",
    "gatewayctl tool-server add maps --url https://maps.example.org --key-file maps.key",
    "gatewayctl tool-server add files --type mcp --url http://127.0.0.1:8000/mcp --header X-Chat={{CHAT_ID}}",
)
def add(
    session: Session,
    server: NewServerId,
    url: Url,
    kind: Speaks = "openapi",
    name: Name = None,
    description: Description = None,
    path: SpecPath = None,
    spec: Spec = None,
    key_file: KeyFile = None,
    headers: Headers = None,
    functions: Functions = None,
    timeout: Timeout = None,
    dry_run: DryRun = False,
) -> None:
    """Add a tool server, which only administrators use until it is granted; check lists its tools."""
    given: dict[str, Any] = {
        "name": name,
        "description": description,
        "path": path,
        "spec": None if spec is None else read_object(spec, "--spec"),
        "key": None if key_file is None else read_secret(key_file, "--key-file"),
        "headers": {
            header: read_text(text, "--header") for header, text in parse_pairs(headers or []).items()
        },
        "functions": functions,
        "timeout": timeout,
    }
    chosen = {field: value for field, value in given.items() if value}
    request = NewToolServer.model_validate({"id": server, "url": url, "type": kind, **chosen})
    session.written(
        session.client.call(routes.ADD_TOOL_SERVER, body=request, dry_run=dry_run), WRITTEN, "tool server"
    )


@noun.verb("check", "gatewayctl tool-server check maps", "gatewayctl tool-server check maps -o name")
def check(session: Session, server: ServerId) -> None:
    """Connect to a tool server now, and list the tools that it offers."""
    offer = session.client.call(routes.CHECK_TOOL_SERVER, server)
    if session.output is Output.JSON:
        session.renderer.json(offer.model_dump(mode="json"))
        return
    session.show_all(offer.tools, TOOLS)
    count = len(offer.tools)
    session.note(f"{offer.title} {offer.version} offers {count} {'tool' if count == 1 else 'tools'}")


@noun.verb("remove", "gatewayctl tool-server remove maps --yes")
def remove(session: Session, server: ServerId, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Remove a tool server; a tool server of the settings stays."""
    confirm(f"Remove the tool server {server}?", yes=yes or dry_run)
    session.written(
        session.client.call(routes.REMOVE_TOOL_SERVER, server, dry_run=dry_run), WRITTEN, "tool server"
    )


def _grant(client: ControlClient, server: str, request: Holders, *, dry_run: bool) -> ToolServerWritten:
    return client.call(routes.GRANT_TOOL_SERVER, server, body=request, dry_run=dry_run)


def _revoke(client: ControlClient, server: str, request: Holders, *, dry_run: bool) -> ToolServerWritten:
    return client.call(routes.REVOKE_TOOL_SERVER, server, body=request, dry_run=dry_run)


access.register(
    noun,
    access.Things(
        "tool server",
        "The right to write adds nothing: only administrators change tool servers.",
        ServerId,
        WRITTEN,
        _grant,
        _revoke,
    ),
    grants=["gatewayctl tool-server grant maps --everyone"],
    revocation="gatewayctl tool-server revoke-access maps --everyone",
)
