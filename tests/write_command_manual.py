"""Write man/gatewayctl.1 from the commands themselves.

Run from the top of the repository after a change: python -m tests.write_command_manual
"""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import typer

from gatewayctl.client import QUICKSTART_SOCKET, SYSTEM_SOCKET
from gatewayctl.failures import INTERRUPTED, OK, PARTIAL, TABLE, TRY_LATER
from gatewayctl.ingest.watch import PASSING
from gatewayctl.main import app
from gatewayd import __released__

PAGE: Final = Path(__file__).parents[1] / "man" / "gatewayctl.1"
# Told once for all commands.
COMMON: Final = {"--output", "--help"}

HEAD: Final = rf""".Dd {__released__}
.Dt GATEWAYCTL 1
.Os
.Sh NAME
.Nm gatewayctl
.Nd administer the chat gateway and ask its models
.Sh SYNOPSIS
.Nm
.Op Fl -socket Ar path
.Op Fl o Ar form
.Ar command
.Op Ar argument ...
.Nm
.Fl -version
.Sh DESCRIPTION
.Nm
speaks to
.Xr gatewayd 8
over its control socket.
Who may do so is decided by the daemon from the user who runs
.Nm :
root, the user that the daemon runs as, and the members of the group that
.Ic control_group
names in
.Xr gatewayd.toml 5 .
No password and no key is needed, and every change is written to the daemon's
log with the name of that user.
.Pp
The answer goes to standard output, and nothing else does.
A failure leaves standard output empty, unless an answer had begun to stream,
and is told in one sentence on standard error.
.Pp
A
.Ar user
is named by id or e-mail address, a
.Ar group
or
.Ar collection
by id or name, a
.Ar file
by id.
Secrets are read from a file or standard input, or made up and printed once;
they are never arguments.
A command that destroys something asks on a terminal, and needs
.Fl -yes
elsewhere.
With
.Fl -dry-run
the daemon makes the change, checks it in every respect and takes it back.
.Pp
The options are as follows;
.Fl -output
and
.Fl -help
may also stand after the command:
"""

FORMS: Final = r""".Pp
The forms of the answer are:
.Bl -tag -width Ds
.It Cm table
For people, and the default.
Its layout may change.
On a terminal no line is wider than that: ids and short values stay whole, long
names, paths and texts are cut, and columns for which there is no room are left
out; where no table has room, each row is a block of lines.
Elsewhere nothing is cut or left out.
.It Cm json
One JSON array or object.
Fields keep their names and their order, and new ones may be added.
A time is text as in RFC 3339, in UTC, or null.
The result of a change also has
.Ql outcome
.Pq created, changed, unchanged or removed
and
.Ql dry_run .
A failure is one JSON object with
.Ql error
on standard error, which has
.Ql kind ,
.Ql message ,
.Ql hint ,
.Ql param
and
.Ql request_id .
.It Cm jsonl
The same, one object on a line.
.It Cm name
The address, name or id alone, one on a line; where a secret is made, the secret
alone.
.El
"""

ENVIRONMENT: Final = r""".Sh ENVIRONMENT
.Bl -tag -width Ds
.It Ev GATEWAYCTL_SOCKET
The control socket, as with
.Fl -socket .
.It Ev GATEWAYCTL_OUTPUT
The form of the answer, as with
.Fl -output .
.It Ev NO_COLOR
When set, terminals get no colour.
.It Ev TERM
With
.Ql dumb ,
terminals get plain text.
.El
"""

TAIL: Final = r""".Sh EXAMPLES
Set a fresh gateway up and keep the key:
.Bd -literal -offset indent
# gatewayctl setup \-\-email ada@example.org \-\-name Ada \-o name > key
.Ed
.Pp
Give everybody in a group the right to have keys, and a key to one of them:
.Bd -literal -offset indent
# gatewayctl group ensure api\-users \-\-allow features.api_keys
# gatewayctl group add\-member api\-users bob@example.org
# gatewayctl key create bob@example.org laptop \-\-expires\-in 90d
.Ed
.Pp
Find out why somebody cannot have one:
.Bd -literal -offset indent
# gatewayctl key why bob@example.org
.Ed
.Pp
Ask a model about a file:
.Bd -literal -offset indent
$ { echo Summarise:; cat notes.txt; } | gatewayctl chat
.Ed
.Pp
Keep a collection in step with a directory, every hour, as a crontab has it:
.Bd -literal -offset indent
0 * * * * gatewayctl ingest /srv/handbook \-\-collection handbook \-\-delete
.Ed
.Pp
The same with the service manager, whose journal then has the counts and the
failures:
.Bd -literal -offset indent
# cat > /etc/gatewayd/ingest/handbook.conf
DIRECTORY=/srv/handbook
COLLECTION=handbook
OPTIONS=\-\-delete
# systemctl enable \-\-now gatewayd\-ingest@handbook.timer
.Ed
.Pp
Ask the collection, and see why each passage was found:
.Bd -literal -offset indent
$ gatewayctl collection query handbook \(aqhow many days of leave?\(aq \-\-explain
.Ed
.Pp
Complete commands in the shell, and the names and ids of what there is while the
daemon answers:
.Bd -literal -offset indent
$ gatewayctl \-\-install\-completion
.Ed
.Sh SEE ALSO
.Xr gatewayd.toml 5 ,
.Xr gatewayd-documents 7 ,
.Xr gatewayd-operations 7 ,
.Xr gatewayd-plugins 7 ,
.Xr gatewayd 8
"""


