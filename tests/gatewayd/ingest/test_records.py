"""Passage ids as bytes, and prefixes of embedded texts."""

from gatewayd.ingest.records import ID_BYTES, EmbeddingPrefixes, EmbeddingPurpose, pack_ids, unpack_ids

IDS = [1, -2, 2**40]
E5 = EmbeddingPrefixes("query: ", "passage: ")


def test_ids_are_packed_as_little_endian_numbers() -> None:
    assert pack_ids(IDS) == b"".join(number.to_bytes(ID_BYTES, "little", signed=True) for number in IDS)
    assert list(unpack_ids(pack_ids(IDS))) == IDS
    assert pack_ids([]) == b""


def test_each_purpose_has_its_own_prefix() -> None:
    assert [E5.before(purpose) for purpose in (EmbeddingPurpose.QUERY, EmbeddingPurpose.PASSAGE)] == [
        "query: ",
        "passage: ",
    ]


def test_the_model_s_own_prefixes_are_not_marked() -> None:
    assert EmbeddingPrefixes().mark() == E5.mark(E5) == ""


def test_other_prefixes_are_told_apart() -> None:
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
