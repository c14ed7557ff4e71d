"""Search and checks of collections."""

import pytest

from gatewayctl.wire import routes
from gatewayctl.wire.collections import NewCollection, Query
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.daemons.control_documents import boss, processed, refused
from tests.fakes.daemons.control_socket import Control


@pytest.fixture(autouse=True)
async def docs(control: Control) -> None:
    await boss(control)
    await control.call(control.client.call, routes.CREATE_COLLECTION, body=NewCollection(name="docs"))
    for name in ("tar keeps many files", "ssh opens a shell", "make builds programs"):
        await processed(control, name.encode(), f"{name.partition(' ')[0]}.txt", collection="docs")


async def test_an_answer_says_where_it_comes_from(control: Control) -> None:
    client = control.client
    found = await control.call(
        client.call, routes.QUERY_COLLECTION, "docs", body=Query(query="who opens a shell", k=2)
    )
    assert found.warnings == []
    assert len(found.passages) == 2
    first = found.passages[0]
    assert (first.text, first.file, first.start, first.page) == ("ssh opens a shell", "ssh.txt", 0, None)
    assert (first.dense_rank, first.lexical_rank, first.score) == (1, 1, 1.0)
    assert first.dense is not None
    assert first.lexical is not None
    assert first.similarity == pytest.approx((first.dense + 1) / 2)
    assert (await control.call(client.call, routes.GET_FILE, first.file_id)).name == "ssh.txt"


async def test_what_is_asked_for_goes_before_the_settings(control: Control) -> None:
    client = control.client

    async def ranks(**how: object) -> list[tuple[int | None, int | None]]:
        wanted = Query(query="ssh opens a shell", **how)
        found = await control.call(client.call, routes.QUERY_COLLECTION, "docs", body=wanted)
        return [(each.dense_rank, each.lexical_rank) for each in found.passages]

    assert len(await ranks()) == 3
    assert await ranks(k=1) == [(1, 1)]
    assert await ranks(threshold=0.99) == [(1, 1)]
    assert await ranks(k=1, hybrid=False) == [(1, None)]


@pytest.mark.parametrize("how", [{"k": 0}, {"k": 1001}, {"threshold": -0.1}, {"threshold": 1.5}])
async def test_what_makes_no_sense_is_refused(control: Control, how: dict[str, float]) -> None:
    wanted = Query.model_validate({"query": "x", **how})
    failure = await refused(control, control.client.call, routes.QUERY_COLLECTION, "docs", body=wanted)
    assert failure.kind == "invalid_request"


async def test_what_could_not_be_done_is_said(control: Control) -> None:
    control.documents.embedder.failures = [GatewayError(ErrorKind.UNAVAILABLE, "the model is busy")]
    found = await control.call(control.client.call, routes.QUERY_COLLECTION, "docs", body=Query(query="tar"))
    assert [each.file for each in found.passages] == ["tar.txt"]
    assert "the model is busy" in found.warnings[0]
    for endpoint, body in (
        (routes.QUERY_COLLECTION, Query(query="x")),
        (routes.CHECK_COLLECTION, None),
    ):
        assert (await refused(control, control.client.call, endpoint, "none", body=body)).kind == "not_found"


async def test_a_check_counts_and_finds_what_is_missing(control: Control) -> None:
    client = control.client
    report = await control.call(client.call, routes.CHECK_COLLECTION, "docs")
    assert (report.name, report.files, report.passages, report.vectors) == ("docs", 3, 3, 3)
    assert report.problems == []
    tables = control.documents.library.tables
    del tables.vectors[min(tables.vectors)]
    report = await control.call(client.call, routes.CHECK_COLLECTION, report.id)
    assert (report.files, report.passages, report.vectors) == (3, 3, 2)
    assert "1 passages have no vector" in report.problems[-1]
