"""The settings of the daemon: the only reader of configuration files and of the environment.

Imported by `daemon` and `command` only; imports only `errors`. Services get plain
values in their constructors.
"""

from gatewayd.settings.definitions import Definition, changed, definitions
from gatewayd.settings.environment import process_environment
from gatewayd.settings.files import DEFAULT_FILE
from gatewayd.settings.loader import load
from gatewayd.settings.model import ConfiguredRuntime, Settings
from gatewayd.settings.origins import Origin, OriginKind
from gatewayd.settings.problems import ConfigurationError, Problem
from gatewayd.settings.providers import Provider

__all__ = [
    "DEFAULT_FILE",
    "ConfigurationError",
    "ConfiguredRuntime",
    "Definition",
    "Origin",
    "OriginKind",
    "Problem",
    "Provider",
    "Settings",
    "changed",
    "definitions",
    "load",
    "process_environment",
]
