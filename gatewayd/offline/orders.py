"""The orders of `gatewayctl`: what each does, and what its result looks like."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final

from pydantic import BaseModel, ConfigDict, Field

from gatewayd import ids
from gatewayd.accounts.signing_file import read_secrets, rotate_secret
from gatewayd.backup.creation import create_backup, os_errors
from gatewayd.backup.inventory import FoundBackup, find_backup, list_backups, prune_backups, verify_backup
from gatewayd.backup.manifest import BackupManifest
from gatewayd.backup.places import SIGNING_FILE, GatewayPlace
from gatewayd.backup.restoration import RestoreWishes, restore_backup
from gatewayd.backup.retention import RetentionRule
from gatewayd.backup.schema_changes import SchemaCopy, SchemaWork, copy_database
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.offline.imports.order import GivenImport, import_open_webui, open_given
from gatewayd.offline.place import OfflineGateway
from gatewayd.plugin_host.settings import derive_secret

Progress = Callable[[str], None]
Result = Mapping[str, Any] | Sequence[Mapping[str, Any]]

MAX_OVERLAP_SECONDS: Final = 366 * 86400
IMPORT: Final = "import.open-webui"
READING: Final = frozenset({"backup.restore", "backup.verify"})


class OfflineOrder(BaseModel):
    """One order; most have only some of the fields.

    `config` is a configuration file, `directory` that of the backups, `name` one of them, `to` the address or
    label to go to, `seconds` an overlap, `keep` how many backups of each period are kept. `database` and
    `uploads` are those of the program to import from.
    """

    model_config = ConfigDict(extra="forbid")

    verb: str
    config: Path | None = None
    directory: Path | None = None
    name: str = ""
    to: str = ""
    passphrase: str = ""
    seconds: int = Field(0, ge=0, le=MAX_OVERLAP_SECONDS)
    replace: bool = False
    dry_run: bool = False
    keep: dict[str, int] = Field(default_factory=dict)
    database: str = ""
    uploads: Path | None = None

    @contextlib.contextmanager
    def opened(self, place: GatewayPlace) -> Iterator["Given"]:
        """Open what the order names and reads, as the caller's user."""
        if self.verb == IMPORT:
            with open_given(self.database, self.uploads) as given:
                yield given
            return
        if self.verb not in READING:
            yield None
            return
        with os_errors("read the backup"):
            path = find_backup(place.backup_dir, self.name)
            with path.open("rb") as file:
                yield GivenBackup(path, file)


