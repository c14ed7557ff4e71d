"""Rounds of faults by seed over three nodes: what clients saw is read afterwards.

`pytest -m cluster tests/cluster --rounds 30 --first-round 0` runs many; a failure names its round, which
`--first-round N --rounds 1` runs again. The checkers fail on doctored histories in
tests/gatewayd/cluster/test_checkers.py.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from random import Random

import pytest

from gatewayd.cluster.freshness import boottime
from tests.cluster.nemeses import NEMESES, killed
from tests.cluster.workload import ANSWER, Workload
from tests.fakes.cluster.bed import Bed, running_bed
from tests.fakes.cluster.checkers import (
    StoredFile,
    check_files,
    check_runs,
    check_stream,
    check_writes,
)
from tests.fakes.cluster.history import check_revocation
from tests.fakes.http.raw_http import send

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

FAULT_SECONDS = 1.5
SETTLE_SECONDS = 60.0
QUIET_SECONDS = 1.0
"""How long before the death of a node an event that it acknowledged may be lost."""


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    with running_bed(tmp_path_factory.mktemp("b")) as made:
        yield made


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "number" in metafunc.fixturenames:
        option = metafunc.config.option
        first, count = option.first_round, option.rounds
        marks = [pytest.mark.short] if count == 1 else []
        metafunc.parametrize("number", [pytest.param(first + each, marks=marks) for each in range(count)])


def test_a_round(bed: Bed, number: int) -> None:
    random = Random(number)
    nemesis = NEMESES[number % len(NEMESES)]
    work = Workload(bed)
    with work.running():
        work.wait_steady()
        began = boottime()
        with ExitStack() as revocation:
            with nemesis(bed, random):
                time.sleep(FAULT_SECONDS / 2)
                revocation.enter_context(work.revoking())
                time.sleep(FAULT_SECONDS / 2)
            bed.wait_well()
        work.wait_asked()
        time.sleep(FAULT_SECONDS)
    history = work.history
    told = f"round {number}, {nemesis.__name__}"
    assert history.failures == [], told
    assert history.revoked_at is not None
    problems = [
        *check_writes(history.chats, titles(bed, history.chats.acknowledged | history.chats.unknown)),
        *check_files(history.files, stored(bed, list(history.files))),
        *check_runs(messages(work), {ANSWER}),
        *check_stream(
            [each for _, each in history.told],
            unsure(work, began if nemesis is killed else None),
            history.heard,
        ),
        *check_revocation(history.asked, history.revoked_at),
    ]
    assert not problems, (told, problems, history.told, history.heard)


def titles(bed: Bed, known: set[str]) -> list[str]:
    """Return the titles of the stored chats, of those that this round has written."""
    return [title for title, _ in bed.rows("SELECT title, id FROM chats") if title in known]


def stored(bed: Bed, ids: list[str]) -> dict[str, StoredFile]:
    """Wait until nothing is to be done for the files, and return what there is of them."""
    house, found = bed.house, {}
    deadline = time.monotonic() + SETTLE_SECONDS
    for file_id in ids:
        status = ""
        while status not in {"completed", "failed"} and time.monotonic() < deadline:
            status = house.ok("GET", f"/api/v1/files/{file_id}/process/status")["status"]
            time.sleep(0.05)
        headers = {"Authorization": f"Bearer {house.ann.token}"}
        path = f"/api/v1/files/{file_id}/content"
        content = send(house.daemon.base_url, "GET", path, b"", headers).body
        rows = bed.rows(f"SELECT number, file_id FROM passages WHERE file_id = '{file_id}'")
        found[file_id] = StoredFile(status, content, [int(number) for number, _ in rows])
    return found


def messages(work: Workload) -> dict[str, dict[str, object]]:
    """Wait until the answers have ended, and return them."""
    house, found = work.bed.house, {}
    deadline = time.monotonic() + SETTLE_SECONDS
    for turn in work.history.turns:
        message = house.message(turn)
        while not message["done"] and time.monotonic() < deadline:
            time.sleep(0.05)
            message = house.message(turn)
        found[turn.text] = message
    return found


def unsure(work: Workload, killed_at: float | None) -> set[int]:
    """Return the events that may be lost: those without an answer, and those right before a killing."""
    if killed_at is None:
        return work.history.unsure
    return work.history.unsure | {
        number for at, number in work.history.told if killed_at - QUIET_SECONDS < at < killed_at
    }
