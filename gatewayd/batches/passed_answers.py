"""Answers to the requests that a provider ran: from the lines of its results to those of the batch."""

import array
import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Final

from gatewayd import ids
from gatewayd.batches.interfaces import ErrorRenderer
from gatewayd.batches.lines import MAX_LINE_BYTES, BatchLine, parse_line, render_answer
from gatewayd.batches.passed_usage import PassedTokens, PassedUsage
from gatewayd.batches.progress import BatchProgress
from gatewayd.batches.progress_file import FinishedLine
from gatewayd.batches.records import Batch, LineAnswer
from gatewayd.batches.requests import ANSWER_LIMITS, MAX_ANSWER_BYTES
from gatewayd.batches.run import MAX_RESULT_BYTES
from gatewayd.catalog.interfaces import ForwardedAnswer
from gatewayd.catalog.provider_batches import ProviderBatches, ProviderResult
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.json_decoder import decode
from gatewayd.metering.usage_objects import read_usage

log = logging.getLogger(__name__)

RESULTS_AT_ONCE: Final = 256
MAX_BYTES_AT_ONCE: Final = 1 << 20
"""Results that are stored, and metered, in one step; fewer if they are large."""

MAX_NUMBER_DIGITS: Final = 6


class PassedAnswers:
    """Stores the answers of one batch. Each line gets one; a result that comes again changes nothing."""

    def __init__(
        self,
        batch: Batch,
        source: Path,
        progress: BatchProgress,
        usage: PassedUsage,
        render_error: ErrorRenderer,
    ) -> None:
        self._batch = batch
        self._source = source
        self._progress = progress
        self._usage = usage
        self._render_error = render_error
        self._mark = f"gw_{batch.id[-20:]}_"
        self._places: array.array[int] | None = None
        self.has_expired = False
        """Whether the provider says that requests did not run because their time was over."""
        self.unknown = 0
        """Number of lines of the results that belong to no request of the batch."""

    def custom_id(self, number: int) -> str:
        """Return the id that the request of a line has at the provider."""
        return f"{self._mark}{number}"

    def number_of(self, custom_id: str) -> int:
        """Return the number of the line of such an id; 0 for an id of something else."""
        digits = custom_id.removeprefix(self._mark)
        is_own = digits != custom_id and len(digits) <= MAX_NUMBER_DIGITS
        number = int(digits) if is_own and digits.isascii() and digits.isdecimal() else 0
        return number if number <= self._batch.total else 0

    async def store(self, answer: ForwardedAnswer, batches: ProviderBatches) -> None:
        """Store the lines of results as they come; raises GatewayError if they break off, and OSError."""
        waiting: dict[int, ProviderResult] = {}
        size = 0
        async for raw in lines_of(answer):
            result = await self._parsed(raw, batches)
            if result is None:
                continue
            number = self.number_of(result.custom_id)
            if not number:
                self.unknown += 1
            elif result.body is None and result.error is None:
                self.has_expired |= result.is_expired
            elif not self._progress.is_done(number):
                waiting.setdefault(number, result)
                size += len(raw)
            if len(waiting) >= RESULTS_AT_ONCE or size >= MAX_BYTES_AT_ONCE:
                await self._keep(waiting)
                waiting, size = {}, 0
        await self._keep(waiting)

    async def is_own(self, answer: ForwardedAnswer, batches: ProviderBatches) -> bool:
        """Return whether results are those of this batch, by their first line."""
        lines = lines_of(answer)
        async with aclosing(lines):
            async for raw in lines:
                result = await self._parsed(raw, batches)
                return result is not None and self.number_of(result.custom_id) > 0
        return False

    async def refuse(self, lines: Iterable[tuple[int, str]], error: GatewayError) -> None:
        """Store an error as the answer to lines, given by number and custom id; raises OSError."""
        records = [
            FinishedLine(number, False, self._rendered(BatchLine(custom_id, {}), error))
            for number, custom_id in lines
            if not self._progress.is_done(number)
        ]
        if records:
            await self._progress.append(*records)

    async def refuse_rest(self, error: GatewayError) -> None:
        """Store an error as the answer to every line that has none; raises OSError."""
        total, start = self._batch.total, 1
        while start <= total:
            end = min(start + RESULTS_AT_ONCE, total + 1)
            rest = [number for number in range(start, end) if not self._progress.is_done(number)]
            await self.refuse(await asyncio.to_thread(self._named, rest), error)
            start = end

    async def _parsed(self, raw: bytes, batches: ProviderBatches) -> ProviderResult | None:
        """Return a line of results; None for one that cannot be read: its request ends without a result."""
        try:
            value = await decode(raw, ANSWER_LIMITS)
            if isinstance(value, dict):
                return batches.parse(value)
        except GatewayError as error:
            log.warning(
                "line of a provider's results left out: %s",
                error.full_message,
                extra={"batch": self._batch.id},
            )
        self.unknown += 1
        return None

    async def _keep(self, results: dict[int, ProviderResult]) -> None:
        if results:
            records, answers = await asyncio.to_thread(self._rendered_all, results)
            await self._progress.append(*records)
            await self._usage.count(answers, self._progress.completed, self._progress.failed)

    def _rendered_all(
        self, results: dict[int, ProviderResult]
    ) -> tuple[Sequence[FinishedLine], Sequence[PassedTokens]]:
        """Return the records of results, and what the successful ones used, in a thread."""
        records, answers = [], []
        for number, result in results.items():
            line = self._line(number)
            model, body = line.body.get("model"), result.body
            if body is not None and self._progress.size < MAX_RESULT_BYTES:
                if "model" in body:
                    body = {**body, "model": model}
                answer = LineAnswer(200, body, ids.new_id())
                records.append(FinishedLine(number, True, render_answer(self._batch, line, answer)))
                answers.append(PassedTokens(str(model), read_usage(body.get("usage"))))
            else:
                error = result.error if result.error is not None else too_large()
                records.append(FinishedLine(number, False, self._rendered(line, error)))
        return records, answers

    def _rendered(self, line: BatchLine, error: GatewayError) -> bytes:
        status, body = self._render_error(error, self._batch.dialect)
        return render_answer(self._batch, line, LineAnswer(status, body, ids.new_id()))

    def _named(self, numbers: Sequence[int]) -> list[tuple[int, str]]:
        return [(number, self._line(number).custom_id) for number in numbers]

    def _line(self, number: int) -> BatchLine:
        """Return a line of the input, in a thread."""
        if self._places is None:
            self._places = line_places(self._source)
        with self._source.open("rb") as file:
            file.seek(self._places[number - 1])
            return parse_line(file.readline(MAX_LINE_BYTES + 1), self._batch)


