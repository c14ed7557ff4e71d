"""Runtime settings on the wire."""

from typing import Any

from gatewayctl.wire.base import Reply, Request, Written


class Setting(Reply):
    """A setting that can change while the daemon runs.

    `origin` is the origin of `value`: `stored`, or that of the configuration (a default, a file, the
    environment). `configured` is the value after a reset.
    """

    name: str
    value: Any
    origin: str
    configured: Any = None
    summary: str = ""


class SettingList(Reply):
    """Settings by name."""

    settings: list[Setting]


class SettingsWritten(Written):
    """The named settings after the write."""

    settings: list[Setting]


class SettingChange(Request):
    """Values by name; a text is converted to the type of the setting."""

    values: dict[str, Any]


class SettingReset(Request):
    """Names of settings to return to their configured value."""

    names: list[str]
