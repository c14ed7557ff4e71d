"""Installation and removal of the service in idempotent steps."""

import contextlib
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gatewayctl.failures import CommandError
from gatewayctl.service import assets
from gatewayctl.service.assets import Asset
from gatewayctl.wire.service import ServiceStep

BOOTED: Final = Path("/run/systemd/system")
"""Exists if systemd is the service manager (sd_booted(3))."""

HIDDEN: Final = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")  # noqa: S108 - no file is made there
"""Directories that the units hide from their programs."""

MAX_COMMAND_SECONDS: Final = 120.0
ENABLED: Final = Path("etc/systemd/system/*.wants")
SOCKETS: Final = ("gatewayd.socket", "gatewayd-control.socket")
_PLAIN: Final = re.compile(r"[A-Za-z0-9/._+-]+")

Run = Callable[[Sequence[str]], str]
"""Runs a command and returns its last line of output, "" if it succeeded."""


def run_command(command: Sequence[str]) -> str:
    """Run a program of the service manager; see `Run`."""
    try:
        done = subprocess.run(  # noqa: S603 - the commands are written below
            command, capture_output=True, text=True, check=False, timeout=MAX_COMMAND_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    said = (done.stderr or done.stdout).strip().splitlines()
    return "" if done.returncode == 0 else (said[-1] if said else f"exit status {done.returncode}")


@dataclass(frozen=True, slots=True)
class Place:
    """Destination: `prefix`, for the programs in the folder `programs` of an interpreter.

    With `is_image` it is not the running system, and commands of the service manager are skipped.
    """

    prefix: Path
    programs: Path
    interpreter: Path
    is_image: bool

    def check(self) -> None:
        """Raise if the units could not start the programs from their folder."""
        if not _PLAIN.fullmatch(str(self.programs)):
            raise _refused(f"the path {str(self.programs)!r} has characters that a unit cannot hold")
        for path in (self.programs, self.programs.resolve(), self.interpreter):
            if not self.is_image and any(path.is_relative_to(folder) for folder in HIDDEN):
                raise _refused(
                    f"the service sees nothing of {path}; install into a directory such as /opt/gatewayd"
                )


class ServiceInstallation:
    """The steps; iteration runs each step, and with `dry_run` none is run."""

    def __init__(self, place: Place, run: Run = run_command, *, dry_run: bool = False) -> None:
        self._place = place
        self._run = run
        self._dry_run = dry_run

    def install(self) -> Iterator[ServiceStep]:
        """Yield each step after it has run; raises CommandError."""
        self._place.check()
        folder = _shipped()
        for asset in assets.own_assets(folder, self._place.programs):
            yield self._put(asset)
        yield self._put_configuration(assets.configuration(folder))
        for name in assets.PROGRAMS:
            yield self._link(name)
        yield self._command("systemd-sysusers", self._at(assets.USERS))
        yield self._command("systemd-tmpfiles", "--create", self._at(assets.DIRECTORIES))
        yield self._systemctl("daemon-reload")

    def uninstall(self) -> Iterator[ServiceStep]:
        """Yield each step after it has run; configuration, state and users stay."""
        if _is_there(Path(self._at(assets.UNITS / "gatewayd.service"))):
            timers = sorted({link.name for link in self._enabled_timers()})
            yield self._systemctl("disable", "--now", *SOCKETS, "gatewayd.service", *timers)
            yield self._systemctl(
                "stop", "gatewayd-ingest@*.timer", "gatewayd-ingest@*.service", "gatewayd-backup.service"
            )
        for asset in assets.own_assets(_shipped(), self._place.programs):
            yield self._remove(asset.target, is_own=True)
        for name in assets.PROGRAMS:
            yield self._unlink(name)
        # Links that the service manager has not removed, as on an image.
        for link in self._enabled_timers():
            yield self._remove(link, is_own=True)
        yield self._systemctl("daemon-reload")
        for kept in ("etc/gatewayd", "var/lib/gatewayd"):
            yield self._step(self._at(Path(kept)), "kept", "remove it by hand if it is not needed")

    def _enabled_timers(self) -> Sequence[Path]:
        """Return the links of enabled timers of the gateway, below the prefix."""
        links = self._place.prefix.glob(str(ENABLED / "gatewayd-*.timer"))
        return sorted(link.relative_to(self._place.prefix) for link in links)

    def _put(self, asset: Asset) -> ServiceStep:
        path = Path(self._at(asset.target))
        with _failures(path):
            before = path.read_bytes() if path.is_file() else None
        if before == asset.content:
            return self._step(str(path), "unchanged")
        self._write(path, asset.content, 0o644)
        return self._step(str(path), "created" if before is None else "changed")

    def _put_configuration(self, asset: Asset) -> ServiceStep:
        path = Path(self._at(asset.target))
        if not os.path.lexists(path):
            # The directories of tmpfiles.d(5) give it to the daemon's group.
            self._write(path, asset.content, 0o640)
            return self._step(str(path), "created", "every setting is at its default, commented out")
        # Only the daemon and root may read it; other users, who can only do a dry run, see it as changed.
        with contextlib.suppress(PermissionError):
            if path.is_file() and path.read_bytes() == asset.content:
                return self._step(str(path), "unchanged")
        return self._step(
            str(path), "kept", "it was changed; its owner and mode are set to root:gatewayd 0640"
        )

    def _link(self, name: str) -> ServiceStep:
        path, program = Path(self._at(assets.COMMANDS / name)), self._place.programs / name
        if self._is_itself(name):
            return self._step(str(path), "unchanged", "it is the program itself")
        if self._is_linked(path, program):
            return self._step(str(path), "unchanged")
        exists = _is_there(path)
        if exists and not path.is_symlink():
            raise CommandError("conflict", f"cannot link {path}: another program is there", hint="")
        if not self._dry_run:
            with _failures(path):
                _make_folder(path.parent)
                path.unlink(missing_ok=True)
                path.symlink_to(program)
        return self._step(str(path), "changed" if exists else "created", f"a link to {program}")

    def _unlink(self, name: str) -> ServiceStep:
        target = assets.COMMANDS / name
        if self._is_itself(name):
            return self._step(self._at(target), "kept", "it is the program itself")
        return self._remove(
            target, is_own=self._is_linked(Path(self._at(target)), self._place.programs / name)
        )

    def _is_itself(self, name: str) -> bool:
        """Return whether the command is the program, on this system or on that of an image."""
        program = self._place.programs / name
        return program in {Path(self._at(assets.COMMANDS / name)), Path("/", assets.COMMANDS, name)}

    @staticmethod
    def _is_linked(path: Path, program: Path) -> bool:
        with _failures(path):
            return path.is_symlink() and path.readlink() == program

    def _remove(self, target: Path, *, is_own: bool) -> ServiceStep:
        path = Path(self._at(target))
        if not _is_there(path):
            return self._step(str(path), "unchanged", "it is not there")
        if not is_own:
            return self._step(str(path), "kept", "it belongs to another installation")
        if not self._dry_run:
            with _failures(path):
                path.unlink()
        return self._step(str(path), "removed")

    def _systemctl(self, *arguments: str) -> ServiceStep:
        if not self._place.is_image and not BOOTED.is_dir():
            return self._step(f"systemctl {' '.join(arguments)}", "skipped", "systemd does not run here")
        return self._command("systemctl", *arguments)

    def _command(self, *command: str) -> ServiceStep:
        text = " ".join(command)
        if self._place.is_image:
            return self._step(text, "skipped", "this is not the running system")
        problem = "" if self._dry_run else self._run(command)
        if problem:
            raise CommandError("internal", f"cannot run {text}: {problem}", hint="")
        return self._step(text, "run")

    def _write(self, path: Path, content: bytes, mode: int) -> None:
        if self._dry_run:
            return
        part = path.with_name(f".{path.name}.part")
        with _failures(path):
            _make_folder(path.parent)
            part.unlink(missing_ok=True)
            part.write_bytes(content)
            part.chmod(mode)
            part.replace(path)

    def _at(self, target: Path) -> str:
        return str(self._place.prefix / target)

    def _step(self, target: str, outcome: str, detail: str = "") -> ServiceStep:
        return ServiceStep(target=target, outcome=outcome, detail=detail, dry_run=self._dry_run)


def _is_there(path: Path) -> bool:
    """Return whether a path exists, dangling links included; raises if that cannot be determined."""
    with _failures(path):
        try:
            path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True


def _make_folder(folder: Path) -> None:
    """Create a folder with its parents, readable for all users despite the umask of this process."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for one in missing:
        one.chmod(0o755)


def _shipped() -> Path:
    try:
        return assets.shipped()
    except assets.AssetError as error:
        raise _refused(str(error)) from error


@contextlib.contextmanager
def _failures(path: Path) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise CommandError(
            "forbidden", f"cannot write {path}: permission denied", hint="run it as root"
        ) from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CommandError("internal", f"cannot write {path}: {reason}", hint="") from error


def _refused(reason: str) -> CommandError:
    return CommandError("conflict", f"cannot install the service: {reason}", hint="")
