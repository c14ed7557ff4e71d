"""A fresh Debian 12 in a folder, made by mmdebstrap, with a systemd of its own, started by systemd-nspawn."""

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGES = "systemd,systemd-sysv,dbus,ca-certificates,curl"
NEEDED = ("mmdebstrap", "systemd-nspawn", "nsenter")
BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
START_SECONDS = 90.0
LONG_SECONDS = 1800.0
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def make_root(folder: Path, source: Path) -> Path:
    """Install Debian 12 below a folder, with the files of this repository in /src."""
    root = folder / "root"
    command = ["mmdebstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(root)]
    subprocess.run(command, check=True, capture_output=True, timeout=LONG_SECONDS)
    listed = ["git", "-C", str(source), "ls-files", "-co", "--exclude-standard", "-z"]
    names = subprocess.run(listed, check=True, capture_output=True, text=True, timeout=60).stdout.split("\0")
    for name in filter(None, names):
        target = root / "src" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (source / name).is_file():
            shutil.copy2(source / name, target)
    return root


def pip_settings() -> tuple[list[str], list[str]]:
    """Return the places of pip's configuration on this machine, and its variables, for the root."""
    told = subprocess.run(
        [sys.executable, "-m", "pip", "config", "debug"],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    files = re.findall(r"(?m)^\s+(\S+), exists: True$", told.stdout)
    text = "".join(Path(file).read_text() for file in files)
    variables = [f"{name}={value}" for name, value in os.environ.items() if name.startswith("PIP_")]
    named = re.findall(r"(?:file://)?(/[^\s'\"]+)", text + " ".join(variables))
    places = [path for path in map(Path, named) if path.exists() and path != BUNDLE]
    folders = {str(path.parent if path.name == "simple" or path.is_file() else path) for path in places}
    return [*files, *sorted(folders - {"/", "/etc"})], variables


@dataclass
class Machine:
    """A root whose systemd runs; `leader` is its first process as this machine sees it."""

    root: Path
    leader: int
    variables: list[str]

    def sh(self, script: str, *, status: int | None = 0, folder: str = "/src") -> str:
        """Run a script as root in it and return what it printed; `status` is None where any will do."""
        env = ["env", "-i", f"PATH={PATH}", "HOME=/root", "LANG=C.UTF-8", *self.variables]
        shell = [*env, "sh", "-ec", f"cd {shlex.quote(folder)}\n{script}"]
        done = subprocess.run(
            ["nsenter", "--target", str(self.leader), "--all", *shell],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONG_SECONDS,
            check=False,
        )
        assert status is None or done.returncode == status, f"{script}\n{done.stdout[-6000:]}"
        return done.stdout

    def state(self, unit: str) -> str:
        """Return the active state of a unit."""
        return self.sh(f"systemctl show -P ActiveState {unit}", folder="/").strip()

    def wait_for(self, unit: str, state: str, seconds: float = START_SECONDS) -> None:
        """Wait until a unit is in a state."""
        deadline = time.monotonic() + seconds
        while self.state(unit) != state:
            assert time.monotonic() < deadline, self.sh(f"systemctl status {unit}", status=None, folder="/")
            time.sleep(0.3)


@contextlib.contextmanager
def booted(root: Path) -> Iterator[Machine]:
    """Start the systemd of a root, with the network of this machine, until the end of the block."""
    places, variables = pip_settings()
    binds = [f"--bind-ro={place}" for place in [*places, str(BUNDLE)] if Path(place).exists()]
    command = ["systemd-nspawn", "--directory", str(root), "--boot", "--register=no", "--keep-unit"]
    options = ["--quiet", "--console=read-only", "--resolv-conf=bind-host", "--machine=gatewayd-test"]
    process = subprocess.Popen(
        [*command, *options, *binds],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield _started(root, process, variables)
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _started(root: Path, process: "subprocess.Popen[bytes]", variables: list[str]) -> Machine:
    deadline = time.monotonic() + START_SECONDS
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while time.monotonic() < deadline:
        assert process.poll() is None, "systemd-nspawn ended"
        for child in map(int, children.read_text().split()):
            machine = Machine(root, child, variables)
            said = machine.sh("systemctl is-system-running || true", status=None, folder="/")
            if said.strip() in {"running", "degraded"}:
                return machine
        time.sleep(0.5)
    raise AssertionError("systemd did not start in the root")
