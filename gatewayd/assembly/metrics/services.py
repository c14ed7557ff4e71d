"""The services of monitoring."""

import asyncio
import importlib
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

from gatewayd import __version__
from gatewayd.deadlines import TimeLimit
from gatewayd.extras import PackageExtra, is_installed, missing_extra_error
from gatewayd.http.observation import RequestObservation, RequestWatcher
from gatewayd.http.public.metrics import MetricsAccess
from gatewayd.metering.meter import CallMeter
from gatewayd.observe.access_log import AccessFormat, AccessLog, AccessOptions
from gatewayd.observe.call_notes import CallNotes
from gatewayd.observe.level_changes import LevelChanges
from gatewayd.observe.metrics.calls import CallMetrics
from gatewayd.observe.metrics.requests import RequestMetrics
from gatewayd.observe.traces.options import TelemetryOptions
from gatewayd.settings import Settings

TELEMETRY_MODULE: Final = "gatewayd.observe.traces.telemetry"
"""Imported at its first use: its SDK is an extra, and takes long to load."""

CLOSE_SECONDS: Final = 3.0
"""Maximum time at the end for the last traces and metrics."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MonitoringServices:
    """What counts requests and calls of models, the access log, and levels of loggers."""

    requests: RequestMetrics
    calls: CallMetrics
    access_log: AccessLog
    levels: LevelChanges
    watchers: tuple[RequestWatcher, ...]

    def observation(self) -> RequestObservation:
        """Return the observation of the public application."""
        return RequestObservation(self.requests, (self.access_log, *self.watchers))

    def configure(self, settings: Settings) -> None:
        """Use other settings; not_configured if the access log cannot be opened."""
        self.access_log.configure(access_options(settings))


def open_monitoring(settings: Settings, meter: CallMeter, stack: AsyncExitStack) -> MonitoringServices:
    """Return the services; from now on they observe the calls of the meter.

    Raises not_configured if OpenTelemetry is not installed, or the access log cannot be opened.
    """
    watchers = open_telemetry(settings, meter, stack) if settings.enable_otel else ()
    services = MonitoringServices(RequestMetrics(), CallMetrics(), AccessLog(), LevelChanges(), watchers)
    meter.watch(services.calls)
    meter.watch(CallNotes())
    services.configure(settings)
    stack.callback(services.access_log.close)
    return services


def open_telemetry(settings: Settings, meter: CallMeter, stack: AsyncExitStack) -> tuple[RequestWatcher, ...]:
    """Return the watcher of requests for traces; calls of the meter are traced, too."""
    if not is_installed(PackageExtra.OTEL):
        raise missing_extra_error("cannot use enable_otel", PackageExtra.OTEL, param="enable_otel")
    options = TelemetryOptions(
        settings.otel_service_name,
        __version__,
        settings.otel_exporter_otlp_endpoint,
        has_traces=settings.enable_otel_traces,
        has_metrics=settings.enable_otel_metrics,
    )
    telemetry = importlib.import_module(TELEMETRY_MODULE).OpenTelemetry(options)
    meter.watch(telemetry.calls)
    stack.push_async_callback(close_telemetry, telemetry.close)
    return (telemetry.requests,)


async def close_telemetry(close: Callable[[], None]) -> None:
    """Send what waits, for a short time: a collector may be away."""
    try:
        async with TimeLimit(CLOSE_SECONDS):
            await asyncio.to_thread(close)
    except TimeoutError:
        log.warning("the last traces are lost: the collector did not answer in %g s", CLOSE_SECONDS)


def access_options(settings: Settings) -> AccessOptions:
    """Return the options of the access log."""
    return AccessOptions(
        AccessFormat(settings.access_log),
        settings.access_log_path,
        has_emails=settings.access_log_user == "email",
    )


def metrics_access(settings: Settings) -> MetricsAccess:
    """Return who may read the metrics over TCP."""
    return MetricsAccess(settings.metrics_token.get_secret_value(), tuple(settings.metrics_networks))
