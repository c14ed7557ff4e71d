"""The services of monitoring."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

from gatewayd.http.observation import RequestObservation
from gatewayd.http.public.metrics import MetricsAccess
from gatewayd.metering.meter import CallMeter
from gatewayd.observe.access_log import AccessFormat, AccessLog, AccessOptions
from gatewayd.observe.call_notes import CallNotes
from gatewayd.observe.level_changes import LevelChanges
from gatewayd.observe.metrics.calls import CallMetrics
from gatewayd.observe.metrics.requests import RequestMetrics
from gatewayd.settings import Settings


@dataclass(frozen=True, slots=True)
class MonitoringServices:
    """What counts requests and calls of models, the access log, and levels of loggers."""

    requests: RequestMetrics
    calls: CallMetrics
    access_log: AccessLog
    levels: LevelChanges

    def observation(self) -> RequestObservation:
        """Return the observation of the public application."""
        return RequestObservation(self.requests, (self.access_log,))

    def configure(self, settings: Settings) -> None:
        """Use other settings; not_configured if the access log cannot be opened."""
        self.access_log.configure(access_options(settings))


def open_monitoring(settings: Settings, meter: CallMeter, stack: AsyncExitStack) -> MonitoringServices:
    """Return the services; from now on they observe the calls of the meter."""
    services = MonitoringServices(RequestMetrics(), CallMetrics(), AccessLog(), LevelChanges())
    meter.observers += [services.calls, CallNotes()]
    services.configure(settings)
    stack.callback(services.access_log.close)
    return services


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
