"""Checks of the machine: the clock, the limit of open files, and the unit of the service manager."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from gatewayd.doctor import service_commands
from gatewayd.doctor.findings import DoctorFinding

MAX_BEHIND_SECONDS: Final = 60
MIN_DESCRIPTORS: Final = 4096
DESCRIPTORS: Final = 65536
"""Limit of open files of the shipped unit."""

UNIT: Final = "gatewayd.service"
UNIT_FOLDERS: Final = (
    Path("/etc/systemd/system"),
    Path("/run/systemd/system"),
    Path("/usr/local/lib/systemd/system"),
    Path("/usr/lib/systemd/system"),
    Path("/lib/systemd/system"),
)
"""Where the service manager looks for a unit, in this order."""

INSTALLED: Final = Path("/usr/local/lib/systemd/system")
PACKAGED: Final = (Path("/usr/lib/systemd/system"), Path("/lib/systemd/system"))
"""Where `gatewayctl service install` puts the unit, and where the Debian package has it."""

HARDENING: Final[Mapping[str, tuple[str, ...]]] = {
    "NoNewPrivileges": ("yes", "true", "on", "1"),
    "ProtectSystem": ("strict",),
    "ProtectHome": ("yes", "true", "on", "1"),
    "PrivateTmp": ("yes", "true", "on", "1"),
    "PrivateDevices": ("yes", "true", "on", "1"),
    "RestrictNamespaces": ("yes", "true", "on", "1"),
    "RestrictSUIDSGID": ("yes", "true", "on", "1"),
    "MemoryDenyWriteExecute": ("yes", "true", "on", "1"),
    "UMask": ("0077", "077"),
    "CapabilityBoundingSet": ("",),
}
"""Directives of the shipped unit with their values, without which an intruder in the daemon could do more."""


def check_clock(now: int, newest: int) -> Iterator[DoctorFinding]:
    """Compare the clock with the newest stored time (epoch seconds), from which it must not be far behind."""
    if newest - now > MAX_BEHIND_SECONDS:
        yield DoctorFinding(
            "clock-behind",
            f"the clock is {newest - now} s behind the newest stored row: sessions and keys expire wrongly",
            "timedatectl set-ntp true",
        )


def check_descriptors(limit: int) -> Iterator[DoctorFinding]:
    """Check the limit of open files of the daemon."""
    if limit < MIN_DESCRIPTORS:
        yield DoctorFinding(
            "descriptors-low",
            f"the daemon may open {limit} files and connections, less than {MIN_DESCRIPTORS}",
            service_commands.drop_in("descriptors", f"LimitNOFILE={DESCRIPTORS}"),
        )


def check_unit(folders: Sequence[Path] = UNIT_FOLDERS) -> Iterator[DoctorFinding]:
    """Compare the unit and its drop-ins with the directives that confine the daemon; none without a unit."""
    unit = next((folder / UNIT for folder in folders if (folder / UNIT).is_file()), None)
    if unit is None:
        return
    drops = [path for folder in folders[::-1] for path in sorted((folder / f"{UNIT}.d").glob("*.conf"))]
    values: dict[str, str] = {}
    loosest: dict[str, Path] = {}
    for path in (unit, *drops):
        for name, value in _directives(path):
            values[name], loosest[name] = value, path
    open_names = [name for name, good in HARDENING.items() if values.get(name, "-").lower() not in good]
    if open_names:
        drop = next((loosest[name] for name in open_names if loosest.get(name, unit) != unit), None)
        yield DoctorFinding(
            "unit-open",
            f"the unit {unit} lets the daemon do more than it needs: {', '.join(open_names)}",
            _unit_command(unit, folders) if drop is None else _without(drop),
        )


def _unit_command(unit: Path, folders: Sequence[Path]) -> str:
    """Return the command that brings back the shipped unit, which `unit` may hide."""
    if unit.parent in PACKAGED:
        return f"{service_commands.REINSTALL} && {service_commands.RESTART}"
    if unit.parent == INSTALLED:
        return f"{service_commands.INSTALL} && {service_commands.RESTART}"
    is_copy = sum((folder / UNIT).is_file() for folder in folders) > 1
    return _without(unit) if is_copy else f"{service_commands.INSTALL} && {_without(unit)}"


def _without(path: Path) -> str:
    return f"rm {shlex.quote(str(path))} && {service_commands.RESTART}"


def _directives(path: Path) -> Iterator[tuple[str, str]]:
    for line in path.read_text(errors="replace").splitlines():
        name, separator, value = line.strip().partition("=")
        if separator and not name.startswith(("#", ";")):
            yield name.strip(), value.strip()
