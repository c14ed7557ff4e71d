"""Tests for the questions of the benchmark of documents, and for how answers to them are marked."""

from pathlib import Path

import pytest

from tests.bench.documents_quality import measure_quality, rank
from tests.bench.documents_questions import NAMES_OF_SETTINGS, QUESTION, examined, sections
from tests.bench.documents_site import made_model, prepared

FAQ = """\
================
Frequent answers
================

What is a kettle for?
---------------------

It boils the water that is needed for making a pot of tea.

.. _spout: https://example.org/what-is-a-kettle-for

Where
-----

On the stove, and nowhere else.

Why does it whistle?
--------------------
The steam escapes through a narrow slit and makes a tone.
"""
SETTINGS = """\
``KETTLE_SIZE``
---------------

How many litres of water a kettle holds at the very most.

Notes
-----

There are no other notes about kettles in this document.
"""
DOCUMENTS = {
    "scrapy-docs-faq.rst": FAQ,
    "django-docs-ref-settings.txt": SETTINGS,
    "scrapy-docs-other.rst": "A text about gardens.\n",
}


def test_sections_are_those_of_the_text() -> None:
    assert [section.title for section in sections(FAQ)] == [
        "Frequent answers",
        "What is a kettle for?",
        "Where",
        "Why does it whistle?",
    ]


def test_questions_are_taken_out_of_the_documents() -> None:
    found = examined(DOCUMENTS)
    assert [(question.kind, question.text) for question in found.questions] == [
        (NAMES_OF_SETTINGS, "KETTLE_SIZE"),
        (QUESTION, "What is a kettle for?"),
        (QUESTION, "Why does it whistle?"),
    ]
    text = found.documents["scrapy-docs-faq.rst"]
    assert "?" not in text
    assert "It boils the water" in text
    assert "Where\n-----\n" in text
    assert found.documents["django-docs-ref-settings.txt"] == SETTINGS
    assert found.questions[1].lines == {"It boils the water that is needed for making a pot of tea."}


def test_the_place_of_an_answer_is_that_of_the_first_passage_with_a_part_of_it() -> None:
    question = examined(DOCUMENTS).questions[1]
    names = ["scrapy-docs-other.rst", "scrapy-docs-other.rst", "scrapy-docs-faq.rst"]
    passages = ["a garden", "\n".join(question.lines), "and it boils\n   the water"]
    answer = {"metadatas": [[{"name": name} for name in names]], "documents": [passages]}
    assert rank(question, answer) is None
    passages[2] = "So. It boils the water that is\n   needed for making a pot of tea."
    assert rank(question, answer) == 3


@pytest.mark.long
def test_each_way_of_searching_is_marked(tmp_path: Path) -> None:
    model = made_model(tmp_path / "model", passages=2)
    with prepared(tmp_path / "site", model) as site, site.running() as running:
        row = measure_quality(running, tmp_path / "documents", examined(DOCUMENTS))
    assert (row["documents"], row["questions"]) == (3, 3)
    assert row["hybrid"]["hit all"] == row["hybrid"]["hit question"] == 1.0
    assert 0.5 < row["hybrid"]["ndcg all"] <= 1.0
    assert row["words"]["ndcg name"] == 1.0
