"""Settings of the audit log."""

from pydantic_settings import BaseSettings

from gatewayd.settings import types
from gatewayd.settings.fields import LOGGING, reload, setting


class AuditFields(BaseSettings):
    """The settings of the audit log."""

    audit_retention_days: types.Whole = setting(
        reload(LOGGING),
        0,
        "Days for which rows of the audit log are kept; 0 keeps them for ever.",
        ge=0,
        le=36_500,
    )
