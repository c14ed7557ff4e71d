"""Commands that repair a gateway which the service manager runs; a shell runs each as it is, as root."""

import shlex
import sys
from pathlib import Path
from typing import Final

DROP_INS: Final = "/etc/systemd/system/gatewayd.service.d"
DEBIAN_HOME: Final = Path("/usr/lib/gatewayd")
"""The environment of the Debian package."""

START: Final = "systemctl start gatewayd"
RESTART: Final = "systemctl daemon-reload && systemctl restart gatewayd"
INSTALL: Final = "gatewayctl service install --yes"
REINSTALL: Final = "apt-get install --reinstall --yes gatewayd"
RESTORE: Final = (
    "systemctl stop gatewayd.socket gatewayd-control.socket gatewayd"
    f" && gatewayctl backup restore latest --replace --yes && {START}"
)
"""Restores the newest backup; the state that was there is moved to a directory of its own."""

LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "::1")


def drop_in(name: str, directive: str) -> str:
    """Return the command that adds a directive to the unit, and restarts the daemon with it.

    The shell expands a command in `directive`. The name of the file comes last, after those of other
    drop-ins, whatever they say.
    """
    path = f"{DROP_INS}/zz-{name}.conf"
    text = f"[Service]\\n{directive}\\n"
    return f'printf "{text}" | install -D -m 600 /dev/stdin {path} && {RESTART}'


def upgrade() -> str:
    """Return the command that installs the newest version in place of this one."""
    if Path(sys.prefix) == DEBIAN_HOME:
        return "apt-get install --only-upgrade --yes gatewayd"
    return f"{shlex.quote(sys.executable)} -m pip install --upgrade gatewayd"


def fetch_model(*, is_off: bool, lacks_engine: bool) -> str:
    """Return the command that fetches the built-in model, and has the daemon load it.

    `is_off` is a setting that forbids the model, `lacks_engine` an extra that is not installed.
    """
    engine = f"{shlex.quote(sys.executable)} -m pip install 'gatewayd[local]' && " if lacks_engine else ""
    if not is_off:
        return f"{engine}gatewayd --fetch-model && {RESTART}"
    switch = "ENABLE_BUILTIN_MODEL=auto"
    return f"{engine}{switch} gatewayd --fetch-model && {drop_in('builtin-model', f'Environment={switch}')}"


def start_postgres(host: str) -> str:
    """Return the command that starts the PostgreSQL of a host, or of the directory of a socket."""
    if host in LOCAL_HOSTS or host.startswith("/"):
        return "systemctl start postgresql"
    return f"systemctl --host={shlex.quote(host)} start postgresql"
