"""Common parts of all commands: the session, shared options, and the classes of nouns and verbs."""

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperGroup

from gatewayctl.client import ControlClient, default_socket
from gatewayctl.completion import complete_by_metavar
from gatewayctl.render import Output, Renderer, Row, View
from gatewayctl.sanitize import clean_lines
from gatewayctl.streams import discard
from gatewayctl.transport import Transport
from gatewayctl.wire.base import Outcome, Written

WrittenRow = TypeVar("WrittenRow", bound=Written)
Verb = TypeVar("Verb", bound=Callable[..., Any])

DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Check the change and show its result, but change nothing.")
]
OutputOption = Annotated[
    Output | None, typer.Option("--output", "-o", help="Output format; may also stand before the noun.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Change without asking for confirmation.")]
UserRef = Annotated[
    str,
    typer.Argument(metavar="USER", help="Id or e-mail address of the user."),
]
ProviderName = Annotated[
    str | None,
    typer.Option("--provider", metavar="NAME", help="Identity provider; scim_auth_provider if not given."),
]
GroupRef = Annotated[str, typer.Argument(metavar="GROUP", help="Id or name of the group.")]


@dataclass
class Session:
    """One run of a command: its socket and its output format."""

    socket: Path | None = None
    output: Output = Output.TABLE

    @staticmethod
    def of(context: typer.Context) -> "Session":
        """Return the session of a command."""
        session = context.find_object(Session)
        if session is None:
            raise RuntimeError("a command runs only below the root command")
        return session

    @cached_property
    def client(self) -> ControlClient:
        """The client, which connects on its first call."""
        return ControlClient(Transport(self.socket or default_socket()))

    @property
    def renderer(self) -> Renderer:
        """The renderer of the answer."""
        return Renderer(self.output, sys.stdout)

    def written(self, row: WrittenRow, view: View[WrittenRow], what: str) -> None:
        """Show the result of a write: a sentence for people, the object for programs."""
        if self.output is not Output.TABLE:
            self.renderer.one(row, view)
            return
        self.renderer.say(f"{describe(row.outcome, dry_run=row.dry_run)} {what} {view.name(row)}")

    def note(self, sentence: str) -> None:
        """Print a message for people on standard error."""
        if self.output is Output.TABLE:
            sys.stderr.write(f"{clean_lines(sentence)}\n")

    def show(self, row: Row, view: View[Row]) -> None:
        """Show one object."""
        self.renderer.one(row, view)

    def show_all(self, rows: Sequence[Row], view: View[Row]) -> None:
        """Show a list."""
        self.renderer.many(rows, view)


def describe(outcome: Outcome, *, dry_run: bool) -> str:
    """Return the word for the result, for example `created`, or `dry run: created`."""
    return f"dry run: {outcome.value}" if dry_run else outcome.value


class DefaultCommandGroup(TyperGroup):
    """A noun with the default verb `run`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the verb if the first argument is none; completion still offers all verbs."""
        is_open = bool(args) and (args[0] in self.commands or args[0] in ctx.help_option_names)
        if not is_open and not ctx.resilient_parsing:
            args = ["run", *args]
        return super().parse_args(ctx, args)


class Noun(typer.Typer):
    """A noun: a group of verbs. A `lenient` one has the default verb `run`."""

    def __init__(self, summary: str, *, lenient: bool = False) -> None:
        group = DefaultCommandGroup if lenient else TyperGroup
        super().__init__(cls=group, help=summary, rich_markup_mode=None, pretty_exceptions_enable=False)

    def verb(self, name: str, *examples: str) -> Callable[[Verb], Verb]:
        """Register a function as a verb; its first parameter is the session.

        The verb also takes `--output`. Its help and the manual show the examples.
        """

        def register(function: Verb) -> Verb:
            add_verb(self, name, function, *examples)
            return function

        return register


def add_verb(app: typer.Typer, name: str, function: Callable[..., None], *examples: str) -> None:
    """Register a function with the session as first parameter; see `Noun.verb`."""
    app.command(name, epilog=epilog(examples))(_runner(function))


def epilog(examples: Sequence[str]) -> str:
    """Return the examples as the last paragraph of a help text, which is not wrapped."""
    return "\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples)


def _runner(function: Callable[..., None]) -> Callable[..., None]:
    """Return the function for Typer: with a context instead of the session, and with `--output`."""

    @wraps(function)
    def run(context: typer.Context, output: Output | None = None, **values: Any) -> None:
        session = Session.of(context)
        session.output = output or session.output
        try:
            function(session, **values)
            sys.stdout.flush()
        except BrokenPipeError:
            discard(sys.stdout)
            raise typer.Exit(0) from None

    own = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    added = inspect.Parameter("output", inspect.Parameter.KEYWORD_ONLY, annotation=OutputOption, default=None)
    given = inspect.signature(function)
    rest = list(given.parameters.values())[1:]
    for item in rest:
        complete_by_metavar(item.annotation)
    parameters = [item.replace(kind=inspect.Parameter.KEYWORD_ONLY) for item in rest]
    run.__signature__ = given.replace(parameters=[own, *parameters, added])  # type: ignore[attr-defined]
    hints = {item.name: item.annotation for item in (*parameters, added)}
    run.__annotations__ = {"context": typer.Context, **hints, "return": None}
    return run
