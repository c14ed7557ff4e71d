"""The settings of the daemon: the only reader of configuration files and of the environment.

Imported by `daemon` and `command` only; imports only `errors`. Services get plain
values in their constructors.
"""

from gatewayd.settings.definitions import SettingDescription, changed_settings, definitions
from gatewayd.settings.environment import process_environment
from gatewayd.settings.files import DEFAULT_FILE
from gatewayd.settings.loader import load
from gatewayd.settings.model import ConfiguredRuntime, Settings
from gatewayd.settings.origins import OriginKind, SettingOrigin
from gatewayd.settings.problems import ConfigurationError, ConfigurationProblem
from gatewayd.settings.providers import Provider

__all__ = [
    "DEFAULT_FILE",
    "ConfigurationError",
    "ConfiguredRuntime",
    "SettingDescription",
    "SettingOrigin",
    "OriginKind",
    "ConfigurationProblem",
    "Provider",
    "Settings",
    "changed_settings",
    "definitions",
    "load",
    "process_environment",
]
