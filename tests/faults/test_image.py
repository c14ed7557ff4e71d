"""The image of config/image, built by buildah and run as its user: it serves and is healthy.

podman cannot run a container in every place where tests run; `buildah run --isolation chroot` can.
"""

import contextlib
import json
import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fakes.daemons.daemon import free_port
from tests.faults.debian import BUNDLE, pip_settings
from tests.test_manpages import ROOT

pytestmark = [
    pytest.mark.faults,
    pytest.mark.timeout(3600),
    pytest.mark.real("mmdebstrap", "buildah"),
]

LONG_SECONDS = 1800.0
START_SECONDS = 120.0
NAME = "localhost/gatewayd-test"
BASE = f"{NAME}-base"


@dataclass(frozen=True)
class Builder:
    """buildah with a store of its own."""

    store: Path

    def command(self, *words: str) -> list[str]:
        store = ["--root", str(self.store / "root"), "--runroot", str(self.store / "run")]
        return ["buildah", *store, "--storage-driver", "vfs", *words]

    def run(self, *words: str) -> str:
        done = subprocess.run(
            self.command(*words), cwd=ROOT, capture_output=True, text=True, check=False, timeout=LONG_SECONDS
        )
        assert done.returncode == 0, (words, done.stdout[-4000:], done.stderr[-4000:])
        return done.stdout.strip()


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builder]:
    """Build the image on a Debian 12 made here, as there is no registry."""
    if os.geteuid() != 0:
        # For want of a right, not of a component: GATEWAYD_REQUIRE_REAL does not ask for it.
        pytest.skip("only root can make the base of the image")
    folder = tmp_path_factory.mktemp("image")
    made = Builder(folder / "store")
    base = folder / "base"
    base.mkdir()
    # Its bundle of certificates is mounted below, so that apt could not install it.
    options = ["--variant=minbase", "--include=ca-certificates"]
    command = ["mmdebstrap", *options, "bookworm", str(base / "root.tar")]
    subprocess.run(command, check=True, capture_output=True, timeout=LONG_SECONDS)
    (base / "Containerfile").write_text("FROM scratch\nADD root.tar /\n")
    made.run("bud", "--isolation", "chroot", "-t", BASE, str(base))
    shutil.rmtree(base)
    places, variables = pip_settings()
    volumes = [f"--volume={place}:{place}:ro" for place in [*places, str(BUNDLE)] if Path(place).exists()]
    given = [f"--env={variable}" for variable in variables]
    recipe = ["--build-arg", f"BASE={BASE}", "-f", "config/image/Containerfile", "-t", NAME, "."]
    made.run("bud", "--isolation", "chroot", "--format", "docker", *volumes, *given, *recipe)
    try:
        yield made
    finally:
        made.run("rm", "--all")


def test_the_image_says_how_it_is_run(builder: Builder) -> None:
    config = json.loads(builder.run("inspect", "--type", "image", NAME))["Docker"]["config"]
    assert config["User"] == "10001:10001"
    assert config["Entrypoint"] == ["gatewayd"]
    assert config["ExposedPorts"] == {"8080/tcp": {}}
    assert config["Volumes"] == {"/var/lib/gatewayd": {}}
    assert config["Healthcheck"]["Test"] == ["CMD", "gatewayctl", "health", "-o", "name"]
    assert config["StopSignal"] == "SIGTERM"


def test_nothing_of_the_build_is_in_the_image(builder: Builder) -> None:
    container = builder.run("from", NAME)
    place = Path(builder.run("mount", container))
    assert not (place / "src").exists()
    assert not list(place.glob("root/.cache/*"))
    assert not (place / "opt/gatewayd/lib/python3.11/site-packages/tests").exists()
    builder.run("rm", container)


@contextlib.contextmanager
def running(builder: Builder, port: int) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """Run the program of the image as its user, on a port of this machine."""
    container = builder.run("from", NAME)
    options = ["--isolation", "chroot", f"--env=PORT={port}", "--env=HOST=127.0.0.1"]
    process = subprocess.Popen(builder.command("run", *options, container, "--", "gatewayd"))
    try:
        yield container, process
    finally:
        process.terminate()
        process.wait(60)


def test_the_program_of_the_image_serves_and_is_healthy(builder: Builder) -> None:
    port = free_port()
    with running(builder, port) as (container, process):
        deadline = time.monotonic() + START_SECONDS
        while True:
            with (
                contextlib.suppress(OSError),
                urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz") as reply,
            ):
                assert reply.status == 200
                break
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.2)
        inside = ["run", "--isolation", "chroot", container, "--"]
        assert builder.run(*inside, "id", "-u") == "10001"
        # The check of the recipe.
        assert builder.run(*inside, "gatewayctl", "health", "-o", "name") == "pass"