def page() -> str:
    """Return the whole manual page."""
    root = typer.main.get_command(app)
    context = typer.Context(root, info_name="gatewayctl", **root.context_settings)
    lines = [
        *options(root, context, frozenset(), [root.get_help_option(context)]),
        FORMS.rstrip(),
        ".Sh COMMANDS",
    ]
    shown = [command for command in root.commands.values() if not command.hidden]
    nouns = [command for command in shown if hasattr(command, "commands")]
    verbs = [command for command in shown if not hasattr(command, "commands")]
    lines += [".Bl -tag -width Ds", *(line for verb in verbs for line in entry(verb, context)), ".El"]
    for noun in nouns:
        lines += [f".Ss {noun.name}", *prose(noun.help), ".Bl -tag -width Ds"]
        lines += [*entries(noun, context), ".El"]
    return HEAD + "\n".join(lines) + "\n" + ENVIRONMENT + files() + exit_status() + TAIL


def entries(noun: Any, parent: typer.Context) -> Iterator[str]:
    """Yield the commands of a noun, those of a noun below it included."""
    context = typer.Context(noun, info_name=noun.name, parent=parent)
    for command in noun.commands.values():
        yield from entries(command, context) if hasattr(command, "commands") else entry(command, context)


def entry(command: Any, parent: typer.Context) -> Iterator[str]:
    """Yield one command: how it is called, what it does, its options and its examples."""
    context = typer.Context(command, info_name=command.name, parent=parent)
    path = context.command_path.removeprefix("gatewayctl ").replace("-", r"\-")
    yield ".It Xo"
    yield f".Cm {path}"
    for item in shown(command):
        yield called(item, context)
    yield ".Xc"
    yield from prose(command.help)
    yield from options(command, context)
    examples = (command.epilog or "").splitlines()[2:]
    if examples:
        yield ".Bd -literal -offset indent"
        yield from (literal(f"$ {example.strip()}") for example in examples)
        yield ".Ed"


def shown(command: Any, skip: frozenset[str] = frozenset(COMMON)) -> Sequence[Any]:
    """Return the parameters of a command that its part of the page tells: options, then arguments."""
    known = [item for item in command.params if not skip & set(item.opts)]
    return sorted(known, key=lambda item: item.param_type_name == "argument")


def called(item: Any, context: typer.Context) -> str:
    """Return how a parameter stands in the call."""
    if item.param_type_name == "argument":
        dots = " ..." if item.nargs == -1 else ""
        text = f"Ar {argument(item)}{dots}"
    else:
        names = [item.opts[-1], *item.secondary_opts]
        text = " | ".join(flag(name) for name in names) + placeholder(item, context)
    return f".{text}" if item.required else f".Op {text}"


def options(
    command: Any,
    context: typer.Context,
    skip: frozenset[str] = frozenset(COMMON),
    more: Sequence[Any] = (),
) -> Iterator[str]:
    """Yield the list of what a command takes; `more` is told at the end."""
    items = [*shown(command, skip), *more]
    if not items:
        return
    yield ".Bl -tag -width Ds"
    for item in items:
        if item.param_type_name == "argument":
            yield f".It Ar {argument(item)}"
        else:
            names = " , ".join(flag(name) for name in [*sorted(item.opts, key=len), *item.secondary_opts])
            yield f".It {names}{placeholder(item, context)}"
        yield from prose(item.help)
    yield ".El"


def argument(item: Any) -> str:
    """Return the placeholder of an argument."""
    return str(item.metavar).lower()


