"""The reindex in the background."""

import asyncio
import logging
from pathlib import Path

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.records import EmbeddingSpace
from gatewayd.ingest.reindex import ReindexProgress, ReindexReport, ReindexRunner
from tests.fakes.documents.ingest_services import Ingest, ingesting
from tests.fakes.documents.memory_stores import HashEmbedder, Library

OLD, NEW = "test:old:1", "test:new:1"


class Absent(HashEmbedder):
    """A model that cannot be asked."""

    async def space(self) -> EmbeddingSpace:
        raise GatewayError(ErrorKind.UPSTREAM_UNREACHABLE, "the model is not here")


def reindexing(ingest: Ingest) -> ReindexRunner:
    return ReindexRunner(ingest.spaces, ingest.spaces_store, ingest.tasks)


async def filled(folder: Path) -> Library:
    async with ingesting(folder, configured=HashEmbedder(OLD)) as ingest:
        for number in range(3):
            await ingest.completed(f"{number}.txt", f"text {number}")
        return ingest.library


async def ended(work: ReindexRunner) -> ReindexReport:
    while (report := await work.report()).progress is ReindexProgress.RUNNING:
        await asyncio.sleep(0.01)
    return report


async def test_one_model_is_current(tmp_path: Path) -> None:
    async with ingesting(tmp_path) as ingest:
        await ingest.completed("a.txt", "text")
        report = await reindexing(ingest).report()
        assert report == ReindexReport(ReindexProgress.CURRENT, "test:hash:1", "", 1, 1)


async def test_another_model_is_behind_until_it_is_filled(tmp_path: Path) -> None:
    library, model = await filled(tmp_path), HashEmbedder(NEW)
    others = {OLD: HashEmbedder(OLD)}
    async with ingesting(tmp_path, library=library, configured=model, others=others) as ingest:
        work = reindexing(ingest)
        assert await work.report() == ReindexReport(ReindexProgress.BEHIND, OLD, NEW, 0, 3)
        with ingest.spaces.pause_reindex():
            await work.start()
            assert await work.report() == ReindexReport(ReindexProgress.RUNNING, OLD, NEW, 0, 3)
            with pytest.raises(GatewayError) as caught:
                await work.start()
            assert caught.value.kind is ErrorKind.CONFLICT
        assert await ended(work) == ReindexReport(ReindexProgress.CURRENT, NEW, "", 3, 3)


async def test_one_that_ended_early_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    library, model = await filled(tmp_path), HashEmbedder(NEW)
    model.failures = [None, GatewayError(ErrorKind.UNAVAILABLE, "the model is busy")]
    async with ingesting(tmp_path, library=library, configured=model) as ingest:
        work = reindexing(ingest)
        with caplog.at_level(logging.WARNING, "gatewayd.ingest.reindex"):
            await work.start()
            report = await ended(work)
        assert report == ReindexReport(ReindexProgress.FAILED, OLD, NEW, 1, 3, "the model is busy")
        assert caplog.records[-1].getMessage() == "the reindex ended early: the model is busy"
        await work.start()
        assert await ended(work) == ReindexReport(ReindexProgress.CURRENT, NEW, "", 3, 3)


async def test_a_model_that_cannot_be_asked_is_said(tmp_path: Path) -> None:
    library = await filled(tmp_path)
    async with ingesting(tmp_path, library=library, configured=Absent(NEW)) as ingest:
        work = reindexing(ingest)
        report = await work.report()
        assert report == ReindexReport(ReindexProgress.FAILED, OLD, "", 3, 3, "the model is not here")
        with pytest.raises(GatewayError) as caught:
            await work.start()
        assert caught.value.kind is ErrorKind.UPSTREAM_UNREACHABLE


async def test_without_a_model_there_is_nothing_to_begin(tmp_path: Path) -> None:
    async with ingesting(tmp_path, configured=None) as ingest:
        await ingest.completed("a.txt", "text")
        work = reindexing(ingest)
        assert await work.report() == ReindexReport(ReindexProgress.BEHIND, "", "", 0, 1)
        with pytest.raises(GatewayError) as caught:
            await work.start()
        assert caught.value.kind is ErrorKind.NOT_CONFIGURED
