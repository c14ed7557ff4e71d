from collections.abc import AsyncIterator

import pytest

from gatewayd.ingest.records import FileStatus, ScopeKind, SearchScope
from gatewayd.knowledge.records import CollectionLink
from gatewayd.storage.engine.database import Database
from gatewayd.storage.search import file_fts_cache, term_selection
from gatewayd.storage.search.lexical import MAX_QUERY_CHARACTERS, MAX_TERMS, SPACED_TERM_PATTERN, split_terms
from tests.fakes.storage.passages import Shelf, document, extraction, open_shelf

A, B = SearchScope(ScopeKind.COLLECTION, "a"), SearchScope(ScopeKind.COLLECTION, "b")
FILE = SearchScope(ScopeKind.FILE, "f")
TEXTS = (
    "The quick brown fox jumps over the lazy dog",
    "A fox runs in the forest, and other animals run with the fox",
    "Räksmörgås is a Swedish sandwich",
    "Set shared_buffers to 128MB in postgresql.conf",
)


@pytest.fixture
async def shelf(database: Database) -> AsyncIterator[Shelf]:
    async with open_shelf(database) as opened:
        await opened.collect("a")
        await opened.collect("b")
        await opened.upload("f", "a")
        await opened.publish("f", *TEXTS)
        yield opened


@pytest.mark.parametrize("scope", [A, FILE])
async def test_words_are_found_in_any_form(shelf: Shelf, scope: SearchScope) -> None:
    assert await shelf.find(scope, "SANDWICHES") == [TEXTS[2]]
    assert await shelf.find(scope, "räksmörgås") == [TEXTS[2]]
    assert set(await shelf.find(scope, "jumping runs")) == {TEXTS[0], TEXTS[1]}
    assert await shelf.find(scope, "shared_buffers?") == [TEXTS[3]]
    assert await shelf.find(scope, "nothing alike") == []


@pytest.mark.parametrize("scope", [A, FILE])
async def test_a_question_with_presentation_forms_finds_plain_letters_and_these(
    shelf: Shelf, scope: SearchScope
) -> None:
    await shelf.publish("f", "the office is closed", "a kept o\ufb03ce", "\u0633\u0644\u0627\u0645")
    assert set(await shelf.find(scope, "o\ufb03ce")) == {"the office is closed", "a kept o\ufb03ce"}
    assert await shelf.find(scope, "\ufeb3\ufefc\ufee1") == ["\u0633\u0644\u0627\u0645"]


@pytest.mark.parametrize("scope", [A, FILE])
async def test_any_word_is_enough_and_more_are_better(shelf: Shelf, scope: SearchScope) -> None:
    found = await shelf.find(scope, "forest fox animals unknown")
    assert found == [TEXTS[1], TEXTS[0]]
    assert await shelf.find(scope, "forest fox animals", limit=1) == [TEXTS[1]]
    assert await shelf.find(scope, "fox", limit=0) == []


QUERIES = (
    *("", " ", "!?", "\0", "a\0b", "\ud800", "'", '"', "' OR '1", '" OR "', "fox'", "NEAR(fox dog)", "fox*"),
    *("text:fox", "-fox", "^fox", "fox AND", "(((", "fox & !dog", "fox <-> dog", "fox:*", "fox\\", "o'fox"),
    *("%s $1 ?1 {0}", "x" * 100_000, "word " * 100_000, "\u0e01\u0e34\u0e19 \u4f60\u597d", "\u0301"),
    "http://a.b/c?d=e&f",
)


@pytest.mark.parametrize("scope", [A, FILE])
async def test_any_text_is_a_good_query(shelf: Shelf, scope: SearchScope) -> None:
    for query in QUERIES:
        assert len(await shelf.words.search(scope, query, 10)) <= len(TEXTS), query[:50]


async def test_only_the_scope_is_searched(shelf: Shelf) -> None:
    await shelf.upload("g", "b")
    await shelf.publish("g", "another fox")
    assert len(await shelf.find(A, "fox")) == 2
    assert await shelf.find(B, "fox") == ["another fox"]
    assert await shelf.find(SearchScope(ScopeKind.FILE, "g"), "fox") == ["another fox"]
    for nothing in ("c", "f' OR 'a", "x" * 70, "a\0", ""):
        for kind in ScopeKind:
            assert await shelf.words.search(SearchScope(kind, nothing), "fox", 5) == []
            assert await shelf.words.check(SearchScope(kind, nothing)) == []


async def test_links_decide_what_a_collection_finds(shelf: Shelf) -> None:
    await shelf.collections.link(CollectionLink("b", "f", "u"))
    assert len(await shelf.find(B, "fox")) == 2
    await shelf.collections.unlink("a", ["f"])
    assert await shelf.find(A, "fox") == []
    assert len(await shelf.find(B, "fox")) == 2
    await shelf.collections.remove("b")
    assert await shelf.find(B, "fox") == []
    assert len(await shelf.find(FILE, "fox")) == 2


async def test_a_file_in_memory_is_never_out_of_date(shelf: Shelf) -> None:
    assert len(await shelf.find(FILE, "fox")) == 2
    await shelf.passages.stage("f", extraction("one wolf"))
    assert await shelf.find(FILE, "wolf") == []
    await shelf.passages.publish(document("f", status=FileStatus.COMPLETED))
    assert await shelf.find(FILE, "fox wolf") == ["one wolf"]
    await shelf.files.remove("f")
    assert await shelf.find(FILE, "wolf") == []


