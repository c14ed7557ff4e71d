"""Settings of monitoring: who may read the metrics."""

from pydantic import SecretStr
from pydantic_settings import BaseSettings

from gatewayd.settings import types
from gatewayd.settings.fields import MONITORING, reload, setting


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
