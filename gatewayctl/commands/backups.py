"""`gatewayctl backup`: backups of the whole state, made while the daemon works."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter

from gatewayctl.command import DryRun, Noun, Session, Yes
from gatewayctl.offline.orders import ConfigFile, run_order
from gatewayctl.offline.results import Backup, PrunedBackup, RestoredBackup
from gatewayctl.prompts import confirm, read_secret
from gatewayctl.render import View

noun = Noun("Backups of the whole state. They work on the files of the gateway, as root or as its user.")

BACKUPS: View[Backup] = View(
    name=lambda row: row.name,
    columns={
        "BACKUP": lambda row: row.name,
        "MADE": lambda row: row.made_at,
        "BYTES": lambda row: row.size,
        "VERSION": lambda row: row.version,
        "SCHEMA": lambda row: row.schema_version,
        "ROWS": lambda row: row.rows,
        "FILES": lambda row: row.files,
        "SECRETS": lambda row: "encrypted" if row.has_secrets else "left out",
        "PROBLEM": lambda row: row.problem,
    },
)
PRUNED: View[PrunedBackup] = View(
    name=lambda row: row.name,
    columns={
        "BACKUP": lambda row: row.name,
        "MADE": lambda row: row.made_at,
        "OUTCOME": lambda row: f"dry run: {row.outcome}" if row.dry_run else row.outcome,
    },
)
RESTORED: View[RestoredBackup] = View(
    name=lambda row: row.name,
    columns={
        "BACKUP": lambda row: row.name,
        "VERSION": lambda row: row.version,
        "ROWS": lambda row: row.rows,
        "FILES": lambda row: row.files,
        "BEFORE": lambda row: row.former,
        "BESIDE": lambda row: row.beside,
    },
)

Directory = Annotated[
    Path | None,
    typer.Option("--directory", metavar="DIR", help="Directory of backups; backup_dir if not given."),
]
PassphraseFile = Annotated[
    str | None,
    typer.Option(
        "--passphrase-file",
        metavar="FILE",
        help="File with the passphrase that encrypts the secrets, - for standard input.",
    ),
]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name or path of the backup, or latest for the newest one.")
]


@noun.verb(
    "create",
    "gatewayctl backup create",
    "gatewayctl backup create --passphrase-file /etc/gatewayd/passphrase",
)
def create(
    session: Session,
    passphrase_file: PassphraseFile = None,
    directory: Directory = None,
    config: ConfigFile = None,
) -> None:
    """Make a backup: database, files, settings and plugins, in one file. The daemon may run.

    It has every change that was acknowledged before. Secrets are left out unless there is a passphrase, given
    here or as the setting backup_passphrase: then they are encrypted with it.
    """
    made = _one(session, "backup.create", Backup, config, directory, passphrase=_passphrase(passphrase_file))
    session.show(made, BACKUPS)
    for each in (*made.left_out, *made.missing):
        session.note(f"Not in the backup: {each}")


@noun.verb("list", "gatewayctl backup list", "gatewayctl backup list -o name")
def list_(session: Session, directory: Directory = None, config: ConfigFile = None) -> None:
    """List the backups, newest first; one with a problem is not complete, or damaged."""
    found = run_order("backup.list", session.note, config, directory=_text(directory))
    session.show_all(TypeAdapter(list[Backup]).validate_python(found), BACKUPS)


@noun.verb("verify", "gatewayctl backup verify latest", "gatewayctl backup verify /mnt/backups/NAME.tar")
def verify(
    session: Session, name: Name = "latest", directory: Directory = None, config: ConfigFile = None
) -> None:
    """Restore a backup into a scratch directory and compare every hash, row and file. The daemon may run."""
    session.show(_one(session, "backup.verify", Backup, config, directory, name=name), BACKUPS)


@noun.verb(
    "restore",
    "gatewayctl backup restore latest --yes",
    "gatewayctl backup restore /mnt/NAME.tar --replace --passphrase-file /etc/gatewayd/passphrase --yes",
)
def restore(
    session: Session,
    name: Name,
    replace: Annotated[
        bool, typer.Option("--replace", help="Move the state that is there to a directory of its own.")
    ] = False,
    passphrase_file: PassphraseFile = None,
    yes: Yes = False,
    directory: Directory = None,
    config: ConfigFile = None,
) -> None:
    """Restore a backup, all of it or nothing, while the daemon is stopped.

    Refused if the gateway has state, unless --replace is given. With a passphrase the secrets are restored
    too; without, the signing key that is there stays. A backup of one kind of database can be restored into
    the other.
    """
    confirm(f"Restore the backup {name}?", yes=yes)
    secret = _passphrase(passphrase_file)
    done = _one(
        session, "backup.restore", RestoredBackup, config, directory,
        name=name, replace=replace, passphrase=secret,
    )  # fmt: skip
    session.show(done, RESTORED)
    if done.former:
        session.note(f"The state from before is in {done.former}; remove it when it is not needed.")
    session.note(f"Settings, plugins and credentials of the backup are in {done.beside}.")
    if done.pending:
        session.note("The schema is of an earlier version: run gatewayctl database migrate.")


@noun.verb("prune", "gatewayctl backup prune --keep-daily 7 --keep-weekly 5 --keep-monthly 12 --dry-run")
def prune(
    session: Session,
    keep_last: Annotated[int, typer.Option("--keep-last", min=0, metavar="N", help="Keep the last N.")] = 0,
    keep_daily: Annotated[
        int, typer.Option("--keep-daily", min=0, metavar="N", help="Keep the newest of each of N days.")
    ] = 0,
    keep_weekly: Annotated[
        int, typer.Option("--keep-weekly", min=0, metavar="N", help="Keep the newest of each of N weeks.")
    ] = 0,
    keep_monthly: Annotated[
        int, typer.Option("--keep-monthly", min=0, metavar="N", help="Keep the newest of each of N months.")
    ] = 0,
    keep_yearly: Annotated[
        int, typer.Option("--keep-yearly", min=0, metavar="N", help="Keep the newest of each of N years.")
    ] = 0,
    dry_run: DryRun = False,
    directory: Directory = None,
    config: ConfigFile = None,
) -> None:
    """Remove the backups that no rule keeps; days, weeks, months and years without a backup do not count.

    At least one rule is needed. A file that cannot be read is kept.
    """
    keep = {
        "last": keep_last,
        "daily": keep_daily,
        "weekly": keep_weekly,
        "monthly": keep_monthly,
        "yearly": keep_yearly,
    }
    found = run_order(
        "backup.prune", session.note, config, directory=_text(directory), keep=keep, dry_run=dry_run
    )
    session.show_all(TypeAdapter(list[PrunedBackup]).validate_python(found), PRUNED)


def _one(
    session: Session, verb: str, kind: type[Any], config: Path | None, directory: Path | None, **values: Any
) -> Any:
    """Run an order and return its result as a row."""
    return kind.model_validate(
        run_order(verb, progress(session), config, directory=_text(directory), **values)
    )


def progress(session: Session) -> Any:
    """Return what tells people at a terminal what is being done."""
    return session.note if sys.stderr.isatty() else lambda words: None


def _passphrase(source: str | None) -> str:
    return "" if source is None else read_secret(source, "--passphrase-file")


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path.absolute())
