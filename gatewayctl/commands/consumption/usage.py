"""`gatewayctl usage` and `gatewayctl top`: what models are used for, and what they do now."""

import csv
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final

import typer

from gatewayctl.command import Noun, Session, add_verb
from gatewayctl.completion import choosing
from gatewayctl.prompts import usage as misuse
from gatewayctl.render import Output, View
from gatewayctl.wire import routes
from gatewayctl.wire.consumption.usage import LoadLine, LoadSnapshot, QueueLine, UsageLine, UsageReport

noun = Noun("Usage of models: requests, tokens, time and cost.")

DIMENSIONS: Final = ("day", "user", "group", "key", "model", "provider", "endpoint")
LOAD_DIMENSIONS: Final = ("user", "key", "model", "provider")
BAR_WIDTH: Final = 40
REFRESH_SECONDS: Final = 2.0
CLEAR_SCREEN: Final = "\x1b[H\x1b[2J"

By = Annotated[
    list[str] | None,
    typer.Option(
        "--by",
        metavar="WHAT",
        help=f"Sum up by {', '.join(DIMENSIONS)}; may be repeated.",
        autocompletion=choosing(*DIMENSIONS),
    ),
]
Since = Annotated[str, typer.Option("--since", metavar="DAY", help="First day (UTC), such as 2026-11-24.")]
Until = Annotated[str, typer.Option("--until", metavar="DAY", help="Last day (UTC).")]
OfUser = Annotated[str | None, typer.Option("--user", metavar="USER", help="User of the counted calls.")]
OfGroup = Annotated[
    str | None,
    typer.Option("--group", metavar="GROUP", help="Group whose members are counted."),
]
OfKey = Annotated[str | None, typer.Option("--key", metavar="KEY", help="Id of the key of the calls.")]
OfModel = Annotated[str | None, typer.Option("--model", metavar="MODEL", help="Model of the counted calls.")]
OfProvider = Annotated[
    str | None, typer.Option("--provider", metavar="NAME", help="Provider whose answers are counted.")
]


def view_of(by: Sequence[str]) -> View[UsageLine]:
    """Return the view of a report that is summed up by these words."""
    return View(
        name=lambda line: " ".join(_label(line, each) for each in by),
        columns={
            **{each.upper(): partial(_label, dimension=each) for each in by},
            "REQUESTS": lambda line: line.requests,
            "FAILED": lambda line: line.failures,
            "PROMPT": lambda line: line.prompt_tokens,
            "CACHED": lambda line: line.cached_tokens,
            "ANSWER": lambda line: line.completion_tokens,
            "REASONING": lambda line: line.reasoning_tokens,
            "SECONDS": lambda line: round(line.seconds, 1),
            "COST": shown_cost,
            "ESTIMATED": lambda line: line.estimated or None,
        },
    )


def shown_cost(line: UsageLine) -> str:
    """Return dollars as text; "unknown" without a price, with a plus for calls of an unknown price."""
    if line.cost is None:
        return "unknown"
    return f"${line.cost:.6f}{f' +{line.unpriced} unknown' if line.unpriced else ''}"


def plotted(lines: Sequence[UsageLine], by: Sequence[str]) -> list[str]:
    """Return a bar for each line: its cost, or its tokens if no cost is known."""
    has_costs = any(line.cost for line in lines)
    values = [(line.cost or 0.0) if has_costs else float(line.total_tokens) for line in lines]
    labels = [" ".join(_label(line, each) for each in by) for line in lines]
    width, most = max(map(len, labels), default=0), max(values, default=0.0)
    shown = [shown_cost(line) if has_costs else f"{line.total_tokens} tokens" for line in lines]
    return [
        f"{label:<{width}}  {'#' * (round(value / most * BAR_WIDTH) if most else 0):<{BAR_WIDTH}}  {text}"
        for label, value, text in zip(labels, values, shown, strict=True)
    ]


def _label(line: UsageLine, dimension: str) -> str:
    value = getattr(line, dimension)
    return value or getattr(line, f"{dimension}_id", None) or "-"


def _words(by: Sequence[str] | None, allowed: Sequence[str], default: str) -> list[str]:
    words = [word for each in by or [default] for word in each.split(",")]
    for word in words:
        if word not in allowed:
            raise misuse(f"cannot sum up by {word!r}: expected {', '.join(allowed)}", param="--by")
    return list(dict.fromkeys(words))


