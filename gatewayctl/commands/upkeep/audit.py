"""`gatewayctl audit`: who changed what, who was refused, and whether that record is whole."""

import re
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer

from gatewayctl.command import Noun, Session
from gatewayctl.failures import FAILURE, CommandError
from gatewayctl.prompts import usage
from gatewayctl.render import Output, View
from gatewayctl.sanitize import as_json
from gatewayctl.values import parse_duration
from gatewayctl.wire import routes
from gatewayctl.wire.upkeep.audit import MAX_CHECKPOINTS, AuditRow, AuditVerdict, AuditVerification

noun = Noun("The audit log: who changed what, and who was refused.")

PAGE_ROWS: Final = 1000
POLL_SECONDS: Final = 1.0
SOUND: Final = "sound"
CHECKPOINT: Final = re.compile(r"\baudit checkpoint ([0-9]{1,18}:[0-9a-f]{64})\b")

Who = Annotated[
    str | None,
    typer.Option(
        "--who",
        metavar="TEXT",
        help="Part of the e-mail address or unix user, or a whole account id, uid or key prefix.",
    ),
]
Action = Annotated[str | None, typer.Option("--action", metavar="TEXT", help="Part of the action.")]
Target = Annotated[
    str | None, typer.Option("--target", metavar="TEXT", help="Part of the target or of the subject.")
]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="Rows from this time on: 2h (ago) or 2026-11-24T09:30:00Z."),
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Rows before this time, as for --since.")
]


def _time(row: AuditRow) -> str:
    moment = datetime.fromtimestamp(row.at / 1_000_000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _who(row: AuditRow) -> str:
    key = f" {row.key}" if row.key else ""
    return f"{row.actor_kind}:{row.actor}{key}" if row.actor else row.actor_kind


def _change(row: AuditRow) -> str:
    found = []
    for name, value in row.after.items():
        new = as_json(value)
        found.append(f"{name}={as_json(row.before[name])}->{new}" if name in row.before else f"{name}={new}")
    gone = [f"{name}={as_json(value)}->" for name, value in row.before.items() if name not in row.after]
    return " ".join([*found, *gone])


ROWS: View[AuditRow] = View(
    name=lambda row: str(row.sequence),
    columns={
        "SEQUENCE": lambda row: row.sequence,
        "TIME": _time,
        "WHO": _who,
        "ADDRESS": lambda row: row.address,
        "ACTION": lambda row: row.action,
        "TARGET": lambda row: row.subject or row.target,
        "RESULT": lambda row: row.result,
        "CHANGE": lambda row: row.detail or _change(row),
    },
)
VERDICT: View[AuditVerdict] = View(
    name=lambda row: row.status,
    columns={
        "CHAIN": lambda row: row.status,
        "ROWS": lambda row: row.rows,
        "FIRST": lambda row: row.first,
        "HEAD": lambda row: row.head,
        "PROBLEMS": lambda row: [f"{each.sequence}: {each.message}" for each in row.problems],
    },
)


@noun.verb("tail", "gatewayctl audit tail", "gatewayctl audit tail -f -o jsonl")
def tail(
    session: Session,
    number: Annotated[
        int, typer.Option("--lines", "-n", metavar="NUMBER", min=1, max=PAGE_ROWS, help="Number of rows.")
    ] = 20,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with new rows until interrupted.")
    ] = False,
) -> None:
    """Show the last rows, oldest first."""
    rows = session.client.call(routes.LIST_AUDIT, limit=number, newest=True).rows
    if not follow:
        session.show_all(rows, ROWS)
        return
    try:
        _follow(session, rows)
    except KeyboardInterrupt:
        raise CommandError("stopped", "stopped following", hint="") from None


@noun.verb(
    "search",
    "gatewayctl audit search --who ada@example.org --since 7d",
    "gatewayctl audit search --action 'sign-in refused' --since 2026-11-24 -o jsonl",
)
def search(
    session: Session,
    who: Who = None,
    action: Action = None,
    target: Target = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="NUMBER", min=1, max=PAGE_ROWS, help="Maximum number of rows.")
    ] = 100,
) -> None:
    """Show the last rows that match everything given, oldest first."""
    found = session.client.call(
        routes.LIST_AUDIT,
        who=who,
        action=action,
        target=target,
        since=_moment(since, "--since"),
        until=_moment(until, "--until"),
        limit=limit,
        newest=True,
    )
    session.show_all(found.rows, ROWS)


