"""The process that has mandoc format pages, with programs in its place."""

import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.tasks import TaskRegistry
from gatewayd.workers import WorkerOptions, WorkerProcess

Format = Callable[..., Awaitable[bytes]]

CONFINED = """
import sys
from functools import partial
from pathlib import Path
from subprocess import run
from gatewayd.extract import mandoc
from gatewayd.sandbox.confinement import SandboxMode
confine = partial(mandoc._confine, SandboxMode.REQUIRE, Path("/bin/sh"))
sys.exit(run(["/bin/sh", "-c", sys.argv[1]], preexec_fn=confine).returncode)
"""


@pytest.fixture
async def format_with(tmp_path: Path) -> AsyncIterator[Format]:
    """Return what formats a page with a script in the place of mandoc."""
    tasks = TaskRegistry()
    workers: list[WorkerProcess] = []

    async def formatted(script: str, page: bytes = b"page", limit: int = 1000) -> bytes:
        program = tmp_path / "mandoc"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o700)
        arguments = (str(program), "off", str(limit))
        options = WorkerOptions("gatewayd.extract.mandoc", arguments, cpu_seconds=2, has_children=True)
        workers.append(await WorkerProcess.start(options, tasks))
        return (await workers[-1].call({}, page))[1]

    yield formatted
    for worker in workers:
        await worker.close()
    await tasks.close()


async def test_a_page_goes_in_and_html_comes_out(format_with: Format) -> None:
    assert await format_with(
        'page=$(cat); echo "$@" $(ulimit -t); echo "$page"', b"x" * 200_000, limit=1 << 20
    ) == (b"-T html -K utf-8 1\n" + b"x" * 200_000 + b"\n")
    # Whoever does not read to the end has said what is wrong with the page by its status.
    assert await format_with("echo html; exit 3", b"x" * 200_000) == b"html\n"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 5", "mandoc ended with status 5"),
        ("kill -SEGV $$", "mandoc was ended by SIGSEGV"),
        ("cat /dev/zero", "its HTML takes more than 0 MB; split it"),
        ("exit 1", "mandoc wrote nothing"),
    ],
)
async def test_a_page_that_cannot_be_formatted_is_refused(
    format_with: Format, script: str, reason: str
) -> None:
    with pytest.raises(GatewayError) as caught:
        await format_with(script)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    assert caught.value.message.startswith(f"cannot read the manual page: {reason}")


async def test_a_page_that_takes_too_much_processor_time_is_refused(format_with: Format) -> None:
    with pytest.raises(
        GatewayError, match=r"^cannot read the file: it takes more than 1 seconds of processor"
    ):
        await format_with("while :; do :; done")


async def test_nothing_is_in_the_current_directory(format_with: Format) -> None:
    assert await format_with("ls -a; cat < etc/passwd || echo none") == b"none\n"


@pytest.mark.parametrize(
    "attempt",
    ["cat /etc/passwd", "exec /bin/true", "read x < /etc/passwd", ": > /tmp/written", "kill -0 $PPID", "(:)"],
)
def test_what_takes_the_program_over_gets_at_nothing(attempt: str) -> None:
    for script, is_done in ((":", True), (attempt, False)):
        done = subprocess.run([sys.executable, "-c", CONFINED, script], capture_output=True, check=False)
        assert (done.returncode == 0) is is_done, done.stderr
