"""The model that quotes: sentences, words, what is chosen, and whole requests with real documents."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.documents.attachments import AttachmentOptions, DocumentAttachments
from gatewayd.pipeline.functions.pipe_source import FunctionSource
from gatewayd.pipeline.pipeline import NoFilters, NoTools, Pipeline
from gatewayd.pipeline.records import ChatRequest
from gatewayd.plugins.builtin.extractive import (
    MAX_WORDS,
    NumberedPassage,
    QuotedSentence,
    choose_quotes,
    content_words,
    distinct_quotes,
    last_question,
    number_passages,
    read_passages,
    split_sentences,
    split_words,
)
from gatewayd.plugins.open_webui.finder import install
from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.runtime.context import CallScope
from tests.fakes.daemons.citation_site import ANN
from tests.fakes.documents.collections import World, a_file, build_world
from tests.fakes.plugins.builtin_functions import with_builtin
from tests.fakes.plugins.host import make_host
from tests.fakes.plugins.memory import Plugged, actor_of, scope_of
from tests.fakes.providers.models import FakeRecords

LEAVE = (
    "Leave is asked for in writing. Every employee has 30 days of leave in a year. "
    "It must be taken by the end of March."
)
KEYS = "An API key is ended by its owner or an administrator. Keys are shown once."


# Reading --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One two three. Four five six! Is it seven?", ["One two three.", "Four five six!", "Is it seven?"]),
        ('He said "go home now." Then he left.', ['He said "go home now."', "Then he left."]),
        ("Version 3.11 is out, e.g. this one here.", ["Version 3.11 is out, e.g. this one here."]),
        ("A line that\n  goes on here.\n\nA new paragraph", ["A line that goes on here.", "A new paragraph"]),
        ("Items there are:\n- the first item\n- the second item",
         ["Items there are:", "- the first item", "- the second item"]),
        ("1. Open the door", ["1. Open the door"]),
        ("## How to begin here\nPress the red button.", ["## How to begin here", "Press the red button."]),
        ("# Limits\nThere are no limits at all.", ["There are no limits at all."]),
        ("what\tmost\na long name\t128\nmore text follows here", ["what most a long name 128",
                                                                   "more text follows here"]),
        ("申请假期需要书面。每年三十天。", ["申请假期需要书面。", "每年三十天。"]),
        ("Too short", ["Too short"]),
        ("", []),
    ],
)  # fmt: skip
def test_sentences(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


def test_a_long_sentence_is_cut_at_a_word() -> None:
    (cut,) = split_sentences("word " * 300)
    assert len(cut) <= MAX_WORDS
    assert cut.endswith("word\u2026")


def test_words_of_all_scripts() -> None:
    assert split_words("Größe, a 7 of KEYS") == ["größe", "7", "of", "keys"]
    assert split_words("每年三十天") == ["每年", "年三", "三十", "十天"]


@pytest.mark.parametrize(
    ("messages", "question"),
    [
        ([{"role": "user", "content": "first"}, {"role": "assistant", "content": "x"}], "first"),
        ([{"role": "user", "content": [{"type": "text", "text": "why?"}, {"type": "image_url"}]}], "why?"),
        ([{"role": "user", "content": "<context>\n...\n</context>\n\nwho?"}], "who?"),
        ([{"role": "user", "content": "  "}], ""),
        ([], ""),
    ],
)
def test_the_question_is_what_the_user_said_last(messages: list[Any], question: str) -> None:
    assert last_question(messages) == question


def test_passages_are_read_with_their_numbers() -> None:
    content = (
        '<context>\n<source id="2" name="a &gt; b">one &lt;/source> line</source>\n'
        "<source>two</source>\n</context>\nwhat?"
    )
    messages = [{"role": "system", "content": None}, {"role": "user", "content": content}]
    assert read_passages(messages) == [NumberedPassage(2, "one </source> line"), NumberedPassage(2, "two")]


def test_passages_of_a_search_are_numbered_by_their_files() -> None:
    of_a = {"source": "a.txt", "file_id": "f1"}
    found = number_passages(["x", "y", "z"], [of_a, {"name": "b"}, of_a], [3, 2, 1])
    assert [passage.number for passage in found.passages] == [1, 2, 1]
    first, second = found.sources
    assert first["source"] == {"type": "file", "id": "f1", "name": "a.txt"}
    assert (first["document"], first["distances"]) == (["x", "z"], [3, 1])
    assert second["metadata"] == [{"name": "b", "source": "b"}]


def test_files_of_one_name_have_numbers_of_their_own() -> None:
    metadatas = [{"source": "README.md", "name": "README.md", "file_id": key} for key in ("f1", "f2", "f1")]
    found = number_passages(["x", "y", "z"], metadatas, [3, 2, 1])
    assert [passage.number for passage in found.passages] == [1, 2, 1]
    assert [source["source"]["id"] for source in found.sources] == ["f1", "f2"]
    places = [metadata["source"] for source in found.sources for metadata in source["metadata"]]
    assert places == ["README.md", "README.md", "f2"]


# Choosing -------------------------------------------------------------------------------------------------


def chosen(
    question: str, *texts: str, most: int = 3, share: float = 0.3, passage_share: float = 0.5
) -> list[tuple[str, int]]:
    passages = [NumberedPassage(number, text) for number, text in enumerate(texts, 1)]
    return [
        (quote.text, quote.number) for quote in choose_quotes(question, passages, most, share, passage_share)
    ]


def test_the_sentence_with_the_words_of_the_question_comes_first() -> None:
    assert chosen("How many days of leave are there in a year?", KEYS, LEAVE)[0] == (
        "Every employee has 30 days of leave in a year.",
        2,
    )
    assert chosen("How is an API key ended?", KEYS, LEAVE) == [
        ("An API key is ended by its owner or an administrator.", 1)
    ]


def test_words_match_with_other_endings() -> None:
    assert chosen("installed backups?", "The backup was installing itself.")
    assert not chosen("the cat", "Cathedrals are tall buildings there.")


def test_nothing_is_chosen_for_common_words_alone() -> None:
    texts = [f"This is the sentence about subject{number} of the book." for number in range(10)]
    assert chosen("What is the price of the elephant?", *texts) == []
    assert chosen("", LEAVE) == []
    assert chosen("leave", "") == []


PUMP = "The pump is switched off with the green lever. How to do this is told to the operator of the station."
LOST = "The key is shown once. What is lost is made anew by the owner of the account."
PUMPE = "Die Pumpe ist mit dem Hebel auszuschalten. Wie das geht, ist der Anleitung zu entnehmen."


@pytest.mark.parametrize(
    "question",
    [
        "What is the price of the ticket?",
        "How is the invoice of the customer paid?",
        "What is the capital of the country?",
        "Wie hoch ist der Preis der Karte?",
        "Who is the owner of the elephant in the zoo of the town?",
        "票价是多少?",
    ],
)
def test_passages_that_share_a_few_words_with_the_question_are_not_quoted(question: str) -> None:
    assert chosen(question, PUMP, LOST, LEAVE, KEYS, PUMPE, "每年三十天假期。申请假期需要书面。") == []


def test_a_sentence_counts_with_the_rest_of_its_passage() -> None:
    question = "How are lost keys of an account made anew by the owner?"
    assert chosen(question, LOST, share=0.0)[0][0].startswith("What is lost is made anew")
    apart = chosen("Is the pump of the station switched off by a lever?", *PUMP.split(". "), share=0.3)
    assert [number for _, number in apart] == [1]
    assert chosen("Where is the key?", "The key. " * 3 + "Of no other thing.", passage_share=1.0)
    assert not chosen("Where is the key of the gate?", LOST, passage_share=1.0)


def test_the_words_of_a_question_that_tell_what_it_is_about() -> None:
    assert content_words("How many days of leave are there in a year?") == {"days", "leave", "year"}
    assert content_words("Wie viele Tage Urlaub gibt es im Jahr?") == {"tage", "urlaub", "jahr"}
    assert content_words("每年多少天假期?") == {"每年", "天假", "假期"}
    assert content_words("サーバーの設定は?") == {*split_words("サーバー"), "設定"}
    assert content_words("who is it?") == {"who", "is", "it"}
    assert content_words("") == set()


def test_no_more_than_asked_for_and_none_twice() -> None:
    texts = [f"The leave of team {number} is thirty days." for number in range(9)]
    assert len(chosen("leave days team", *texts, most=2)) == 2
    assert chosen("leave days", LEAVE, LEAVE) == [("Every employee has 30 days of leave in a year.", 1)]


def test_scripts_without_blanks_are_compared_by_pairs() -> None:
    assert chosen("每年多少天假期?", "申请假期需要书面。每年三十天假期。") == [("每年三十天假期。", 1)]


# The door -------------------------------------------------------------------------------------------------


class Search:
    """Answers every search with the same passages, and notes what it was asked."""

    def __init__(self, *passages: tuple[str, str]) -> None:
        self.passages = passages
        self.asked: list[tuple[str, Sequence[str], str, int | None]] = []

    async def find(self, collection_id: str) -> None:
        return None

    async def list(self, user_id: str) -> Sequence[Mapping[str, Any]]:
        return []

    async def search(
        self, user_id: str, names: Sequence[str], query: str, k: int | None
    ) -> Sequence[Mapping[str, Any]]:
        self.asked.append((user_id, names, query, k))
        return [
            {"text": text, "score": 0.5, "metadata": {"source": name, "file_id": f"id of {name}"}}
            for name, text in self.passages
        ]


@pytest.fixture
def search() -> Search:
    return Search(("leave.txt", LEAVE), ("keys.txt", KEYS))


def without_web_library(scope: CallScope) -> Any:
    raise GatewayError(ErrorKind.NOT_CONFIGURED, "cannot give plugins starlette.requests")


@pytest.fixture
async def plugged(tmp_path: Path, search: Search) -> AsyncIterator[Plugged]:
    installed = install(replace(make_host(tmp_path), knowledge=search), asyncio.get_running_loop())
    try:
        made = with_builtin(
            "extractive",
            make_request=without_web_library,
            collections="k1, k2",
            passages=5,
            introduction="It says:",
        )
        async with made:
            yield made
    finally:
        installed.close()


async def answer(plugged: Plugged, question: str, **scope: Any) -> list[Any]:
    loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "extractive")
    assert loaded.plugin.missing == ()
    body = {"model": "extractive", "messages": [{"role": "user", "content": question}], "stream": True}
    items = await loaded.call("pipe", scope_of(actor_of("ada"), **scope), {"body": body})
    return [item async for item in items]


async def test_it_searches_collections_and_cites_with_events(plugged: Plugged, search: Search) -> None:
    said = await answer(plugged, "How many days of leave in a year?")
    assert said == ["It says:\n\n> Every employee has 30 days of leave in a year. [1]"]
    assert search.asked == [("ada", ["k1", "k2"], "How many days of leave in a year?", 5)]
    events = [event for _, event in plugged.events.emitted]
    assert [event["type"] for event in events] == ["status", "source", "source", "status"]
    assert events[0]["data"] == {"description": "Searching the documents", "done": False}
    assert events[1]["data"] == {
        "source": {"type": "file", "id": "id of leave.txt", "name": "leave.txt"},
        "document": [LEAVE],
        "metadata": [{"source": "leave.txt", "file_id": "id of leave.txt"}],
        "distances": [0.5],
    }
    assert events[3]["data"] == {"description": "Read 2 passages, quoted 1 sentence", "done": True}


async def test_without_a_message_the_sources_stand_in_the_answer(plugged: Plugged) -> None:
    target = replace(scope_of(actor_of("ada")).target, chat_id="", message_id="")
    told, text = await answer(plugged, "How is an API key ended?", target=target)
    assert [source["source"]["name"] for source in told["sources"]] == ["leave.txt", "keys.txt"]
    assert text.endswith("> An API key is ended by its owner or an administrator. [2]")
    assert "source" not in [event["type"] for _, event in plugged.events.emitted]


async def test_it_says_that_nothing_fits(plugged: Plugged) -> None:
    assert await answer(plugged, "Who painted Guernica?") == [
        "Nothing in the documents answers this in its own words."
    ]


async def test_passages_of_the_request_go_before_a_search(plugged: Plugged, search: Search) -> None:
    context = f'<context>\n<source id="4" name="leave">{LEAVE}</source>\n</context>\n'
    said = await answer(plugged, f"{context}How many days of leave in a year?")
    assert said == ["It says:\n\n> Every employee has 30 days of leave in a year. [4]"]
    assert search.asked == []
    assert [event["type"] for _, event in plugged.events.emitted] == ["status"]


async def test_tasks_are_left_to_the_gateway(plugged: Plugged) -> None:
    assert await answer(plugged, "Write a title", task="title_generation") == []
    assert plugged.events.emitted == []


async def test_without_a_question_it_asks_for_one(plugged: Plugged) -> None:
    assert await answer(plugged, "  ") == ["Please ask a question."]


async def test_without_documents_it_says_so() -> None:
    async with with_builtin("extractive") as plugged:
        assert await answer(plugged, "How many days?") == [
            "There are no documents to answer from: attach files or a collection."
        ]


# Whole requests -------------------------------------------------------------------------------------------


async def ask(world: World, question: str, files: list[dict[str, Any]]) -> tuple[dict[str, Any], list[str]]:
    """Return the completion that a caller gets from the model, and the warnings."""
    async with with_builtin("extractive") as plugged:
        catalog = Catalog(FakeRecords(), plugged.tasks, CatalogOptions())
        catalog.use([FunctionSource(plugged.registry, plugged.events, plugged.tasks)])
        await catalog.list(ANN)
        attachments = DocumentAttachments(world.documents, AttachmentOptions())
        pipeline = Pipeline(catalog, NoFilters(), attachments, NoTools())
        body = {"model": "extractive", "messages": [{"role": "user", "content": question}]}
        request = ChatRequest("extractive", body, stream=False, files=files, options={"files": files})
        found = await pipeline.run(request, ANN)
        assert found.completion is not None
        return found.completion.body, found.warnings


async def test_a_collection_is_answered_from_with_the_numbers_of_its_sources(tmp_path: Path) -> None:
    world = build_world(tmp_path)
    collection = await world.collection(ANN, "handbook")
    await world.shelve(a_file("f1", name="leave.txt"), LEAVE, collection)
    await world.shelve(a_file("f2", name="keys.txt"), KEYS, collection)
    reference = {"type": "collection", "id": collection}
    body, warnings = await ask(world, "How is an API key ended?", [reference])
    assert warnings == []
    names = [metadata["source"] for metadata in body["sources"][0]["metadata"]]
    number = names.index("keys.txt") + 1
    content = body["choices"][0]["message"]["content"]
    assert content == f"> An API key is ended by its owner or an administrator. [{number}]"
    assert len(body["sources"]) == 1


async def test_a_file_that_does_not_answer_gives_an_honest_answer(tmp_path: Path) -> None:
    world = build_world(tmp_path)
    await world.shelve(a_file("f1", name="leave.txt"), LEAVE)
    body, _ = await ask(world, "Which elephant painted Guernica?", [{"type": "file", "id": "f1"}])
    assert body["choices"][0]["message"]["content"].startswith("Nothing in the documents answers this")


def test_sources_that_are_not_closed_are_read_once() -> None:
    for text in ("<source" * 200_000, '<source id="1">' * 100_000):
        assert read_passages([{"role": "user", "content": text}]) == []


def test_sentences_without_words_are_read_once() -> None:
    assert len(split_sentences("a. " + ". " * 500_000)) == 1


def test_no_more_quotes_are_compared_than_are_wanted() -> None:
    compared = []

    class Counted(str):
        __slots__ = ()

        def __contains__(self, part: str) -> bool:
            compared.append(part)
            return super().__contains__(part)

    texts = [Counted("leave"), Counted("leave is asked for"), *(Counted(f"rule {n:04}") for n in range(1000))]
    quotes = distinct_quotes(
        [QuotedSentence(text, 1, 1 - place / 4000) for place, text in enumerate(texts)], 3
    )
    assert [quote.text for quote in quotes] == ["leave", "rule 0000", "rule 0001"]
    assert len(compared) < 10


def test_what_fits_much_less_than_the_best_is_not_quoted() -> None:
    assert distinct_quotes(
        [QuotedSentence("a", 1, 1.0), QuotedSentence("b", 1, 0.5), QuotedSentence("c", 1, 0.4)], 3
    ) == [
        QuotedSentence("a", 1, 1.0),
        QuotedSentence("b", 1, 0.5),
    ]
    assert distinct_quotes([], 3) == []