class GivenBackup:
    """An open backup."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self.file = file


Given = GivenBackup | GivenImport | None


def _create(gateway: OfflineGateway, order: OfflineOrder, _: Given, progress: Progress) -> Result:
    passphrase = order.passphrase or gateway.settings.backup_passphrase.get_secret_value()
    made = create_backup(gateway.place, passphrase, progress)
    return _shown(FoundBackup(made.path, made.size, made.manifest))


def _list(gateway: OfflineGateway, order: OfflineOrder, _: Given, progress: Progress) -> Result:
    return [_shown(each) for each in list_backups(gateway.place.backup_dir)]


def _verify(gateway: OfflineGateway, order: OfflineOrder, given: Given, progress: Progress) -> Result:
    given = _needed(given)
    scratch = gateway.place.data_dir if gateway.place.data_dir.is_dir() else given.path.parent
    progress("restoring into a scratch directory")
    manifest = verify_backup(given.file, str(given.path), scratch)
    return _shown(FoundBackup(given.path, given.path.stat().st_size, manifest))


def _prune(gateway: OfflineGateway, order: OfflineOrder, _: Given, progress: Progress) -> Result:
    rule = RetentionRule(**order.keep)
    decided = prune_backups(gateway.place.backup_dir, rule, dry_run=order.dry_run)
    return [
        {
            "name": each.path.name,
            "made_at": _moment(each.made_at),
            "outcome": "kept" if is_kept else "removed",
            "dry_run": order.dry_run,
        }
        for each, is_kept in decided
    ]


def _restore(gateway: OfflineGateway, order: OfflineOrder, given: Given, progress: Progress) -> Result:
    given = _needed(given)
    wishes = RestoreWishes(order.replace, order.passphrase)
    done = restore_backup(gateway.place, given.file, str(given.path), wishes, progress)
    return {
        "name": given.path.name,
        "version": done.manifest.version,
        "made_at": done.manifest.created_at,
        "rows": done.manifest.rows,
        "files": done.manifest.files,
        "pending": list(done.pending),
        "former": None if done.former is None else str(done.former),
        "beside": str(done.beside),
        "secrets": list(done.secrets),
    }


def _status(gateway: OfflineGateway, order: OfflineOrder, _: Given, progress: Progress) -> Result:
    state = asyncio.run(SchemaWork(gateway.place, progress).status())
    return {
        "database": state.address,
        "applied": list(state.applied),
        "pending": list(state.pending),
        "problem": state.problem,
        "copies": [_shown_copy(each) for each in state.copies],
    }


def _plan(gateway: OfflineGateway, order: OfflineOrder, _: Given, progress: Progress) -> Result:
    found = asyncio.run(SchemaWork(gateway.place, progress).plan())
    return [{"migration": name, "sql": list(sql)} for name, sql in found]


def _migrate(gateway: OfflineGateway, order: OfflineOrder, _: Given, progress: Progress) -> Result:
    return [{"migration": name} for name in asyncio.run(SchemaWork(gateway.place, progress).migrate())]


def _rollback(gateway: OfflineGateway, order: OfflineOrder, _: Given, progress: Progress) -> Result:
    return _shown_copy(asyncio.run(SchemaWork(gateway.place, progress).rollback(order.to)))


def _copy(gateway: OfflineGateway, order: OfflineOrder, _: Given, progress: Progress) -> Result:
    sums = asyncio.run(copy_database(gateway.place, order.to, progress))
    return [{"table": name, "rows": each.rows, "sum": each.digest} for name, each in sorted(sums.items())]


def _rotate(gateway: OfflineGateway, order: OfflineOrder, _: Given, progress: Progress) -> Result:
    settings = gateway.settings
    if settings.webui_secret_key.get_secret_value():
        origin = settings.origins["webui_secret_key"].text
        raise GatewayError(
            ErrorKind.CONFLICT,
            f"cannot rotate the signing secret: it is configured ({origin}); make it "
            "webui_secret_key_previous there, give webui_secret_key a new value and restart the daemon",
        )
    path = settings.data_dir / SIGNING_FILE
    if not path.exists():
        raise GatewayError(ErrorKind.NOT_FOUND, f"cannot rotate the signing secret: there is no {path}")
    until = ids.now() + order.seconds
    with os_errors("write the signing secret"):
        # A secret that became known is not valid again after the clock is set back.
        ends_at = until if order.seconds else 0
        found = rotate_secret(path, derive_secret(read_secrets(path).current), ends_at)
    return {"until": _moment(datetime.fromtimestamp(until, UTC)), "former": len(found.former)}


def _import(gateway: OfflineGateway, order: OfflineOrder, given: Given, progress: Progress) -> Result:
    if not isinstance(given, GivenImport):
        raise RuntimeError("the order opens what it imports")
    return import_open_webui(gateway, given, dry_run=order.dry_run, progress=progress)


Order = Callable[[OfflineGateway, OfflineOrder, Given, Progress], Result]

ORDERS: Final[Mapping[str, Order]] = {
    "backup.create": _create,
    "backup.list": _list,
    "backup.verify": _verify,
    "backup.prune": _prune,
    "backup.restore": _restore,
    "database.status": _status,
    "database.plan": _plan,
    "database.migrate": _migrate,
    "database.rollback": _rollback,
    "database.copy": _copy,
    "secret.rotate": _rotate,
    IMPORT: _import,
}


def _needed(given: Given) -> GivenBackup:
    if not isinstance(given, GivenBackup):
        raise RuntimeError("the order is one of READING")
    return given


def _shown(backup: FoundBackup) -> Mapping[str, Any]:
    manifest = backup.manifest
    shown: dict[str, Any] = {
        "name": backup.path.name,
        "path": str(backup.path.absolute()),
        "size": backup.size,
        "made_at": _moment(backup.made_at),
        "problem": backup.problem,
    }
    return shown if manifest is None else {**shown, **_facts(manifest)}


def _facts(manifest: BackupManifest) -> Mapping[str, Any]:
    return {
        "version": manifest.version,
        "engine": manifest.engine,
        "schema": manifest.migrations[-1] if manifest.migrations else "",
        "tables": len(manifest.tables),
        "rows": manifest.rows,
        "files": manifest.files,
        "has_secrets": manifest.has_secrets,
        "left_out": list(manifest.left_out),
        "missing": list(manifest.missing),
    }


def _shown_copy(copy: SchemaCopy) -> Mapping[str, Any]:
    made_at = _moment(datetime.fromtimestamp(copy.made_at, UTC))
    return {"before": copy.label, "path": str(copy.path), "size": copy.size, "made_at": made_at}


def _moment(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
