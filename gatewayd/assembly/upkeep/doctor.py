"""The checks of `gatewayctl doctor`: over a running gateway, or over the state of a stopped one."""

import asyncio
import resource
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Final

from gatewayd import ids
from gatewayd.assembly.accounts import SIGNING_FILE
from gatewayd.assembly.file_store import make_file_stores
from gatewayd.assembly.services import GatewayServices
from gatewayd.assembly.upkeep.audit import CHECKPOINT_FILE
from gatewayd.assembly.upkeep.garbage import make_garbage
from gatewayd.audit.log_keeper import AuditLogKeeper, AuditRetention, CheckpointFile
from gatewayd.audit.records import ChainVerdict
from gatewayd.audit.trail import AuditTrail
from gatewayd.doctor import contents, machine, service_commands, state_folder
from gatewayd.doctor.findings import DoctorFinding, collected, failed, ordered
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.extras import PackageExtra, is_installed
from gatewayd.http.control.doctor import ControlDoctorRoutes
from gatewayd.http.routes import Route
from gatewayd.ingest.interfaces import BlobStore
from gatewayd.ingest.records import file_id_of
from gatewayd.pipeline.functions.pipe_source import FUNCTION_SOURCE
from gatewayd.settings import OriginKind, SettingOrigin, Settings, definitions
from gatewayd.storage.engine.checks import DatabaseCheck
from gatewayd.storage.engine.damage import DamageError
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import parse
from gatewayd.storage.engine.migrate import check, read_status
from gatewayd.storage.files import TortoiseFiles
from gatewayd.storage.upkeep.audit import TortoiseAuditLog
from gatewayd.storage.upkeep.contents import TortoiseContents

DAMAGE_SECONDS: Final = 20.0
"""Time for the check of the database; a larger one is checked by gatewayctl database check."""

CREDENTIAL_FILE: Final = Path("/etc/credstore/gatewayd.webui-secret-key")
"""Where the service manager reads the secret that signs sessions, unless a unit says otherwise."""

READ_AT_START: Final = frozenset({"secret-short", "limit-small"})
"""Findings about settings that the daemon reads at its start only."""

MAX_LOST_SHOWN: Final = 10
FILE_BATCH: Final = 500

Findings = Sequence[DoctorFinding]


def control_doctor_rows(services: GatewayServices) -> Sequence[Route]:
    """Return the row of the doctor of the control socket."""

    async def examine() -> Findings:
        return await examine_running(services)

    return ControlDoctorRoutes(examine).routes()