@noun.verb(
    "export",
    "gatewayctl audit export > audit.jsonl",
    "gatewayctl audit export --since 2026-11-01 --until 2026-12-01 > 2026-11.jsonl",
)
def export(session: Session, since: Since = None, until: Until = None) -> None:
    """Write rows as JSON, one a line, in the order of the chain; -o json writes one array.

    A line has exactly the values that the hash of the row covers: jq -cSj 'del(.hash)' | sha256sum gives it.
    """
    rows = _pages(session, _moment(since, "--since"), _moment(until, "--until"))
    if session.output is Output.JSON:
        session.show_all(list(rows), ROWS)
        return
    for row in rows:
        sys.stdout.write(f"{as_json(row.model_dump(mode='json'))}\n")


@noun.verb(
    "verify",
    "gatewayctl audit verify",
    "journalctl -u gatewayd -o cat | gatewayctl audit verify --checkpoints -",
)
def verify(
    session: Session,
    checkpoints: Annotated[
        str | None,
        typer.Option(
            "--checkpoints",
            metavar="FILE",
            help="Compare with the checkpoints in this log of the daemon; - reads standard input.",
        ),
    ] = None,
) -> None:
    """Verify the chain of hashes, and that its end is the one that checkpoints name.

    Each problem has the sequence number of its row. Exits with 1 when there is one.
    """
    given = [] if checkpoints is None else _checkpoints(checkpoints)
    verdict = session.client.call(routes.VERIFY_AUDIT, body=AuditVerification(checkpoints=given))
    session.show(verdict, VERDICT)
    if verdict.status != SOUND:
        sys.stdout.flush()
        raise typer.Exit(FAILURE)


def _follow(session: Session, rows: Sequence[AuditRow]) -> None:
    last = 0
    while True:
        for row in rows:
            _line(session, row)
            last = row.sequence
        sys.stdout.flush()
        if len(rows) < PAGE_ROWS:
            time.sleep(POLL_SECONDS)
        rows = session.client.call(routes.LIST_AUDIT, after=last, limit=PAGE_ROWS).rows


def _line(session: Session, row: AuditRow) -> None:
    if session.output is not Output.TABLE:
        text = str(row.sequence) if session.output is Output.NAME else as_json(row.model_dump(mode="json"))
        sys.stdout.write(f"{text}\n")
        return
    cells = [str(read(row)) for read in ROWS.columns.values()]
    session.renderer.say("  ".join(cell for cell in cells if cell))


def _pages(session: Session, since: int | None, until: int | None) -> Iterator[AuditRow]:
    after = 0
    while True:
        page = session.client.call(
            routes.LIST_AUDIT, after=after, since=since, until=until, limit=PAGE_ROWS
        ).rows
        yield from page
        if len(page) < PAGE_ROWS:
            return
        after = page[-1].sequence


def _moment(text: str | None, option: str) -> int | None:
    """Return epoch seconds of a time, or of a duration before now."""
    if text is None:
        return None
    if re.fullmatch(r"\d+[smhdw]", text):
        return max(0, int(time.time()) - parse_duration(text))  # noqa: TID251 - a time of the caller
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise usage(
            f"cannot read {option} {text!r}: expected a duration such as 2h, or a time such as 2026-11-24",
            param=option,
        ) from error
    return max(0, int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()))


def _checkpoints(source: str) -> list[str]:
    """Return the checkpoints in a log, the newest of too many."""
    if source == "-":
        found = [match[1] for line in sys.stdin for match in CHECKPOINT.finditer(line)]
    else:
        with Path(source).open(errors="replace") as lines:
            found = [match[1] for line in lines for match in CHECKPOINT.finditer(line)]
    if not found:
        raise usage(
            f"cannot find a checkpoint in {source}: the log of the daemon has them", param="--checkpoints"
        )
    return list(dict.fromkeys(found))[-MAX_CHECKPOINTS:]
