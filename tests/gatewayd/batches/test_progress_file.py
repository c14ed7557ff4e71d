"""Tests for gatewayd.batches.progress_file."""

from pathlib import Path

import pytest

from gatewayd.batches.progress_file import FinishedLine, ProgressFile

FIRST, SECOND = FinishedLine(2, True, b'{"a": 1}'), FinishedLine(1, False, b"{}")


def opened(path: Path, total: int = 3) -> ProgressFile:
    progress = ProgressFile(path)
    progress.open(total)
    return progress


def test_answers_survive_at_every_byte(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "p"
    progress = opened(path)
    progress.append(FIRST)
    progress.append(SECOND)
    progress.close()
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        progress = opened(path)
        kept = [FIRST, SECOND][: (size >= first) + (size == len(whole))]
        assert list(progress.records()) == kept
        assert (progress.completed, progress.failed) == (int(size >= first), int(size == len(whole)))
        assert [progress.is_done(number) for number in (1, 2, 3)] == [len(kept) == 2, len(kept) > 0, False]
        # What comes next is not behind a half record.
        progress.append(FinishedLine(3, True, b"[]"))
        progress.close()
        assert list(opened(path).records()) == [*kept, FinishedLine(3, True, b"[]")]


def test_a_file_of_another_batch_counts_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "p"
    path.write_bytes(b"9 1 {}\nfoo\n")
    progress = opened(path)
    assert (list(progress.records()), path.read_bytes()) == ([], b"")
    progress.remove()
    assert not path.exists()
    with pytest.raises(RuntimeError, match="not open"):
        progress.append(FIRST)
