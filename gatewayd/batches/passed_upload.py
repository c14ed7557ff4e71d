"""Writes the requests of a batch for its provider; those that fail here get their answers at once."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final

from gatewayd.accounts.records import Actor
from gatewayd.batches.lines import BatchLine, parse_line, read_lines
from gatewayd.batches.passed_answers import PassedAnswers
from gatewayd.batches.passed_choice import NotPassableError, PassedChoice, PassedTarget
from gatewayd.batches.progress import BatchProgress
from gatewayd.batches.records import Batch
from gatewayd.catalog.provider_batches import BatchUpload, Framing, ProviderBatches
from gatewayd.completions.records import Body
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.metering.estimates import estimate_call
from gatewayd.metering.records import NO_USAGE, MeteredCall, TokenUsage

MAX_UPLOAD_BYTES: Final = 200 * 1024 * 1024
"""Maximum number of bytes of the requests for a provider; a larger batch is run by the gateway."""

LINES_AT_ONCE: Final = 64
MAX_BYTES_AT_ONCE: Final = 1 << 20


@dataclass(slots=True)
class WrittenUpload:
    """The upload, and the tokens that its requests are expected to take, by the names of models."""

    upload: BatchUpload
    estimates: dict[str, TokenUsage] = field(default_factory=dict)


class UploadWriter:
    """Writes the upload of one batch: the requests of the lines that have no answer yet."""

    def __init__(
        self,
        batch: Batch,
        source: Path,
        progress: BatchProgress,
        answers: PassedAnswers,
        choice: PassedChoice,
    ) -> None:
        self._batch = batch
        self._source = source
        self._progress = progress
        self._answers = answers
        self._choice = choice

    async def write(self, path: Path, target: PassedTarget, actor: Actor) -> WrittenUpload:
        """Write the requests to `path`, and store the errors of those that fail.

        Raises NotPassableError for a request that needs the gateway, and for too many bytes; unavailable
        while a model cannot be looked up; OSError.
        """
        batches = target.source.batches
        estimates: dict[str, TokenUsage] = {}
        file = UploadFile(path, batches.framing)
        await asyncio.to_thread(file.open)
        try:
            lines = self._unfinished()
            while found := await asyncio.to_thread(_some, lines):
                requests = []
                for number, line in found:
                    body = await self._request_of(number, line, target, actor)
                    if body is not None:
                        requests.append((self._answers.custom_id(number), body))
                        name = str(line.body.get("model"))
                        estimates[name] = estimates.get(name, NO_USAGE).plus(_estimate(line))
                await asyncio.to_thread(file.add, requests, self._batch.endpoint, batches)
                if file.size > MAX_UPLOAD_BYTES:
                    raise NotPassableError
            await asyncio.to_thread(file.finish)
        finally:
            await asyncio.to_thread(file.close)
        upload = BatchUpload(self._batch.id, self._batch.endpoint, path, file.size, file.count)
        return WrittenUpload(upload, estimates)

    async def _request_of(
        self, number: int, line: BatchLine, target: PassedTarget, actor: Actor
    ) -> Body | None:
        """Return the request of a line; store its error and return None if there is one."""
        try:
            return await self._choice.request_of(self._batch, line, target, actor)
        except GatewayError as error:
            if error.kind is ErrorKind.UNAVAILABLE:
                raise
            await self._answers.refuse([(number, line.custom_id)], error)
            return None

    def _unfinished(self) -> Iterator[tuple[int, BatchLine, int]]:
        for number, raw in enumerate(read_lines(self._source), 1):
            if number > self._batch.total:
                return
            if not self._progress.is_done(number):
                yield number, parse_line(raw, self._batch), len(raw)


class UploadFile:
    """The file of an upload; its methods block and run in threads."""

    def __init__(self, path: Path, framing: Framing) -> None:
        self._path = path
        self._framing = framing
        self._file: BinaryIO | None = None
        self._waiting = bytearray()
        self.size = 0
        self.count = 0

    def open(self) -> None:
        """Begin the file anew."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = open(self._path, "wb", opener=_private)  # noqa: SIM115 - the mode of a new file
        self._waiting += self._framing.begin

    def add(self, requests: Sequence[tuple[str, Body]], endpoint: str, batches: ProviderBatches) -> None:
        """Write requests, given by their ids."""
        for custom_id, body in requests:
            if self.count:
                self._waiting += self._framing.between
            self._waiting += batches.render(custom_id, endpoint, body)
            self.count += 1
        self._flush()

    def finish(self) -> None:
        """Write the end."""
        self._waiting += self._framing.end
        self._flush()

    def _flush(self) -> None:
        if self._file is None:
            raise RuntimeError("cannot write to an upload that is not open")
        self._file.write(self._waiting)
        self.size += len(self._waiting)
        self._waiting.clear()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _some(lines: Iterator[tuple[int, BatchLine, int]]) -> list[tuple[int, BatchLine]]:
    """Return the next lines, about MAX_BYTES_AT_ONCE of them at most."""
    found: list[tuple[int, BatchLine]] = []
    size = 0
    for number, line, length in islice(lines, LINES_AT_ONCE):
        found.append((number, line))
        size += length
        if size >= MAX_BYTES_AT_ONCE:
            break
    return found


def _estimate(line: BatchLine) -> TokenUsage:
    return estimate_call(MeteredCall("", (), "", "", "", body=line.body))
