"""Root command: global options, the nouns, exit codes."""

import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated

import typer

from gatewayctl import __version__, failures
from gatewayctl.command import Session
from gatewayctl.commands import (
    backups,
    batches,
    collections,
    database,
    events,
    files,
    groups,
    health,
    ingest,
    invitations,
    keys,
    models,
    permissions,
    scim,
    scim_tokens,
    service,
    settings,
    setup,
    stored_chats,
    tasks,
    tool_servers,
    users,
)
from gatewayctl.commands.consumption import limits, usage
from gatewayctl.commands.observation import logs, metrics
from gatewayctl.commands.plugins import functions, tools
from gatewayctl.commands.upkeep import audit, doctor, garbage, imports, nodes, secrets, state
from gatewayctl.failures import CommandError
from gatewayctl.render import Output
from gatewayctl.streams import discard, prepared_streams, tell

app = typer.Typer(
    name="gatewayctl",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
app.add_typer(users.noun, name="user")
app.add_typer(invitations.noun, name="invitation")
app.add_typer(groups.noun, name="group")
app.add_typer(permissions.noun, name="permission")
app.add_typer(keys.noun, name="key")
app.add_typer(limits.noun, name="limit")
app.add_typer(usage.noun, name="usage")
app.add_typer(models.noun, name="model")
app.add_typer(files.noun, name="file")
app.add_typer(collections.noun, name="collection")
app.add_typer(stored_chats.noun, name="chat")
app.add_typer(tasks.noun, name="task")
app.add_typer(batches.noun, name="batch")
app.add_typer(events.noun, name="event")
app.add_typer(functions.noun, name="function")
app.add_typer(tools.noun, name="tool")
app.add_typer(tool_servers.noun, name="tool-server")
app.add_typer(service.noun, name="service")
app.add_typer(settings.noun, name="setting")
app.add_typer(database.noun, name="database")
app.add_typer(imports.noun, name="import")
app.add_typer(nodes.noun, name="node")
app.add_typer(logs.noun, name="log")
app.add_typer(audit.noun, name="audit")
app.add_typer(database.noun, name="db", hidden=True)
app.add_typer(backups.noun, name="backup")
app.add_typer(secrets.noun, name="secret")
app.add_typer(state.noun, name="state")
app.add_typer(scim.noun, name="scim")
app.add_typer(scim_tokens.noun, name="scim-token")
setup.register(app)
health.register(app)
metrics.register(app)
usage.register(app)
ingest.register(app)
garbage.register(app)
doctor.register(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gatewayctl {__version__}")
        raise typer.Exit()


@app.callback()
def root(
    context: typer.Context,
    socket: Annotated[
        Path | None,
        typer.Option(
            "--socket", metavar="PATH", envvar="GATEWAYCTL_SOCKET", help="Control socket of the daemon."
        ),
    ] = None,
    output: Annotated[
        Output | None,
        typer.Option("--output", "-o", envvar="GATEWAYCTL_OUTPUT", help="Output format; table if not given."),
    ] = None,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Administer the gateway over its control socket, or ask a model."""
    session = Session.of(context)
    session.socket = socket
    session.output = output or session.output


@cache
def root_command() -> Callable[..., object]:
    """Return the root command with all nouns, made once: that takes longer than most commands."""
    return typer.main.get_command(app)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; failures go to standard error only."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    session = Session(output=wanted_output(given))
    try:
        with prepared_streams():
            code = _run(given, session)
            sys.stdout.flush()
    except CommandError as error:
        return report(error, session)
    except BrokenPipeError:
        discard(sys.stdout)
        return failures.OK
    return code


def _run(given: Sequence[str], session: Session) -> int:
    try:
        code = root_command()(args=given, prog_name="gatewayctl", standalone_mode=False, obj=session)
    except CommandError as error:
        return report(error, session)
    except typer.Abort:
        return report(CommandError("cancelled", "cancelled: nothing was changed"), session)
    except typer.TyperException as error:
        return report(_misused(error), session)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        return report(_refused(error), session)
    return code if isinstance(code, int) else failures.OK


def report(error: CommandError, session: Session) -> int:
    """Print a failure on standard error, as one JSON object for JSON output; return the exit code."""
    is_json = session.output in {Output.JSON, Output.JSONL}
    tell(f"{error.as_json() if is_json else error.sentence()}\n")
    return error.exit_code


def wanted_output(arguments: Sequence[str]) -> Output:
    """Return the output format of the arguments, also if the other arguments are invalid."""
    wanted = Output.TABLE
    for position, argument in enumerate(arguments):
        if argument in {"-o", "--output"}:
            value = arguments[position + 1] if position + 1 < len(arguments) else ""
        elif argument.startswith("--output="):
            value = argument.removeprefix("--output=")
        elif argument.startswith("-o"):
            value = argument.removeprefix("-o")
        else:
            continue
        if value in set(Output):
            wanted = Output(value)
    return wanted


def _refused(error: OSError) -> CommandError:
    """Return the failure for an unexpected error of the operating system."""
    reason = (error.strerror or str(error)).lower()
    return CommandError("system", f"cannot go on: {reason}{f': {error.filename}' if error.filename else ''}")


def _misused(error: typer.TyperException) -> CommandError:
    message = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "gatewayctl"
    return CommandError("usage", message[:1].lower() + message[1:], hint=f"see {path} --help")
