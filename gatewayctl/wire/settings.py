"""Runtime settings on the wire."""

from typing import Any

from gatewayctl.wire.base import Reply, Request, Written


class Setting(Reply):
    """A setting that can change while the daemon runs.

    `origin` tells where `value` comes from: `stored`, or what the configuration says (a default, a file, the
    environment). `configured` is the value that a reset returns to.
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
    """The settings that were named, after the write."""

    settings: list[Setting]


class SettingChange(Request):
    """Values by name; a text is read as the setting's own type."""

    values: dict[str, Any]


class SettingReset(Request):
    """Names of settings to return to their configured value."""

    names: list[str]