@noun.verb(
    "report",
    "gatewayctl usage report --since 2026-11-01 --by user --by model",
    "gatewayctl usage report --by day --plot",
)
def report(
    session: Session,
    by: By = None,
    since: Since = "",
    until: Until = "",
    user: OfUser = None,
    group: OfGroup = None,
    key: OfKey = None,
    model: OfModel = None,
    provider: OfProvider = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="Maximum number of lines.")] = 1000,
    plot: Annotated[bool, typer.Option("--plot", help="Draw a bar for each line.")] = False,
) -> None:
    """Report requests, tokens, time and cost; by model if --by is not given.

    Groups are those of the users now: a user of two groups counts in both.
    """
    words = _words(by, DIMENSIONS, "model")
    found = session.client.call(
        routes.REPORT_USAGE,
        by=",".join(words),
        since=since,
        until=until,
        user=user,
        group=group,
        key=key,
        model=model,
        provider=provider,
        limit=str(limit),
    )
    if plot and found.lines and session.output is Output.TABLE:
        for line in plotted(found.lines, words):
            session.renderer.say(line)
        return
    session.show_all(found.lines, view_of(words))


@noun.verb(
    "export",
    "gatewayctl usage export --since 2026-11-01 --format csv > usage.csv",
)
def export(
    session: Session,
    since: Since = "",
    until: Until = "",
    user: OfUser = None,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="jsonl or csv; with -o json one JSON array.",
            autocompletion=choosing("jsonl", "csv"),
        ),
    ] = "jsonl",
) -> None:
    """Write all rows, one for each day, user, key, model, provider and endpoint."""
    if form not in ("jsonl", "csv"):
        raise misuse(f"cannot export as {form!r}: expected jsonl or csv", param="--format")
    words = [word for word in DIMENSIONS if word != "group"]
    found: UsageReport = session.client.call(
        routes.REPORT_USAGE, by=",".join(words), since=since, until=until, user=user, limit="1000000"
    )
    if session.output is Output.JSON:
        session.show_all(found.lines, view_of(words))
        return
    if form == "csv":
        fields = [name for name in UsageLine.model_fields if not name.startswith("group")]
        writer = csv.DictWriter(sys.stdout, fields, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(line.model_dump() for line in found.lines)
        return
    for line in found.lines:
        sys.stdout.write(f"{line.model_dump_json(exclude={'group', 'group_id'})}\n")


LOAD: View[LoadLine] = View(
    name=lambda line: line.name,
    columns={
        "NAME": lambda line: line.name or "-",
        "REQUESTS": lambda line: line.requests,
        "STREAMS": lambda line: line.streams,
        "WAITING": lambda line: line.waiting,
        "TOKENS/S": lambda line: line.tokens_per_second,
        "FIRST": lambda line: None if line.first_seconds is None else f"{line.first_seconds:.2f} s",
        "LAST MINUTE": lambda line: line.finished,
        "FAILED": lambda line: line.failures,
    },
)


QUEUES: View[QueueLine] = View(
    name=lambda line: line.name,
    columns={
        "QUEUE": lambda line: line.name,
        "WORKING": lambda line: line.working,
        "WAITING": lambda line: line.waiting,
        "PLACES": lambda line: line.places,
    },
)


def register(app: typer.Typer) -> None:
    """Add the command without a noun."""
    add_verb(app, "top", top, "gatewayctl top --by user", "gatewayctl top --once -o json")


def top(
    session: Session,
    by: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="WHAT",
            help=f"Show lines by {', '.join(LOAD_DIMENSIONS)}.",
            autocompletion=choosing(*LOAD_DIMENSIONS),
        ),
    ] = "model",
    once: Annotated[bool, typer.Option("--once", help="Show the present state once.")] = False,
) -> None:
    """Show the calls of models in flight, those of the last minute, and the queues, again every 2 seconds.

    Off a terminal it shows them once.
    """
    [word] = _words([by], LOAD_DIMENSIONS, "model")
    while True:
        snapshot: LoadSnapshot = session.client.call(routes.SHOW_LOAD, by=word)
        is_live = session.output is Output.TABLE and not once and sys.stdout.isatty()
        if is_live:
            sys.stdout.write(CLEAR_SCREEN)
        if session.output in (Output.JSON, Output.JSONL):
            session.renderer.json(snapshot.model_dump(mode="json"))
        else:
            session.show_all([snapshot.total, *snapshot.lines], LOAD)
            if snapshot.queues and session.output is not Output.NAME:
                sys.stdout.write("\n")
                session.show_all(snapshot.queues, QUEUES)
        if not is_live:
            return
        sys.stdout.flush()
        time.sleep(REFRESH_SECONDS)
