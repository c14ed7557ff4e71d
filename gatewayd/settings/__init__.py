"""Settings of the daemon: the only reader of configuration files and of the environment.

Imported by `command`, `daemon`, `assembly` and `quickstart`. Services get plain values in their constructors.
"""

from gatewayd.settings.definitions import SettingDescription, changed_settings, definitions
from gatewayd.settings.environment import process_environment
from gatewayd.settings.files import DEFAULT_FILE
from gatewayd.settings.layers import OriginKind, SettingOrigin
from gatewayd.settings.loader import load
from gatewayd.settings.providers import Provider
from gatewayd.settings.result import ConfigurationError, ConfigurationProblem
from gatewayd.settings.settings_model import ConfiguredRuntime, Settings

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