def flag(name: str) -> str:
    """Return an option in mdoc, whose Fl writes the first hyphen."""
    return f"Fl {name[1:]}"


def placeholder(item: Any, context: typer.Context) -> str:
    """Return what follows an option, with a blank before it; "" for a switch."""
    if item.secondary_opts:
        return ""
    record = item.get_help_record(context)[0]
    value = re.sub(r"^(?:-[-a-z]+(?:, )?)+ ?", "", record).strip().strip("<>")
    if not value:
        return ""
    if "|" in value:
        return " " + " | ".join(f"Cm {choice}" for choice in value.split("|"))
    words = {"str": "text", "int": "number", "int range": "number", "float": "number"}
    return f" Ar {words.get(value, value).lower()}"


def prose(text: str | None) -> Iterator[str]:
    """Yield running text as mdoc: a sentence a line, and a paragraph break between paragraphs."""
    for number, paragraph in enumerate((text or "").strip().split("\n\n")):
        if number:
            yield ".Pp"
        for sentence in re.split(r"(?<=[.;]) +", " ".join(paragraph.split())):
            yield escape(sentence)


def escape(text: str) -> str:
    """Return a line of text that no part of is taken for a request or an escape."""
    text = text.replace("\\", r"\e").replace("--", r"\-\-")
    text = re.sub(r"(?<= )-(?=[a-z]\b)", r"\\-", text)
    return rf"\&{text}" if text.startswith((".", "'")) else text


def literal(text: str) -> str:
    """Return a line as it is typed: its hyphens are those of the keyboard."""
    return text.replace("\\", r"\e").replace("-", r"\-")


def files() -> str:
    """Return the section about the sockets."""
    return rf""".Sh FILES
.Bl -tag -width Ds
.It Pa {SYSTEM_SOCKET}
The control socket of the system's daemon.
.It Pa {QUICKSTART_SOCKET}
The control socket of
.Ql gatewayd \-\-quickstart ,
which is used when it is in the current directory and nobody listens on the other one.
.It Pa /etc/gatewayd/ingest/ Ns Ar name Ns Pa .conf
.Ev DIRECTORY ,
.Ev COLLECTION
and
.Ev OPTIONS
of
.Cm ingest
for the units
.Pa gatewayd\-ingest@ Ns Ar name Ns Pa .service
and
.Pa gatewayd\-ingest@ Ns Ar name Ns Pa .timer .
.It Pa .gitignore , .gatewayignore
Patterns, as in
.Xr gitignore 5 ,
of what
.Cm ingest
leaves out of the directory that they are in and those below it.
The second one decides where both speak of a file.
.El
"""


def exit_status() -> str:
    """Return the section about exit codes: each with the kinds of failure that have it."""
    lines = [
        ".Sh EXIT STATUS",
        "Beside each code stand the kinds of failure, as JSON output names them.",
        ".Bl -tag -width Ds",
        f".It {OK}",
        "The command did what it says.",
    ]
    for code in sorted({row.exit_code for row in TABLE.values()}):
        lines.append(f".It {code}")
        if code == INTERRUPTED:
            lines.append("The command was interrupted;")
        kinds = [(kind, row.meaning) for kind, row in TABLE.items() if row.exit_code == code]
        for position, (kind, meaning) in enumerate(kinds):
            end = "." if position == len(kinds) - 1 else ";"
            lines += [f".Ql {kind} :", f"{meaning}{end}"]
    lines += [".El", *exit_status_of_ingest(), ""]
    return "\n".join(lines)


def exit_status_of_ingest() -> Iterator[str]:
    """Yield what two exit codes mean for the one command that a timer runs."""
    yield ".Pp"
    yield "Two codes have a meaning of their own for"
    yield ".Cm ingest :"
    yield ".Bl -tag -width Ds"
    yield f".It {PARTIAL}"
    yield "Some files failed, or some that are gone were not removed; everything else is done."
    yield f".It {TRY_LATER}"
    yield "Nothing is wrong with the directory; the next run may succeed and goes on from there."
    yield "Besides"
    yield ".Ql busy ,"
    yield "the kinds"
    kinds = [kind for kind in TABLE if kind in PASSING]
    for position, kind in enumerate(kinds):
        if position == len(kinds) - 1:
            yield "and"
        yield f".Ql {kind}{' ,' if position < len(kinds) - 2 else ''}"
    yield "have this code here, whatever it is elsewhere."
    yield ".El"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stderr.write(f"wrote {PAGE}\n")
