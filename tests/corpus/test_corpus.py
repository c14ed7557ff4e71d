"""Documents that people made: each answers its question, and the bad ones say what is wrong."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.corpus.fetch import Document, Failing, documents, failing, lay_out
from tests.corpus.stand import Hit, Ingested, opened_stand, squeezed
from tests.fakes.storage.postgres import Postgres

# Documents are fetched and all are embedded before the first test.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

MOST_PASSAGES = 3000
FIRST = 5
SUBSET = (".pdf", ".docx", ".xlsx", ".md", ".gz", ".eml")


@pytest.fixture(scope="module")
def ingested(home: Path, fetched: None) -> Iterator[Ingested]:
    folder = home / "corpus"
    lay_out(documents(), folder)
    lay_out(failing(), folder / "bad")
    with opened_stand(home / "state") as stand:
        yield Ingested(stand, folder, stand.ingest(folder))


def test_the_types_of_the_corpus() -> None:
    kinds = {Path(document.name).suffix for document in documents()}
    assert kinds >= {".pdf", ".docx", ".pptx", ".xlsx", ".xls", ".odt", ".epub", ".html", ".md", ".txt"}
    assert kinds >= {".csv", ".json", ".ipynb", ".rtf", ".eml", ".py", ".gz"}
    assert len(documents()) >= 30
    assert all(document.question for document in documents())


def test_everything_goes_in_but_what_cannot(ingested: Ingested) -> None:
    run = ingested.run
    assert run.counts == (len(documents()), 0, 0, 0, len(failing()), 0), run
    assert run.report["uploaded"] == len(documents()) + len(failing())
    assert run.status == 3
    state = ingested.stand.assert_whole()
    assert len(state.files) == len(documents()) + len(failing())
    assert 500 < len(state.rows["passages"]) < MOST_PASSAGES


@pytest.mark.parametrize("document", failing(), ids=lambda document: document.name)
def test_what_cannot_be_read_says_why(ingested: Ingested, document: Failing) -> None:
    sentence = ingested.run.failures[f"bad/{document.name}"]
    assert sentence.startswith("cannot read the ")
    assert document.error in sentence


@pytest.mark.parametrize("document", documents(), ids=lambda document: document.name)
def test_a_document_answers_its_question(ingested: Ingested, document: Document) -> None:
    found = ingested.stand.ask(document.question, FIRST)
    assert answers(found, document), [(hit.name, hit.page, squeezed(hit.text)[:90]) for hit in found]


def answers(found: Sequence[Hit], document: Document) -> bool:
    """Tell whether the passage of a document is among those found, with its page."""
    wanted = (Path(document.name).name, document.page)
    return any(
        (hit.name, hit.page if document.page else None) == wanted and document.passage in squeezed(hit.text)
        for hit in found
    )


def test_most_are_found_first(ingested: Ingested) -> None:
    first = [
        document for document in documents() if answers(ingested.stand.ask(document.question, 1), document)
    ]
    assert len(first) >= 0.75 * len(documents())


def test_again_does_nothing(ingested: Ingested) -> None:
    before = ingested.stand.state().fingerprint
    run = ingested.stand.ingest(ingested.folder)
    assert run.counts == (0, 0, 0, len(documents()), len(failing()), 0)
    assert run.report["uploaded"] == 0
    assert run.failures.keys() == ingested.run.failures.keys()
    for path, sentence in run.failures.items():
        assert sentence.startswith(ingested.run.failures[path])
        assert "the file is the same" in sentence
    assert ingested.stand.state().fingerprint == before


@pytest.mark.long
def test_on_postgres(home: Path, fetched: None, postgres: Postgres) -> None:
    some = [document for document in documents() if document.name.endswith(SUBSET)]
    bad = failing()[:2]
    folder = home / "some"
    lay_out(some, folder)
    lay_out(bad, folder)
    with opened_stand(home / "p", postgres.migrated_database()) as stand:
        run = stand.ingest(folder)
        assert run.counts == (len(some), 0, 0, 0, len(bad), 0), run
        for document in some:
            found = stand.ask(document.question, FIRST)
            assert answers(found, document), (document.name, found)
        before = stand.assert_whole().fingerprint
        again = stand.ingest(folder)
        assert again.counts == (0, 0, 0, len(some), len(bad), 0)
        assert again.report["uploaded"] == 0
        assert stand.state().fingerprint == before
