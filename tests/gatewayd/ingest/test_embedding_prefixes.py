"""What is put before texts that are embedded."""

from gatewayd.ingest.embedding_prefixes import Prefixes
from gatewayd.ingest.records import Purpose

E5 = Prefixes("query: ", "passage: ")


def test_each_purpose_has_its_own() -> None:
    assert [E5.before(purpose) for purpose in (Purpose.QUERY, Purpose.PASSAGE)] == ["query: ", "passage: "]


def test_the_model_s_own_are_not_marked() -> None:
    assert Prefixes().mark() == E5.mark(E5) == ""


def test_others_are_told_apart() -> None:
    marks = {
        prefixes.mark(own)
        for prefixes, own in ((E5, None), (Prefixes(), E5), (Prefixes("q"), None), (Prefixes("", "q"), None))
    }
    assert len(marks) == 4
    assert all(len(mark) == 13 and mark[0] == ":" for mark in marks)
