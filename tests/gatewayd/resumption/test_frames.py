"""Tests for gatewayd.resumption.frames."""

import pytest

from gatewayd.resumption.frames import FrameNumbering, frames_after


@pytest.mark.parametrize(
    ("data", "frames"),
    [
        (b"data: a\n\n", [b"id: 1\ndata: a\n\n"]),
        (b"data: a\n\ndata: b\n\n", [b"id: 1\ndata: a\n\n", b"id: 2\ndata: b\n\n"]),
        (b"event: e\r\ndata: a\r\n\r\n", [b"id: 1\nevent: e\ndata: a\n\n"]),
        (b"data: a\r\rdata: b\r\r", [b"id: 1\ndata: a\n\n", b"id: 2\ndata: b\n\n"]),
        (b"id: 77\ndata: a\nid\n\n", [b"id: 1\ndata: a\n\n"]),
        (b"data: x\nid: 9\ndata: y\n\n", [b"id: 1\ndata: x\ndata: y\n\n"]),
        (b": keep-alive\n\n\n\ndata: a\n\n", [b"id: 1\ndata: a\n\n"]),
        (b": c\ndata: a\n\n", [b"id: 1\n: c\ndata: a\n\n"]),
        (b'data: {"t": "\\nid: 3"}\n\n', [b'id: 1\ndata: {"t": "\\nid: 3"}\n\n']),
        (b"", []),
    ],
)
def test_each_frame_gets_its_number_and_no_other_id(data: bytes, frames: list[bytes]) -> None:
    assert FrameNumbering().feed(data) == frames


def test_frame_in_pieces_is_one_frame_and_a_cut_one_is_none() -> None:
    numbering = FrameNumbering()
    pieces = (b"da", b"ta: a\n", b"\nda")
    assert [numbering.feed(data) for data in pieces] == [[], [], [b"id: 1\ndata: a\n\n"]]
    assert numbering.finish(is_complete=False) == []
    assert numbering.feed(b"data: e\n\n") == [b"id: 2\ndata: e\n\n"]
    assert numbering.feed(b"data: f") == []
    assert numbering.finish(is_complete=True) == [b"id: 3\ndata: f\n\n"]


def test_frames_behind_a_number_are_selected() -> None:
    joined = b"".join(FrameNumbering().feed(b"data: a\n\ndata: b\n\ndata: c\n\n")).replace(b"id: ", b"id: 1")
    first = joined.index(b"id: 12")
    assert frames_after(joined, 11, 0) == joined
    assert frames_after(joined, 11, 11) == joined[first:]
    assert frames_after(joined, 11, 13) == b""