def too_large() -> GatewayError:
    """Return the error of a request whose batch has too large answers."""
    return GatewayError(
        ErrorKind.TOO_LARGE,
        f"cannot keep the answer: the answers of the batch are over {MAX_RESULT_BYTES} bytes",
        code="batch_too_large",
    )


def line_places(path: Path) -> "array.array[int]":
    """Return where the lines that are not blank begin; blocks. Raises OSError."""
    places = array.array("q")
    with path.open("rb") as file:
        place = 0
        is_begin, is_blank, begin = True, True, 0
        while piece := file.readline(MAX_LINE_BYTES + 1):
            if is_begin:
                begin, is_blank = place, True
            is_blank = is_blank and not piece.strip()
            place += len(piece)
            is_begin = piece.endswith(b"\n")
            if is_begin and not is_blank:
                places.append(begin)
        if not is_begin and not is_blank:
            places.append(begin)
    return places


async def lines_of(answer: ForwardedAnswer) -> AsyncGenerator[bytes, None]:
    """Yield the lines of an answer; what is over MAX_ANSWER_BYTES of one is left out with it."""
    waiting = bytearray()
    is_skipping = False
    async with aclosing(answer):
        async for piece in answer:
            *whole, rest = piece.split(b"\n")
            for part in whole:
                waiting += part
                if waiting.strip() and not is_skipping and len(waiting) <= MAX_ANSWER_BYTES:
                    yield bytes(waiting)
                waiting.clear()
                is_skipping = False
            waiting += rest
            if len(waiting) > MAX_ANSWER_BYTES:
                is_skipping = True
                waiting.clear()
    if waiting.strip() and not is_skipping:
        yield bytes(waiting)