async def test_few_files_stay_in_memory(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_fts_cache, "MAX_FILES", 2)
    for number in range(5):
        await shelf.upload(f"n{number}")
        await shelf.publish(f"n{number}", f"wolf {number}")
    for _ in range(2):
        for number in range(5):
            assert await shelf.find(SearchScope(ScopeKind.FILE, f"n{number}"), "wolf") == [f"wolf {number}"]


async def test_a_rare_word_weighs_more_than_frequent_ones(shelf: Shelf) -> None:
    await shelf.upload("g", "b")
    others = [f"server setting number {number}" for number in range(20)]
    await shelf.publish("g", *others, "the timeout of a connection to the upstream server")
    for scope in (B, SearchScope(ScopeKind.FILE, "g")):
        assert (await shelf.find(scope, "server setting timeout"))[0].startswith("the timeout")


async def test_equal_scores_come_in_the_order_of_the_passages(shelf: Shelf) -> None:
    await shelf.upload("g", "b")
    await shelf.publish("g", *["equal words"] * 5)
    for scope in (B, SearchScope(ScopeKind.FILE, "g")):
        hits = await shelf.words.search(scope, "equal", 10)
        assert [hit.passage_id for hit in hits] == sorted(hit.passage_id for hit in hits)
        assert len({hit.score for hit in hits}) == 1


def test_the_longest_of_many_words_are_kept() -> None:
    many = [f"{'w' * (number % 7)}{number}" for number in range(100)]
    kept = split_terms(" ".join(many + many))
    assert len(kept) == MAX_TERMS
    assert min(map(len, kept)) >= sorted(map(len, many))[-MAX_TERMS]
    assert split_terms("One, two; ONE-two: three_four") == ["one", "two", "three", "four"]
    assert split_terms("see www.example.com/a-b", SPACED_TERM_PATTERN) == ["see", "www.example.com/a-b"]
    assert split_terms("a " * MAX_QUERY_CHARACTERS + "late") == ["a"]


async def test_a_large_scope_is_searched_by_its_rare_words_first(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(term_selection, "MAX_SCANNED_PASSAGES", 0)
    monkeypatch.setattr(term_selection, "FEW_PASSAGES", 0)
    await shelf.upload("g", "b")
    await shelf.publish("g", "another fox in another forest")
    for scope in (A, FILE):
        assert await shelf.find(scope, "forest fox animals unknown") == [TEXTS[1], TEXTS[0]]
        assert await shelf.find(scope, "forest fox animals", limit=1) == [TEXTS[1]]
        assert await shelf.find(scope, "unknown words") == []
        scores = [hit.score for hit in await shelf.words.search(scope, "forest fox animals", 10)]
        assert scores == sorted(scores, reverse=True)
    await shelf.passages.stage("f", extraction("a wolf"))
    assert await shelf.find(A, "wolf") == []


UNSPACED = (
    "本章介绍机器学习的基本概念,以及如何训练模型。",
    "学习机器翻译的器材清单,习惯了就不难。",
    "データベースの接続設定を変更する方法について説明します。",
    "학교에서 데이터베이스를 설정하는 방법을 배웁니다.",
    "วิธีการตั้งค่าฐานข้อมูลสำหรับผู้ใช้ใหม่",
    "Python入門 第3章: 辞書と集合",
)


@pytest.fixture
async def unspaced(shelf: Shelf) -> Shelf:
    await shelf.upload("g", "b")
    await shelf.publish("g", *UNSPACED)
    return shelf


PLACES = {
    "机器学习": 0,
    "训练模型": 0,
    "翻译": 1,
    "接続設定": 2,
    "設定を変更": 2,
    "데이터베이스": 3,
    "설정": 3,
    "ฐานข้อมูล": 4,
    "入門": 5,
    "Python 辞書": 5,
    "译": 1,
    "章 3": 5,
    "ﾃﾞｰﾀﾍﾞｰｽ": 2,
}


@pytest.mark.parametrize("scope", [B, SearchScope(ScopeKind.FILE, "g")])
async def test_words_within_a_run_are_found(unspaced: Shelf, scope: SearchScope) -> None:
    first = {query: (await unspaced.find(scope, query))[:1] for query in PLACES}
    assert first == {query: [UNSPACED[number]] for query, number in PLACES.items()}


@pytest.mark.parametrize("scope", [B, SearchScope(ScopeKind.FILE, "g")])
async def test_a_phrase_comes_before_its_parts(shelf: Shelf, scope: SearchScope) -> None:
    parts = [f"学习器学机器{chr(0x4E00 + number)}机器器学学习" for number in range(20)]
    await shelf.upload("g", "b")
    await shelf.publish(
        "g", *parts, "这里有很多别的内容,然后才是机器学习,后面还有更多的内容。", *reversed(parts)
    )
    assert "机器学习" in (await shelf.find(scope, "机器学习"))[0]


async def test_segmented_words_come_and_go(unspaced: Shelf) -> None:
    assert await unspaced.words.check(B) == []
    await unspaced.collections.link(CollectionLink("a", "g", "u"))
    assert len(await unspaced.find(A, "机器")) == 2
    await unspaced.collections.unlink("a", ["g"])
    assert await unspaced.find(A, "机器") == []
    await unspaced.publish("g", "一个新的版本")
    assert await unspaced.find(B, "机器") == []
    assert await unspaced.find(B, "版本") == ["一个新的版本"]
    await unspaced.files.remove("g")
    assert await unspaced.find(B, "版本") == []
