"""Passage ids as bytes."""

from gatewayd.ingest.vector_codec import ID_BYTES, packed, unpacked

IDS = [1, -2, 2**40]


def test_ids_are_packed_as_little_endian_numbers() -> None:
    assert packed(IDS) == b"".join(number.to_bytes(ID_BYTES, "little", signed=True) for number in IDS)
    assert list(unpacked(packed(IDS))) == IDS
    assert packed([]) == b""
