"""A directory that changes from one ingest to the next, over a daemon on SQLite or PostgreSQL."""

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.corpus.stand import Stand, ended, opened_stand
from tests.fakes.documents.makers import pdf, word
from tests.fakes.storage.postgres import Postgres

pytestmark = pytest.mark.timeout(300)

TEXTS: Mapping[str, bytes] = {
    "birds/heron.txt": b"The blue heron stands in the shallow water and waits for fish.",
    "birds/owl.md": b"# Owls\n\nThe barn owl hears a mouse under the snow.",
    "tools/tar.html": b"<html><body><p>tar keeps the dates of the files in an archive.</p></body></html>",
    "letter.docx": word(),
    "guide.pdf": pdf(["The harbour opens at six.", "The ferry leaves at nine."]),
}
BUSY = 75


@pytest.fixture(params=["sqlite", "postgres"])
def stand(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stand]:
    database = ""
    if request.param == "postgres":
        server: Postgres = request.getfixturevalue("postgres")
        database = server.migrated_database()
    with opened_stand(tmp_path / "s", database) as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    top = tmp_path / "docs"
    for name, content in TEXTS.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(content)
    return top


def test_from_one_ingest_to_the_next(stand: Stand, folder: Path) -> None:
    foretold = stand.ingest(folder, "--dry-run")
    assert foretold.counts == (len(TEXTS), 0, 0, 0, 0, 0)
    assert stand.call("GET", "/api/v1/knowledge/")["items"] == []

    assert stand.ingest(folder).counts == (len(TEXTS), 0, 0, 0, 0, 0)
    first = stand.held()
    assert first.keys() == TEXTS.keys()
    (hit, *_) = stand.ask("When does the ferry go?", k=1)
    assert (hit.name, hit.page) == ("guide.pdf", 2)

    before = stand.assert_whole().fingerprint
    again = stand.ingest(folder)
    assert (again.counts, again.report["uploaded"]) == ((0, 0, 0, len(TEXTS), 0, 0), 0)
    assert stand.state().fingerprint == before

    (folder / "birds" / "owl.md").write_text("# Owls\n\nThe eagle owl weighs three kilograms.")
    (folder / "birds" / "heron.txt").unlink()
    shutil.copy(folder / "letter.docx", folder / "copy.docx")
    foretold = stand.ingest(folder, "--delete", "--dry-run")
    assert foretold.counts == (1, 1, 1, len(TEXTS) - 2, 0, 0)
    assert stand.state().fingerprint == before

    kept = stand.ingest(folder)
    assert kept.counts == (1, 1, 0, len(TEXTS) - 2, 0, 0)
    assert stand.ask("What waits for fish in shallow water?", k=1)[0].name == "heron.txt"
    assert stand.ingest(folder, "--delete").counts == (0, 0, 1, len(TEXTS), 0, 0)
    check_after(stand, first)


def check_after(stand: Stand, first: Mapping[str, str]) -> None:
    """Look at the collection after the change, the addition and the removal."""
    held = stand.held()
    assert held.keys() == {*TEXTS, "copy.docx"} - {"birds/heron.txt"}
    assert held["birds/owl.md"] != first["birds/owl.md"]
    assert held["guide.pdf"] == first["guide.pdf"]
    assert stand.ask("How heavy is an owl?", k=1)[0].file_id == held["birds/owl.md"]
    everything = stand.ask("owl heron mouse snow fish", k=50)
    assert not any("mouse" in hit.text or hit.name == "heron.txt" for hit in everything)
    # What two files say is found once.
    assert len({hit.text for hit in everything}) == len(everything)
    state = stand.assert_whole()
    assert state.files.keys() == set(held.values())


def test_two_runs_at_once(stand: Stand, folder: Path) -> None:
    for number in range(30):
        (folder / f"{number}.txt").write_text(f"Note {number}: the number is {number * number}.")
    runs = [ended(process) for process in [stand.start_ingest(folder) for _ in range(2)]]
    assert sorted(run.status for run in runs) in ([0, 0], [0, BUSY]), runs
    for run in runs:
        assert run.status == 0 or "another" in run.complaints or "another" in json.dumps(run.report)
    assert stand.held().keys() == {*TEXTS, *(f"{number}.txt" for number in range(30))}
    assert len(stand.assert_whole().files) == len(TEXTS) + 30
    assert stand.ingest(folder).report["uploaded"] == 0
