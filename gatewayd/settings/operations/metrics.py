"""Settings of monitoring: who may read the metrics, the access log and the audit log."""

from typing import Annotated, Literal

from pydantic import SecretStr
from pydantic_settings import BaseSettings

from gatewayd.settings import types
from gatewayd.settings.fields import LOGGING, MONITORING, reload, restart, setting


class MetricsFields(BaseSettings):
    """The settings of monitoring."""

    metrics_token: types.SigningSecret = setting(
        reload(MONITORING),
        SecretStr(""),
        "Token that GET /metrics wants as Authorization: Bearer; without it and metrics_networks the path is"
        " not served.",
    )
    metrics_networks: types.Networks = setting(
        reload(MONITORING),
        (),
        "Networks that may read GET /metrics, with metrics_token if both are set.",
    )
    enable_otel: types.Switch = setting(
        restart(MONITORING),
        False,
        "Whether to send traces and metrics of OpenTelemetry to a collector, by OTLP over HTTP.",
    )
    otel_exporter_otlp_endpoint: types.UrlOrEmpty = setting(
        restart(MONITORING),
        "",
        "Address of the collector, to which /v1/traces and /v1/metrics are added; http://localhost:4318 when"
        " empty.",
    )
    otel_service_name: types.Line = setting(
        restart(MONITORING), "gatewayd", "Name of this service in traces.", min_length=1, max_length=128
    )
    enable_otel_traces: types.Switch = setting(
        restart(MONITORING), True, "Whether traces are sent if enable_otel is true."
    )
    enable_otel_metrics: types.Switch = setting(
        restart(MONITORING), True, "Whether metrics are sent if enable_otel is true."
    )
    access_log: Annotated[Literal["off", "text", "json"], types.ExpectedValue('"off", "text" or "json"')] = (
        setting(
            reload(LOGGING),
            "off",
            "Format of the access log, which has one line for each request; off writes none.",
        )
    )
    access_log_path: types.OptionalFile = setting(
        reload(LOGGING),
        None,
        "File of the access log, which a reload opens anew; standard error when empty.",
    )
    access_log_user: Annotated[Literal["id", "email"], types.ExpectedValue('"id" or "email"')] = setting(
        reload(LOGGING), "id", "Whether lines of the access log name a user by their id or e-mail address."
    )
    audit_forward_url: Annotated[SecretStr, types.ExpectedValue("an address")] = setting(
        restart(LOGGING),
        SecretStr(""),
        "Receiver of the rows of the audit log: unix:///dev/log, udp://HOST:514, tcp://HOST:601 or"
        " tls://HOST:6514 for syslog, or the http:// or https:// address of a webhook; none when empty.",
    )
    audit_forward_secret: Annotated[SecretStr, types.ExpectedValue("text")] = setting(
        restart(LOGGING), SecretStr(""), "Secret that signs the requests to a webhook of audit_forward_url."
    )
