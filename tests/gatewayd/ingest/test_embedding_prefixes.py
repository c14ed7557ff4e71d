"""What is put before texts that are embedded."""

from gatewayd.ingest.embedding_prefixes import EmbeddingPrefixes
from gatewayd.ingest.records import EmbeddingPurpose

E5 = EmbeddingPrefixes("query: ", "passage: ")


def test_each_purpose_has_its_own() -> None:
    assert [E5.before(purpose) for purpose in (EmbeddingPurpose.QUERY, EmbeddingPurpose.PASSAGE)] == [
        "query: ",
        "passage: ",
    ]


def test_the_model_s_own_are_not_marked() -> None:
    assert EmbeddingPrefixes().mark() == E5.mark(E5) == ""


def test_others_are_told_apart() -> None:
    marks = {
        prefixes.mark(own)
        for prefixes, own in (
            (E5, None),
            (EmbeddingPrefixes(), E5),
            (EmbeddingPrefixes("q"), None),
            (EmbeddingPrefixes("", "q"), None),
        )
    }
    assert len(marks) == 4
    assert all(len(mark) == 13 and mark[0] == ":" for mark in marks)