async def examine_running(services: GatewayServices) -> Findings:
    """Return the findings about a running gateway; nothing is changed."""
    settings = services.settings
    found = list(await asyncio.to_thread(_local, settings))
    problem = await services.health.database_problem()
    if problem is not None:
        damage = services.database.damage.sentence
        away = _unreachable(settings, problem.full_message, is_running=True)
        found += contents.check_damage([damage]) if damage else [away]
        return ordered(map(_restarted, found))
    descriptors = machine.check_descriptors(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    checks = _stored_checks(settings, services.database, services.audit.keeper)
    checks += [lambda: _garbage(services), lambda: _index(services), lambda: _sources(services)]
    plugins = {
        (each.family.value, each.id): each.problem.sentence
        for each in services.extensions.registry.list()
        if each.is_active and each.problem is not None
    }
    found += [*descriptors, *contents.check_plugins(plugins), *await _awaited(checks)]
    return ordered(map(_restarted, found))


async def examine_stopped(settings: Settings) -> Findings:
    """Return the findings about the state of a gateway that does not run; nothing is changed."""
    found = list(await asyncio.to_thread(_local, settings))
    location = parse(settings.database_location(), settings.database_pool_size)
    if location.path is not None and not location.path.is_file():
        # Opening it would create it.
        return ordered([*found, _unreachable(settings, f"there is no database {location.path} yet")])
    try:
        async with Database.open(location) as database:
            status = await read_status(database)
            check(status)
            file = CheckpointFile(settings.data_dir / CHECKPOINT_FILE)
            store = TortoiseAuditLog(database)
            keeper = AuditLogKeeper(store, AuditTrail(store), file, AuditRetention(0))
            found += await _awaited(_stored_checks(settings, database, keeper))
    except GatewayError as error:
        schema = list(contents.check_schema(error.code or "", error.message))
        found += schema or _database_findings(settings, error)
    return ordered(found)


def _local(settings: Settings) -> Iterator[DoctorFinding]:
    """Return the findings about files and the machine, which need no database."""
    folder = settings.data_dir
    secrets = _secret_files(settings)
    yield from collected(
        lambda: state_folder.check_folder(folder),
        lambda: state_folder.check_secrets(secrets),
        lambda: _signing_secret(settings),
        lambda: state_folder.check_disk(folder),
        machine.check_unit,
    )
    for warning in settings.warnings:
        if not any(str(path) in warning for path in secrets):
            yield DoctorFinding("config-warning", warning, "gatewayd -n")


def _secret_files(settings: Settings) -> Sequence[Path]:
    """Return the files that hold secrets, outside of the state directory."""
    table, origins = definitions(), settings.origins
    given = {origins[name].file for name in table if table[name].secret}
    return sorted({settings.scim_token_path(), *(path for path in given if path is not None)})


def _signing_secret(settings: Settings) -> Iterable[DoctorFinding]:
    given = settings.webui_secret_key.get_secret_value()
    path = settings.data_dir / SIGNING_FILE
    if given:
        origin = settings.origins["webui_secret_key"]
        return state_folder.check_signing_secret(given, origin.text, _new_secret_command(origin))
    if path.is_file():
        command = state_folder.file_command(path)
        return state_folder.check_signing_secret(path.read_text().strip(), str(path), command)
    return []


def _new_secret_command(origin: SettingOrigin) -> str:
    """Return the command that replaces the secret where it is configured."""
    if origin.kind is OriginKind.FILE and origin.file is not None and origin.line is not None:
        return state_folder.line_command(origin.file, origin.line, "webui_secret_key")
    if origin.kind is OriginKind.CREDENTIAL:
        # What the service manager passes is a copy of its file.
        return state_folder.file_command(origin.file or CREDENTIAL_FILE)
    directive = f"Environment=WEBUI_SECRET_KEY=$({state_folder.RANDOM_TEXT})"
    return service_commands.drop_in("webui-secret-key", directive)


def _stored_checks(
    settings: Settings, database: Database, keeper: AuditLogKeeper
) -> list[Callable[[], Awaitable[Findings]]]:
    """Return the checks that need an open database only."""
    figures = TortoiseContents()
    origin = settings.origins["rag_file_max_size"]
    place = None
    if origin.kind is OriginKind.FILE and origin.file is not None and origin.line is not None:
        place = (origin.file, origin.line)

    async def damage() -> Findings:
        try:
            return list(contents.check_damage(await DatabaseCheck(database).run(DAMAGE_SECONDS)))
        except GatewayError as error:
            if error.kind is ErrorKind.TIMEOUT:
                return []
            raise

    async def stored() -> Findings:
        limit = contents.StoredLimit(
            "rag_file_max_size",
            int(settings.rag_file_max_size),
            await figures.largest_file(),
            "a stored file",
            place,
        )
        return [
            *contents.check_limits([limit]),
            *machine.check_clock(ids.now(), await figures.newest()),
        ]

    async def lost() -> Findings:
        blobs = make_file_stores(settings).documents
        return list(contents.check_lost(await _lost(TortoiseFiles().blob_keys(), blobs)))

    async def audit() -> Findings:
        return _audit_findings(await keeper.verify({}), settings.data_dir / CHECKPOINT_FILE)

    return [damage, stored, lost, audit]


def _audit_findings(verdict: ChainVerdict, checkpoints: Path) -> Findings:
    broken = [each.message for each in verdict.problems if not each.by_checkpoint]
    differing = [each.message for each in verdict.problems if each.by_checkpoint]
    return list(contents.check_audit(broken, differing, checkpoints))


async def _lost(keys: AsyncIterator[str], blobs: BlobStore) -> Sequence[str]:
    """Return the first ids of files without bytes."""
    lost: list[str] = []
    batch: list[str] = []

    async def look() -> None:
        lost.extend(file_id_of(key) for key in await blobs.missing(batch))
        batch.clear()

    async for key in keys:
        batch.append(key)
        if len(batch) >= FILE_BATCH:
            await look()
        if len(lost) >= MAX_LOST_SHOWN:
            break
    await look()
    return list(islice(lost, MAX_LOST_SHOWN))


async def _garbage(services: GatewayServices) -> Findings:
    counts: Mapping[str, int] = {
        each.kind: each.count for each in await make_garbage(services).find(rows=False)
    }
    return list(contents.check_garbage(contents.GarbageFacts(counts)))


async def _index(services: GatewayServices) -> Findings:
    spaces = services.documents.stores.spaces
    active = await spaces.find_active()
    return [] if active is None else list(contents.check_index(*await spaces.counts(active.name)))


async def _sources(services: GatewayServices) -> Findings:
    await services.catalog.list_all()
    # Without a function that gives models its source is none.
    states = [
        each
        for each in services.catalog.source_states()
        if each["name"] != FUNCTION_SOURCE or each["models"] or each["problem"]
    ]
    return list(contents.check_sources(states, _fetch_command(services.settings)))


async def _awaited(checks: Iterable[Callable[[], Awaitable[Findings]]]) -> Findings:
    """Make checks one after the other; one that cannot be made is a finding."""
    found: list[DoctorFinding] = []
    for each in checks:
        try:
            found += await each()
        except GatewayError as error:
            found.append(failed(error.full_message))
    return found


def _database_findings(settings: Settings, error: GatewayError) -> Findings:
    """Return the findings of a database that cannot be opened: it is damaged, or does not answer."""
    if isinstance(error, DamageError) or isinstance(error.__cause__, DamageError):
        return list(contents.check_damage([error.message]))
    return [_unreachable(settings, error.message)]


def _unreachable(settings: Settings, reason: str, *, is_running: bool = False) -> DoctorFinding:
    location = parse(settings.database_location(), settings.database_pool_size)
    if location.is_sqlite:
        command = service_commands.RESTART if is_running else service_commands.START
    else:
        command = service_commands.start_postgres(str(location.credentials["host"]))
    return DoctorFinding("database-unreachable", f"the database cannot be used: {reason}", command)


def _fetch_command(settings: Settings) -> str:
    """Return the command that makes the built-in model ready, and has the daemon load it."""
    return service_commands.fetch_model(
        is_off=settings.enable_builtin_model == "false", lacks_engine=not is_installed(PackageExtra.LOCAL)
    )


def _restarted(finding: DoctorFinding) -> DoctorFinding:
    """Return a finding whose command ends in a restart, if the running daemon needs it for a new value."""
    if finding.code not in READ_AT_START or service_commands.RESTART in finding.command:
        return finding
    return replace(finding, command=f"{finding.command} && {service_commands.RESTART}")
