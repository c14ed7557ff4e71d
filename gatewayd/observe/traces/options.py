"""Options of OpenTelemetry, known without its SDK."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TelemetryOptions:
    """Where to send what; `endpoint` is the address of a collector, "" for that of the environment."""

    service_name: str
    version: str
    endpoint: str = ""
    has_traces: bool = True
    has_metrics: bool = True
