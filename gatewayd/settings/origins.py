"""Where the value of a setting comes from."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class OriginKind(StrEnum):
    """The layers of the configuration, lowest first."""

    # Built in, or the directory that the service manager made for the daemon.
    DEFAULT = "default"
    # A TOML file.
    FILE = "file"
    # An environment variable.
    ENVIRONMENT = "environment"
    # A file in the credentials directory, or one that an environment variable NAME_FILE points to.
    CREDENTIAL = "credential"
    # An option of the command that started the daemon.
    COMMAND_LINE = "command line"


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """Where a value comes from; `text` is for people, `file` and `line` are None outside files."""

    kind: OriginKind
    text: str
    file: Path | None = None
    line: int | None = None

    @property
    def explicit(self) -> bool:
        """Whether somebody wrote the value down, as opposed to a default."""
        return self.kind is not OriginKind.DEFAULT


BUILT_IN = SettingOrigin(OriginKind.DEFAULT, "default")


def from_service_manager(variable: str) -> SettingOrigin:
    """Return the origin of a default that follows a directory variable of the service manager."""
    return SettingOrigin(OriginKind.DEFAULT, f"default in {variable}")


def from_file(path: Path, line: int | None) -> SettingOrigin:
    """Return the origin of a value in a TOML file."""
    place = f"file {path}" if line is None else f"file {path} line {line}"
    return SettingOrigin(OriginKind.FILE, place, path, line)


def from_environment(variable: str) -> SettingOrigin:
    """Return the origin of a value in an environment variable."""
    return SettingOrigin(OriginKind.ENVIRONMENT, f"environment {variable}")


def from_credential(name: str) -> SettingOrigin:
    """Return the origin of a value in the credentials directory."""
    return SettingOrigin(OriginKind.CREDENTIAL, f"credential {name}")


def from_secret_file(variable: str, path: Path) -> SettingOrigin:
    """Return the origin of a value in the file that an environment variable names."""
    return SettingOrigin(OriginKind.CREDENTIAL, f"file {path} named by environment {variable}", path)


def from_token_file(path: Path) -> SettingOrigin:
    """Return the origin of a SCIM token in the file that is kept for it."""
    return SettingOrigin(OriginKind.CREDENTIAL, f"file {path}", path)


FROM_COMMAND_LINE = SettingOrigin(OriginKind.COMMAND_LINE, "command line")
