"""One process that reads documents, with a folder in which it finds the one that it is to read."""

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
    """A worker, and the only folder of documents that it can open files in."""

    worker: WorkerProcess
    folder: Path

    @classmethod
    async def start(cls, parent: Path, options: WorkerOptions, tasks: TaskRegistry) -> Self:
        """Start a process with a new folder below `parent`, which is its last argument.

        Raises unavailable when that is not possible.
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
        """Whether it can be asked: the process runs, and nobody has removed its folder."""
        return self.worker.is_alive and self.folder.is_dir()

    async def ask(
        self, path: Path, message: dict[str, Any], seconds: float = MAX_ANSWER_SECONDS
    ) -> tuple[Any, bytes]:
        """Return the answer to a message about the file at `path`, as `WorkerProcess.call` does.

        unavailable when there is no such file.
        """
        document = self.folder / DOCUMENT
        try:
            await asyncio.to_thread(_hand_over, path, document)
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


def _hand_over(path: Path, document: Path) -> None:
    """Give a file a second name; where the file system has no such names, copy it."""
    document.unlink(missing_ok=True)
    try:
        os.link(path, document)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(path, document)


def _failure(error: OSError) -> GatewayError:
    return GatewayError(ErrorKind.UNAVAILABLE, f"cannot read the file: {error.strerror or error}")
