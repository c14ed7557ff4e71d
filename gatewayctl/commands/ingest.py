"""`gatewayctl ingest`: synchronises a collection with a directory."""

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from gatewayctl.command import Session, add_verb
from gatewayctl.failures import PARTIAL, CommandError
from gatewayctl.ingest.folder import Folder, reason
from gatewayctl.ingest.readers import Reader
from gatewayctl.ingest.records import FileOutcome, Report, What
from gatewayctl.ingest.rules import Rules
from gatewayctl.ingest.run import Plan, Run
from gatewayctl.ingest.scan import Scan, Scanner
from gatewayctl.ingest.stop import Stop, StoppedError
from gatewayctl.ingest.walk import Choice
from gatewayctl.ingest.watch import Watch, later, stopped
from gatewayctl.prompts import usage
from gatewayctl.render import Bars, Output
from gatewayctl.sanitize import clean
from gatewayctl.values import parse_size

Patterns = list[str] | None
Directory = Annotated[Path, typer.Argument(metavar="DIR", help="Directory to ingest.")]
CollectionName = Annotated[
    str,
    typer.Option(
        "--collection",
        "-c",
        metavar="COLLECTION",
        help="Name or id of the collection, which is created if absent.",
    ),
]
Origin = Annotated[
    str | None,
    typer.Option(
        "--origin",
        metavar="NAME",
        help="Name of the directory in the collection; its absolute path if not given.",
    ),
]
Owner = Annotated[
    str | None,
    typer.Option(
        "--user",
        metavar="USER",
        help="Owner of new files and of a new collection; the first administrator if not given.",
    ),
]
Ignore = Annotated[
    Patterns,
    typer.Option(
        "--ignore", metavar="PATTERN", help="Skip files that match this pattern, as in gitignore(5)."
    ),
]
Include = Annotated[
    Patterns,
    typer.Option("--include", metavar="PATTERN", help="Upload only files that match one of these patterns."),
]
IgnoreFiles = Annotated[
    bool,
    typer.Option(
        "--ignore-files/--no-ignore-files", help="Obey .gitignore and .gatewayignore in the directory."
    ),
]
Hidden = Annotated[
    bool, typer.Option("--hidden", help="Include files and directories whose name begins with a dot.")
]
Follow = Annotated[bool, typer.Option("--follow", help="Follow symbolic links, also out of the directory.")]
MaxSize = Annotated[
    str | None,
    typer.Option("--max-size", metavar="SIZE", help="Skip files above this size, for example 20M."),
]
Delete = Annotated[
    bool,
    typer.Option("--delete", help="Remove files from the collection that are gone from the directory."),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="With --delete, remove files even when not all could be read or the directory is empty.",
    ),
]
Retry = Annotated[bool, typer.Option("--retry", help="Process unchanged files again that failed before.")]
Wait = Annotated[
    bool,
    typer.Option("--wait/--no-wait", help="Wait until the files are processed, or return after the upload."),
]
WatchFor = Annotated[
    bool, typer.Option("--watch", help="Scan the directory again until a signal ends the command.")
]
Interval = Annotated[
    int, typer.Option("--interval", min=1, metavar="SECONDS", help="Seconds between two scans with --watch.")
]
Jobs = Annotated[
    int, typer.Option("--jobs", "-j", min=1, max=16, help="Number of files to upload at a time.")
]
Dry = Annotated[bool, typer.Option("--dry-run", help="Show the changes without making them.")]


def register(app: typer.Typer) -> None:
    """Add the verb to the root."""
    add_verb(
        app,
        "ingest",
        run,
        "gatewayctl ingest /srv/handbook --collection handbook --delete",
        "gatewayctl ingest . --collection notes --include '*.md' --ignore drafts/ --dry-run",
        "gatewayctl ingest /srv/handbook --collection handbook --watch --interval 30",
    )


def run(
    session: Session,
    directory: Directory,
    collection: CollectionName,
    origin: Origin = None,
    user: Owner = None,
    ignore: Ignore = None,
    include: Include = None,
    ignore_files: IgnoreFiles = True,
    hidden: Hidden = False,
    follow: Follow = False,
    max_size: MaxSize = None,
    delete: Delete = False,
    force: Force = False,
    retry: Retry = False,
    wait: Wait = True,
    watch: WatchFor = False,
    interval: Interval = 10,
    jobs: Jobs = 2,
    dry_run: Dry = False,
) -> None:
    """Bring a collection in step with a directory: upload what is new or changed, and nothing twice.

    Files are compared by content. Hidden files, symbolic links, and what .gitignore and .gatewayignore files
    name are left out. A changed file is found in its old form until the new one is processed. Broken off at
    any time, the next run goes on from there; a second run at the same time is refused.

    Tells one line of counts, each file once, with -o jsonl also a line for each file. Each file that failed
    is named with the reason. Exits with 3 when some files failed and the others are done, and with 75 when it
    is to be tried later: the daemon does not answer, or has too much to do, or another run is under way.
    """
    rules = Rules.of(ignore or (), include or (), hidden=hidden)
    choice = Choice(rules, ignore_files, follow, None if max_size is None else parse_size(max_size))
    plan = Plan(collection, _origin(directory, origin), user, delete, force, wait, retry, dry_run, jobs)
    _check(plan, watch=watch)
    with Folder(directory, follow=follow) as folder:
        Command(session, folder, choice, plan).run(interval if watch else None)


