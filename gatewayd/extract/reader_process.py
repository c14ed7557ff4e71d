"""A reader process with a private folder for the document that it reads."""

import asyncio
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.tasks import TaskRegistry
from gatewayd.workers import MAX_ANSWER_SECONDS, WorkerOptions, WorkerProcess

FOLDER: Final = "reader-"
DOCUMENT: Final = "document"


@dataclass(frozen=True, slots=True, eq=False)
class ReaderProcess:
    """A worker, and the only folder in which it can open documents."""

    worker: WorkerProcess
    folder: Path

    @classmethod
    async def start(cls, parent: Path, options: WorkerOptions, tasks: TaskRegistry) -> Self:
        """Start a process with a new folder below `parent`; the folder is its last argument.

        Raises unavailable if the folder or process cannot be created.
        """
        try:
            folder = await asyncio.to_thread(_made, parent)
        except OSError as error:
            raise _failure(error) from error
        try:
            return cls(await WorkerProcess.start(options.with_argument(str(folder)), tasks), folder)
        except GatewayError:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            raise

    @property
    def is_usable(self) -> bool:
        """Whether the process runs and its folder exists."""
        return self.worker.is_alive and self.folder.is_dir()

    async def ask(
        self, path: Path, message: dict[str, Any], seconds: float = MAX_ANSWER_SECONDS
    ) -> tuple[Any, bytes]:
        """Send a request about the file at `path` and return the reply, as `WorkerProcess.call` does.

        Raises unavailable if the file does not exist.
        """
        document = self.folder / DOCUMENT
        try:
            await asyncio.to_thread(_link_or_copy, path, document)
        except OSError as error:
            raise _failure(error) from error
        try:
            return await self.worker.call({**message, "path": str(document)}, seconds=seconds)
        finally:
            document.unlink(missing_ok=True)

    async def close(self) -> None:
        """End the process and remove its folder."""
        await self.worker.close()
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)


def _made(parent: Path) -> Path:
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=FOLDER, dir=parent))


def _link_or_copy(path: Path, document: Path) -> None:
    """Make a hard link to a file, or a copy if the file system has no hard links."""
    document.unlink(missing_ok=True)
    try:
        os.link(path, document)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(path, document)


def _failure(error: OSError) -> GatewayError:
    return GatewayError(ErrorKind.UNAVAILABLE, f"cannot read the file: {error.strerror or error}")
