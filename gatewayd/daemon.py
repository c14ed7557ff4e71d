"""The daemon: opens everything in order on one exit stack, serves, reloads and drains.

Only this module and `assembly` know the settings, the services and the adapters together.
"""

import asyncio
import gc
import logging
import os
import resource
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from gatewayd import __version__
from gatewayd.assembly.batches import BATCHES_DUTY
from gatewayd.assembly.gateway import Gateway, assemble, reload
from gatewayd.assembly.sign_in import check_header_sockets
from gatewayd.assembly.sources import provider_configs
from gatewayd.assembly.upkeep.doctor import examine_stopped
from gatewayd.assembly.upkeep.garbage import prunings
from gatewayd.backup.schema_changes import keep_postgres
from gatewayd.builtin_model.weights import Progress, fetch_weights, find_weights
from gatewayd.doctor.findings import DoctorFinding
from gatewayd.errors import ErrorKind, GatewayError, full_message
from gatewayd.extras import PackageExtra, is_installed, missing_extra_error
from gatewayd.http.connections.arrivals import ArrivalRules
from gatewayd.http.server import HttpServer
from gatewayd.http.tls import TlsCertificate
from gatewayd.observe.logs import LogFormat, configure_logging
from gatewayd.observe.loop import LoopErrors
from gatewayd.observe.systemd import ActivatedSockets, Watchdog, activated_sockets, notifier_from_environment
from gatewayd.process_memory import MemoryKeeper, return_large_blocks
from gatewayd.settings import Settings, changed_settings, definitions
from gatewayd.storage.engine.location import parse
from gatewayd.storage.engine.lock import lock_folder, refuse_interrupted
from gatewayd.storage.engine.migrate import migrate
from gatewayd.upstream.sources.rule_summary import summarize

log = logging.getLogger(__name__)

FLUSH_SECONDS: Final = 5.0
MEMORY_CHECK_SECONDS: Final = 10.0
PRUNE_INTERVAL_SECONDS: Final = 3600.0
CERTIFICATE_INTERVAL_SECONDS: Final = 30.0
CHECKPOINT_SECONDS: Final = 900.0
"""Interval of the checkpoints of the audit log: an end that is cut off later than that is noticed."""

STOP_SECONDS: Final = 1.0
"""Time for clients to receive the end of an event stream or of an aborted answer."""

WRITE_SECONDS: Final = 5.0
"""Time for writes after the answers end.

The minimum for deferred writes to messages, because all aborted answers write at once; the maximum for
last-used times, because many other writers may wait for a locked database before them.
"""

NO_MODEL: Final = (
    "there is no model: name a provider (openai_api_base_urls, ollama_base_urls or [[providers]]), or install"
    " gatewayd[local] and run gatewayd --fetch-model for a small one"
)

DRAIN_POLL_SECONDS: Final = 0.02
"""Interval at which a stop checks for unfinished requests and tasks."""


@dataclass(frozen=True, slots=True)
class DaemonInvocation:
    """The invocation of the daemon.

    `load` reads the settings again, for a reload. `prepare` runs before anything is opened, `on_ready` when
    all sockets are served.
    """

    load: Callable[[], Settings]
    environ: Mapping[str, str]
    pid: int
    prepare: Callable[[Settings], Awaitable[None]] | None = None
    on_ready: Callable[[Gateway], Awaitable[None]] | None = None