def _check(plan: Plan, *, watch: bool) -> None:
    """Raise usage for options that exclude each other."""
    if watch and plan.dry_run:
        raise usage("cannot watch in a dry run", param="--watch")
    if plan.force and not plan.delete:
        raise usage("cannot force anything without --delete", param="--force")


def _origin(directory: Path, given: str | None) -> str:
    """Return the name of the directory in the collection."""
    # Links in the path are not resolved: the name of a link often stays while its target changes.
    try:
        origin = os.path.normpath(directory.absolute()) if given is None else given
    except OSError as error:
        raise usage(f"cannot tell where {directory} is: {reason(error)}", param="DIR") from error
    if not origin or not origin.isprintable():
        raise usage("cannot use the name of the directory: give another one with --origin", param="--origin")
    return origin


class Command:
    """One call of the command: runs once or repeatedly, and shows the results."""

    def __init__(self, session: Session, folder: Folder, choice: Choice, plan: Plan) -> None:
        self._session = session
        self._folder = folder
        self._plan = plan
        self._stop = Stop()
        self._reader = Reader(folder, self._stop)
        self._scanner = Scanner(folder, choice, self._reader, self._stop)
        self._report = Report()
        self._began = 0.0

    def run(self, interval: float | None) -> None:
        """Run once, or at intervals until a signal; the lock excludes other runs."""
        self._lock()
        with self._stop.on_signals():
            if interval is not None:
                Watch(self._scan, self._bring, self._show, self._complain).go_on(self._stop, interval)
                return
            try:
                report = self._bring(self._scan())
            except StoppedError as error:
                raise stopped(self._report) from error
        self._show(report)
        if report.is_partial:
            sys.stdout.flush()
            raise typer.Exit(PARTIAL)

    def _lock(self) -> None:
        if self._plan.dry_run:
            return  # A dry run changes nothing and may run beside others.
        problem = self._folder.lock()
        if problem is not None:
            sys.stderr.write(f"gatewayctl: {clean(problem)}\n")

    def _bars(self) -> Bars:
        return Bars(sys.stderr, is_wanted=self._session.output is Output.TABLE)

    def _scan(self) -> Scan:
        self._began = time.monotonic()
        with self._bars() as bars:
            return self._scanner.scan(bars)

    def _bring(self, scan: Scan) -> Report:
        report = Report(on_outcome=self._tell) if self._session.output is Output.JSONL else Report()
        self._report = report
        with self._bars() as bars:
            try:
                Run(self._session.client, self._reader, self._plan, self._stop, bars).bring(scan, report)
            except CommandError as error:
                raise later(error, report) from error
        return report

    def _tell(self, outcome: FileOutcome) -> None:
        self._session.renderer.json(asdict(outcome))
        sys.stdout.flush()

    def _complain(self, error: CommandError) -> None:
        is_json = self._session.output in {Output.JSON, Output.JSONL}
        sys.stderr.write(f"{error.as_json() if is_json else error.sentence()}\n")

    def _show(self, report: Report) -> None:
        seconds = time.monotonic() - self._began
        renderer = self._session.renderer
        match self._session.output:
            case Output.TABLE:
                _complain_of(report)
                if self._plan.dry_run:
                    for outcome in report.outcomes.values():
                        if outcome.outcome not in {What.UNCHANGED, What.FAILED}:
                            renderer.say(f"{outcome.outcome} {outcome.path}")
                renderer.say(_summary(report, seconds, dry_run=self._plan.dry_run))
            case Output.NAME:
                _complain_of(report)
                for outcome in report.outcomes.values():
                    if outcome.outcome in {What.ADDED, What.CHANGED} and outcome.id is not None:
                        renderer.say(outcome.id)
            case Output.JSON | Output.JSONL:
                renderer.json(_object(report, self._plan, seconds))
        sys.stdout.flush()


def _complain_of(report: Report) -> None:
    for outcome in report.failures():
        sys.stderr.write(f"gatewayctl: {clean(outcome.path)}: {clean(outcome.error or '')}\n")
    for outcome in report.warnings():
        sys.stderr.write(f"gatewayctl: {clean(outcome.path)}: {clean(outcome.warning or '')}\n")
    for note in report.notes:
        sys.stderr.write(f"gatewayctl: {clean(note)}\n")


def _summary(report: Report, seconds: float, *, dry_run: bool) -> str:
    counts = ", ".join(f"{report.count(what)} {what}" for what in What)
    return f"{'dry run: ' if dry_run else ''}{counts} in {seconds:.1f} s"


def _object(report: Report, plan: Plan, seconds: float) -> Mapping[str, Any]:
    return {
        "collection": plan.collection,
        "origin": plan.origin,
        **{what.value: report.count(what) for what in What},
        "uploaded": report.uploaded,
        "skipped": report.skipped,
        "seconds": round(seconds, 3),
        "dry_run": plan.dry_run,
        "failures": [asdict(outcome) for outcome in report.failures()],
        "warnings": [asdict(outcome) for outcome in report.warnings()],
        "notes": report.notes,
    }
