"""Settings from the process environment and from the files that it names."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from gatewayd.settings.definitions import PREFIX, SettingDescription, definitions
from gatewayd.settings.layers import (
    OriginKind,
    SettingEntry,
    SettingOrigin,
    from_credential,
    from_environment,
    from_secret_file,
    from_service_manager,
)
from gatewayd.settings.result import SettingsReading, did_you_mean

CREDENTIALS: Final = "CREDENTIALS_DIRECTORY"
PLUGIN_SECRET_VARIABLE: Final = "WEBUI_SECRET_KEY"  # noqa: S105 - a name
PLUGIN_VARIABLES: Final = (
    "HOME",
    "TZ",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "NO_PROXY",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
)
"""Environment variables that plugin processes receive, in upper and lower case."""
# Names that people invent for Open WebUI, and what they mean.
_MISTAKEN: Final = {
    "OIDC_CONFIG": "OPENID_PROVIDER_URL",
    "OPENID_CLIENT_ID": "OAUTH_CLIENT_ID",
    "OPENID_CLIENT_SECRET": "OAUTH_CLIENT_SECRET",
    "WEBUI_ENABLE_SSO": "ENABLE_OAUTH",
    "WEBUI_OIDC_CLIENT_ID": "OAUTH_CLIENT_ID",
}
# A variable of the test suite, which its daemons inherit.
_NOT_SETTINGS: Final = frozenset({"GATEWAYD_REQUIRE_REAL"})


def process_environment() -> Mapping[str, str]:
    """Return a copy of this process's environment."""
    return dict(os.environ)  # noqa: TID251 - this is the environment's home


def plugin_environment() -> Mapping[str, str]:
    """Return the variables that plugin processes receive, without those that hold a password."""
    names = [*PLUGIN_VARIABLES, *(name.lower() for name in PLUGIN_VARIABLES)]
    environment = process_environment()
    return {name: environment[name] for name in names if "@" not in environment.get(name, "@")}


@contextmanager
def exposed_secret(value: str) -> Iterator[None]:
    """Set WEBUI_SECRET_KEY to `value` within the block: plugins derive keys of their own from it.

    Variables of settings that are secrets are removed until the end of the block.
    """
    secrets = {name for each in definitions().values() if each.secret for name in each.variables}
    before = {name: os.environ[name] for name in secrets if name in os.environ}  # noqa: TID251 - its home
    for name in before:
        del os.environ[name]  # noqa: TID251 - its home
    os.environ[PLUGIN_SECRET_VARIABLE] = value  # noqa: TID251 - its home
    try:
        yield
    finally:
        del os.environ[PLUGIN_SECRET_VARIABLE]  # noqa: TID251 - its home
        os.environ.update(before)  # noqa: TID251 - its home


def read_directories(environ: Mapping[str, str], reading: SettingsReading) -> None:
    """Add the defaults that depend on the directories of the service manager (systemd.exec(5))."""
    entries = {}
    for name, variable, file in (
        ("control_socket", "RUNTIME_DIRECTORY", "control.sock"),
        ("data_dir", "STATE_DIRECTORY", ""),
    ):
        first = environ.get(variable, "").split(":")[0]
        if first:
            entries[name] = SettingEntry(str(Path(first, file)), name, from_service_manager(variable))
    reading.add(entries)


def read_variables(environ: Mapping[str, str], reading: SettingsReading) -> None:
    """Add the layer of environment variables; variables of other programs are ignored."""
    entries = {}
    for each in definitions().values():
        for variable in each.variables:
            if variable in environ:
                entries[each.name] = SettingEntry(environ[variable], variable, from_environment(variable))
                break
    _refuse_unknown(environ, reading)
    reading.warnings += [
        f"{variable} is not used, did you mean {meant}?"
        for variable, meant in _MISTAKEN.items()
        if variable in environ
    ]
    reading.add(entries)


def read_secret_files(environ: Mapping[str, str], reading: SettingsReading) -> None:
    """Add the layer of files that `NAME_FILE` variables name."""
    entries = {}
    for each in definitions().values():
        for variable in each.file_variables:
            if environ.get(variable):
                path = Path(environ[variable])
                entry = reading.value_file(each.name, path, from_secret_file(variable, path), variable)
                entries.update({each.name: entry} if entry else {})
                break
    reading.add(entries)


def read_credentials(environ: Mapping[str, str], reading: SettingsReading) -> None:
    """Add the layer of the credentials directory; files with other names are ignored."""
    directory = environ.get(CREDENTIALS)
    if not directory:
        return
    try:
        present = {path.name for path in Path(directory).iterdir()}
    except OSError as error:
        reading.refuse(
            SettingOrigin(OriginKind.CREDENTIAL, directory),
            CREDENTIALS,
            f"cannot read the credentials directory {directory}: {error.strerror}",
        )
        return
    entries = {}
    for each in definitions().values():
        for name in _present(each, present):
            path = Path(directory, name)
            entry = reading.value_file(each.name, path, from_credential(name), name)
            entries.update({each.name: entry} if entry else {})
            break
    reading.add(entries)


def _present(each: SettingDescription, names: set[str]) -> Iterator[str]:
    return (name for name in each.credentials if name in names)


def _refuse_unknown(environ: Mapping[str, str], reading: SettingsReading) -> None:
    known = {name for each in definitions().values() for name in (*each.variables, *each.file_variables)}
    for variable in sorted(environ):
        if variable.startswith(PREFIX) and variable not in known | _NOT_SETTINGS:
            hint = did_you_mean(variable, (name for name in known if name.startswith(PREFIX)))
            sentence = f"cannot use environment {variable}: there is no such setting{hint}"
            reading.refuse(from_environment(variable), variable, sentence)