class Daemon:
    """One run of the daemon, from opening to the last closed connection."""

    def __init__(self, settings: Settings, invocation: DaemonInvocation) -> None:
        self._settings = settings
        self._invocation = invocation
        self._notifier = notifier_from_environment(invocation.environ)
        self._certificate: TlsCertificate | None = None
        self._signal = asyncio.Event()
        self._stopping = False
        self._cancelled_by_stop: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT; raises GatewayError if the start fails.

        A signal during the start cancels the start; a later one lets running answers finish.
        """
        _allow_all_files()
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(LoopErrors())
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_stop)
        loop.add_signal_handler(signal.SIGHUP, self._signal.set)
        for warning in self._settings.warnings:
            log.warning("%s", warning)
        self._cancelled_by_stop = asyncio.current_task()
        try:
            async with AsyncExitStack() as stack:
                gateway, servers = await self._start(stack)
                self._cancelled_by_stop = None
                await self._until_stopped(gateway)
                await self._drain(gateway, servers)
        except asyncio.CancelledError:
            if not self._stopping:
                raise
            log.info("stopped before the start was complete")

    async def _start(self, stack: AsyncExitStack) -> tuple[Gateway, Sequence[HttpServer]]:
        if self._invocation.prepare is not None:
            await self._invocation.prepare(self._settings)
        self._notifier.status("opening the database")
        gateway = await assemble(self._settings, stack)
        if gateway.services.change_log.reader is not None:
            gateway.services.change_log.reader.on_contraction = self._on_stop
        servers = await self._serve(gateway, stack)
        gateway.services.health.ready = True
        self._start_chores(gateway)
        _freeze_start_objects()
        self._notifier.ready("serving")
        log.info("ready", extra={"version": __version__})
        if not gateway.services.sources.count:
            log.warning(NO_MODEL)
        if self._invocation.on_ready is not None:
            await self._invocation.on_ready(gateway)
        return gateway, servers

    async def _serve(self, gateway: Gateway, stack: AsyncExitStack) -> Sequence[HttpServer]:
        public = HttpServer(gateway.public)
        control = HttpServer(gateway.control)
        for server in (public, control):
            await server.open()
            stack.push_async_callback(server.close)
        given = activated_sockets(self._invocation.environ, self._invocation.pid)
        addresses = await self._listen(public, control, given)
        gateway.url = f"{'http' if self._certificate is None else 'https'}://{addresses[0]}"
        for address in addresses:
            log.info("listening", extra={"address": address})
        return (public, control)

    async def _listen(
        self, public: HttpServer, control: HttpServer, given: ActivatedSockets
    ) -> Sequence[str]:
        settings = self._settings
        check_header_sockets(settings, given.http)
        if settings.tls_certificate is not None and settings.tls_key is not None:
            self._certificate = TlsCertificate(settings.tls_certificate, settings.tls_key)
        rules = self._arrival_rules()
        addresses = await public.listen_sockets(given.http, rules)
        if settings.host and not given.http:
            addresses.append(await public.listen_tcp(settings.host, settings.port, rules))
        if settings.http_socket is not None:
            group = settings.http_socket_group
            addresses.append(await public.listen_unix(settings.http_socket, group, "http_socket_group"))
        if given.control is not None:
            addresses += await control.listen_sockets([given.control])
        else:
            addresses.append(await control.listen_unix(settings.control_socket, settings.control_group))
        return addresses

    def _arrival_rules(self) -> ArrivalRules | None:
        """Return what connections by TCP bring before their first request, None for plain HTTP."""
        tls = None if self._certificate is None else self._certificate.context
        proxies = self._settings.trusted_proxies if self._settings.proxy_protocol else None
        return None if tls is None and proxies is None else ArrivalRules(tls, proxies)

    def _start_chores(self, gateway: Gateway) -> None:
        tasks = gateway.services.tasks
        accounts = gateway.services.accounts
        tasks.spawn("last-used times", _every(FLUSH_SECONDS, accounts.authenticator.flush))
        # Nodes of a cluster do these once, not each of them.
        duties = gateway.services.cluster.duties
        pruning = partial(_every, PRUNE_INTERVAL_SECONDS, _in_turn(prunings(gateway.services)))
        tasks.spawn("pruning", duties.run("pruning", pruning))
        tasks.spawn(
            "free memory", _every(MEMORY_CHECK_SECONDS, MemoryKeeper(gateway.services.database.forget).look)
        )
        tasks.spawn("batches", duties.run(BATCHES_DUTY, gateway.services.batches.worker.work))
        tasks.spawn("streams", gateway.services.resumption.streams.run())
        if self._certificate is not None:
            tasks.spawn("certificate", _every(CERTIFICATE_INTERVAL_SECONDS, self._certificate.look))
        tasks.spawn("documents", gateway.services.documents.start())
        tasks.spawn("audit checkpoints", _every(CHECKPOINT_SECONDS, gateway.services.audit.keeper.mark))
        tasks.spawn("stall monitor", gateway.services.health.loop.run())
        interval = self._notifier.watchdog_interval
        if interval is not None:
            tasks.spawn("watchdog", Watchdog(self._notifier, gateway.services.database.ping, interval).run())

    async def _until_stopped(self, gateway: Gateway) -> None:
        while True:
            await self._signal.wait()
            self._signal.clear()
            if self._stopping:
                return
            await self._apply_unless_stopped(gateway)

    def _on_stop(self) -> None:
        self._stopping = True
        self._signal.set()
        if self._cancelled_by_stop is not None:
            self._cancelled_by_stop.cancel()
            self._cancelled_by_stop = None

    async def _apply_unless_stopped(self, gateway: Gateway) -> None:
        """Reload; a stop cancels the reload, because plugins may load slowly."""
        task = self._cancelled_by_stop = asyncio.current_task()
        try:
            await self._apply(gateway)
        except asyncio.CancelledError:
            if task is None or not self._stopping or task.uncancel():
                raise
            log.info("stopped before the reload was complete")
        finally:
            self._cancelled_by_stop = None

    async def _apply(self, gateway: Gateway) -> None:
        """Validate the new configuration and apply its reloadable settings, or change nothing."""
        self._notifier.reloading()
        # Also if the configuration is refused: logrotate(8) has renamed the file.
        gateway.services.monitoring.access_log.reopen()
        try:
            fresh = self._invocation.load()
            names = changed_settings(self._settings, fresh)
            if self._certificate is not None:
                self._certificate.reload()
            await reload(gateway, fresh)
        except GatewayError as error:
            log.error("reload refused, the old configuration stays: %s", error.full_message)
            self._notifier.ready(f"reload refused: {error.message}")
            return
        table = definitions()
        waiting = [name for name in names if not table[name].reloadable]
        for warning in fresh.warnings:
            if warning not in self._settings.warnings:
                log.warning("%s", warning)
        self._settings = fresh
        start_logging(fresh, self._invocation.environ)
        gateway.services.monitoring.levels.apply()
        for name in waiting:
            log.warning("changed setting needs a restart", extra={"setting": name})
        log.info("reloaded", extra={"changed": ", ".join(names) or "nothing"})
        self._notifier.ready("serving")

    async def _drain(self, gateway: Gateway, servers: Sequence[HttpServer]) -> None:
        self._notifier.stopping()
        gateway.services.health.ready = False
        self._notifier.status("finishing the answers that run")
        for server in servers:
            await server.stop_listening()
        gateway.services.documents.files.end_waits()
        deadline = time.monotonic() + self._settings.drain_timeout
        is_over = await _finished(gateway, servers, deadline, listeners=False)
        cut = 0 if is_over else await gateway.services.tasks.end_started()
        # Event streams are closed after the answers, so that subscribers receive their last events.
        await gateway.services.live.deferred.close(max(WRITE_SECONDS, deadline - time.monotonic()))
        await gateway.close_streams()
        await _finished(gateway, servers, time.monotonic() + STOP_SECONDS, listeners=True)
        is_over = await _finished(gateway, servers, deadline, listeners=False)
        left = 0 if is_over else sum(server.unanswered for server in servers)
        if left or cut:
            gateway.streaming.streams.stop()
            await _finished(gateway, servers, time.monotonic() + STOP_SECONDS, listeners=False)
            log.warning("stopping with answers unfinished", extra={"in_flight": left, "tasks": cut})
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                await gateway.services.accounts.authenticator.flush()
        except (GatewayError, TimeoutError) as error:
            log.warning(
                "last-used times are lost: %s", full_message(error) or "the database did not answer in time"
            )
        try:
            await gateway.services.audit.close(WRITE_SECONDS)
        except GatewayError as error:
            log.error("the end of the audit log is lost: %s", error.full_message)
        log.info("stopped")


def start_logging(settings: Settings, environ: Mapping[str, str]) -> None:
    """Send the log to standard error with level and format of the settings; call again after a reload."""
    log_format = LogFormat(settings.log_format or "text")
    configure_logging(settings.global_log_level, log_format, sys.stderr, environ, settings.debug_loggers)


def check(settings: Settings) -> Sequence[str]:
    """Check values that the settings do not validate, without opening anything; raises not_configured.

    Returns lines about the rules in force for each provider of the settings.
    """
    parse(settings.database_location(), settings.database_pool_size)
    return [line for config in provider_configs(settings) for line in summarize(config)]


async def migrate_database(settings: Settings) -> None:
    """Bring the schema up to date, for `gatewayd --migrate`."""
    location = parse(settings.database_location(), settings.database_pool_size)
    with lock_folder(settings.data_dir):
        refuse_interrupted(settings.data_dir)
        await keep_postgres(location, settings.data_dir, log.info)
        done = await migrate(location, shared=settings.cluster)
    log.info("migrated", extra={"applied": ", ".join(done) or "nothing was pending"})


async def examine(settings: Settings) -> Sequence[DoctorFinding]:
    """Return the findings about a gateway that does not run, for `gatewayd --doctor`.

    Root becomes the owner of the state directory first, so that nothing there belongs to root afterwards.
    """
    _become_owner(settings.data_dir)
    return await examine_stopped(settings)


async def fetch_model(settings: Settings, progress: Progress) -> None:
    """Fetch the built-in model for the next start, for `gatewayd --fetch-model`.

    Root becomes the owner of the state directory first, because that user runs the daemon.
    """
    if settings.enable_builtin_model == "false":
        raise GatewayError(
            ErrorKind.NOT_CONFIGURED,
            "cannot use the built-in model: the setting enable_builtin_model is false",
        )
    if not is_installed(PackageExtra.LOCAL):
        raise missing_extra_error("cannot run the built-in model", PackageExtra.LOCAL)
    weights = find_weights(settings.data_dir, settings.builtin_model_path)
    if weights is None:
        _become_owner(settings.data_dir)
        weights = await fetch_weights(settings.data_dir, progress)
    progress(f"the built-in model is in {weights}; a running daemon loads it at its next start")


def _become_owner(folder: Path) -> None:
    if os.geteuid() == 0 and folder.exists():
        owner = folder.stat()
        os.setgroups([])
        os.setgid(owner.st_gid)
        os.setuid(owner.st_uid)


async def _finished(
    gateway: Gateway, servers: Sequence[HttpServer], deadline: float, *, listeners: bool
) -> bool:
    """Wait until no request and no task of a user is left; return False at the deadline.

    Requests and tasks may start each other. With `listeners`, wait for event streams only.
    """
    while True:
        waited_for = sum(server.look(listeners=listeners) for server in servers)
        if not waited_for and (listeners or not gateway.services.tasks.started()):
            return True
        if time.monotonic() >= deadline:
            return False
        await asyncio.sleep(DRAIN_POLL_SECONDS)


async def _every(seconds: float, work: Callable[[], Awaitable[object]]) -> None:
    """Repeat a chore for ever; only the first of several failures in a row is logged."""
    is_failing = False
    while True:
        await asyncio.sleep(seconds)
        try:
            await work()
            is_failing = False
        except GatewayError as error:
            if not is_failing:
                log.warning("chore failed, it is repeated: %s", error.full_message)
            is_failing = True


def _in_turn(works: Sequence[Callable[[], Awaitable[object]]]) -> Callable[[], Awaitable[None]]:
    """Return work that does all of these; the first failure is raised after all were tried."""

    async def run() -> None:
        failure: GatewayError | None = None
        for work in works:
            try:
                await work()
            except GatewayError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    return run


def _allow_all_files() -> None:
    """Raise the limit of open files to the hard limit: each client and each provider needs one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _freeze_start_objects() -> None:
    """Exclude the objects of the start from garbage collection, whose pauses delay answers."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)
    return_large_blocks()
