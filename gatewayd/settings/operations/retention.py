"""Settings of retention: after how long chats, files and rows are deleted."""

from pydantic_settings import BaseSettings

from gatewayd.settings import types
from gatewayd.settings.fields import RETENTION, reload, setting

MAX_DAYS = 36_500


class RetentionFields(BaseSettings):
    """The settings of retention, in days; 0 keeps for ever."""

    chat_max_age_days: types.Whole = setting(
        reload(RETENTION),
        0,
        "Days after the last change of a chat until it is deleted; pinned chats are kept, and 0 keeps all for"
        " ever.",
        ge=0,
        le=MAX_DAYS,
    )
    file_max_age_days: types.Whole = setting(
        reload(RETENTION),
        0,
        "Days after the last change of a file until it is deleted, unless it is in a collection, a model or a"
        " folder of chats; 0 keeps all for ever.",
        ge=0,
        le=MAX_DAYS,
    )
    usage_retention_days: types.Whole = setting(
        reload(RETENTION),
        0,
        "Days for which rows of the usage of models are kept; 0 keeps them for ever.",
        ge=0,
        le=MAX_DAYS,
    )
    audit_retention_days: types.Whole = setting(
        reload(RETENTION),
        0,
        "Days for which rows of the audit log are kept; 0 keeps them for ever.",
        ge=0,
        le=MAX_DAYS,
    )
