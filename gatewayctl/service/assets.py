"""Files of the service that come with the program, and their destinations."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CONFIGURATION: Final = Path("etc/gatewayd/gatewayd.toml")
COMMANDS: Final = Path("usr/local/bin")
UNITS: Final = Path("usr/local/lib/systemd/system")
USERS: Final = Path("usr/local/lib/sysusers.d/gatewayd.conf")
DIRECTORIES: Final = Path("usr/local/lib/tmpfiles.d/gatewayd.conf")
PAGES: Final = Path("usr/local/share/man")
PROGRAMS: Final = ("gatewayd", "gatewayctl")

UNIT_PROGRAMS: Final = "ExecStart=/usr/bin/"
"""The folder of the programs in the shipped units."""


@dataclass(frozen=True, slots=True)
class Asset:
    """A file with its content, and its path below the root."""

    target: Path
    content: bytes


class AssetError(Exception):
    """The files of the program are missing; the message completes "cannot install the service: "."""


def shipped() -> Path:
    """Return the folder with `systemd` and `config`: that of pip, or else the source tree."""
    installed = Path(sys.prefix, "share", "gatewayd")
    for folder in (installed, Path(__file__).parents[2]):
        if (folder / "systemd" / "gatewayd.service").is_file():
            return folder
    raise AssetError(f"its files are not in {installed}")


def own_assets(folder: Path, programs: Path) -> Sequence[Asset]:
    """Return the files that only the program owns; `programs` is the folder of the programs in the units."""
    return [
        *_units(folder, programs),
        Asset(USERS, (folder / "systemd" / "sysusers.d" / "gatewayd.conf").read_bytes()),
        Asset(DIRECTORIES, (folder / "systemd" / "tmpfiles.d" / "gatewayd.conf").read_bytes()),
        *_pages(folder),
    ]


def configuration(folder: Path) -> Asset:
    """Return the sample configuration: every setting with its default, commented out."""
    return Asset(CONFIGURATION, (folder / "config" / "gatewayd.toml").read_bytes())


def _units(folder: Path, programs: Path) -> Iterator[Asset]:
    for kind in ("service", "socket", "timer"):
        for path in sorted((folder / "systemd").glob(f"*.{kind}")):
            text = path.read_text().replace(UNIT_PROGRAMS, f"ExecStart={programs}/")
            yield Asset(UNITS / path.name, text.encode())


def _pages(folder: Path) -> Iterator[Asset]:
    """Yield the manual pages, which pip installs beside the folder, by their sections."""
    found = [*folder.glob("man/gateway*.[1-9]"), *folder.parent.glob("man/man[1-9]/gateway*.[1-9]")]
    for path in sorted(found):
        yield Asset(PAGES / f"man{path.suffix[1:]}" / path.name, path.read_bytes())
