"""Passage ids as bytes."""

from gatewayd.ingest.vector_codec import ID_BYTES, pack_ids, unpack_ids

IDS = [1, -2, 2**40]


def test_ids_are_packed_as_little_endian_numbers() -> None:
    assert pack_ids(IDS) == b"".join(number.to_bytes(ID_BYTES, "little", signed=True) for number in IDS)
    assert list(unpack_ids(pack_ids(IDS))) == IDS
    assert pack_ids([]) == b""
