import pytest

from gatewayd.storage.search.bigrams import (
    MAX_PHRASE_PAIRS,
    MAX_PHRASES,
    SegmentedQuery,
    is_letter,
    segment_query,
    segment_text,
)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain English",
        "Räksmörgås, naïve",
        "Привет мир",
        "مرحبا",
        "שלום",
        "नमस्ते",
        "e\u0301 \U0001f600 \x00",
    ],
)
def test_other_scripts_stay_as_they_are(text: str) -> None:
    assert segment_text(text) is None
    assert segment_query(text) == SegmentedQuery(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("机器学习", "机器 器学 学习 习"),
        ("学", "学"),
        ("データベース", "デー ータ タベ ベー ース ス"),
        ("학교에서 책", "학교 교에 에서 서 책"),
        ("Python入門 第3章", "Python 入門 門 第 3 章"),
        ("你好,世界。", "你好 好 , 世界 界 。"),
        ("\U00020000\U00020001", "\U00020000\U00020001 \U00020001"),
    ],
)
def test_a_run_becomes_pairs_and_its_last_character(text: str, words: str) -> None:
    found = segment_text(text)
    assert found is not None
    assert found.split() == words.split()


def test_marks_are_no_characters() -> None:
    assert (segment_text("กินข้าว") or "").split() == ["กน", "นข", "ขา", "าว", "ว"]
    assert (segment_text("\u0e34") or "").split() == []
    # Decomposed, as one system writes file names, and in half the width.
    assert segment_text("\u1112\u1161\u11ab\u1100\u1173\u11af") == segment_text("한글")
    assert segment_text("ﾃﾞｰﾀ") == segment_text("データ")


def test_a_query_has_pairs_and_longer_runs_as_phrases() -> None:
    asked = segment_query("机器学习 Python 数据")
    assert asked.text.split() == ["机器", "器学", "学习", "Python", "数据"]
    assert asked.phrases == ("机器 器学 学习",)
    assert segment_query("书").text.split() == ["书"]


def test_what_a_query_may_cost_is_bounded() -> None:
    asked = segment_query("一二三" * 1000)
    assert [len(phrase.split()) for phrase in asked.phrases] == [MAX_PHRASE_PAIRS]
    many = " ".join(chr(0x4E00 + number) + "一二" for number in range(100))
    assert len(segment_query(many).phrases) == MAX_PHRASES
    assert len(segment_query("一二三 " * 100).phrases) == 1


def test_a_long_text_becomes_three_times_as_long() -> None:
    text = "机器学习ガ" * 40_000
    assert len(segment_text(text) or "") == 3 * len(text)


def test_single_characters_are_told_from_words() -> None:
    assert is_letter("书")
    assert not any(map(is_letter, ("书本", "a", "", "é", "3")))
