"""The services of monitoring."""

from dataclasses import dataclass

from gatewayd.http.observation import RequestObservation
from gatewayd.http.public.metrics import MetricsAccess
from gatewayd.observe.metrics.calls import CallMetrics
from gatewayd.observe.metrics.requests import RequestMetrics
from gatewayd.settings import Settings


@dataclass(frozen=True, slots=True)
class MonitoringServices:
    """What counts requests and calls of models."""

    requests: RequestMetrics
    calls: CallMetrics

    def observation(self) -> RequestObservation:
        """Return the observation of the public application."""
        return RequestObservation(self.requests)


def make_monitoring(settings: Settings) -> MonitoringServices:
    """Return the services; they need no others."""
    return MonitoringServices(RequestMetrics(), CallMetrics())


def metrics_access(settings: Settings) -> MetricsAccess:
    """Return who may read the metrics over TCP."""
    return MetricsAccess(settings.metrics_token.get_secret_value(), tuple(settings.metrics_networks))
