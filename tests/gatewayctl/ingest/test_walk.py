"""Finding the files of a directory."""

import inspect
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

from gatewayctl.ingest.folder import Folder
from gatewayctl.ingest.rules import Rules
from gatewayctl.ingest.walk import Choice, Walk

ALL = Choice(Rules.of())


def make(top: Path, *paths: str) -> None:
    for path in paths:
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(path)


def walked(top: Path, choice: Choice = ALL) -> tuple[list[str], Walk]:
    """Return the paths that are found, and the walk."""
    with Folder(top, follow=choice.follow) as folder:
        walk = Walk(folder, choice)
        return ["/".join(candidate.parts) for candidate in walk], walk


class Forbidding(Folder):
    """Refuses to open one path."""

    forbidden: Sequence[str] = ()

    @contextmanager
    def listed(self, parts: Sequence[str]) -> Iterator[list["os.DirEntry[str]"]]:
        self._refuse(parts)
        with super().listed(parts) as entries:
            yield entries

    def open_file(self, parts: Sequence[str]) -> BinaryIO:
        self._refuse(parts)
        return super().open_file(parts)

    def _refuse(self, parts: Sequence[str]) -> None:
        if list(parts) == list(self.forbidden):
            raise PermissionError(13, "Permission denied")


def test_the_order_is_always_the_same(tmp_path: Path) -> None:
    make(tmp_path, "b/y.txt", "b/x.txt", "c.txt", "a.txt", "b/d/z.txt", "B.txt")
    paths, walk = walked(tmp_path)
    assert paths == ["B.txt", "a.txt", "b/d/z.txt", "b/x.txt", "b/y.txt", "c.txt"]
    assert (walk.skipped, walk.problems) == (0, [])


def test_sizes_are_told_and_large_files_left_out(tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(b"x" * 10)
    (tmp_path / "large").write_bytes(b"x" * 11)
    with Folder(tmp_path) as folder:
        walk = Walk(folder, Choice(Rules.of(), max_size=10))
        assert [(candidate.parts, candidate.size) for candidate in walk] == [(("small",), 10)]
    assert walk.skipped == 1


def test_links_and_special_files_are_passed_over(tmp_path: Path) -> None:
    make(tmp_path, "top/a.txt", "elsewhere/b.txt")
    top = tmp_path / "top"
    (top / "inside").symlink_to("a.txt")
    (top / "outside").symlink_to(tmp_path / "elsewhere")
    (top / "nowhere").symlink_to("absent")
    os.mkfifo(top / "pipe")
    paths, walk = walked(top)
    assert (paths, walk.skipped, walk.problems) == (["a.txt"], 4, [])


def test_links_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    make(tmp_path, "top/sub/a.txt", "elsewhere/b.txt")
    top = tmp_path / "top"
    (top / "sub" / "up").symlink_to(top)
    (top / "sub" / "self").symlink_to(".")
    (top / "outside").symlink_to(tmp_path / "elsewhere")
    (top / "nowhere").symlink_to("absent")
    paths, walk = walked(top, Choice(Rules.of(), follow=True))
    assert paths == ["outside/b.txt", "sub/a.txt"]
    assert walk.skipped == 2
    assert [(each.path, each.error) for each in walk.problems] == [
        ("nowhere", "cannot follow the link: it leads nowhere")
    ]


def test_patterns_are_read_on_the_way(tmp_path: Path) -> None:
    make(tmp_path, "a.log", "sub/a.log", "sub/b.md", "sub/c.md", "skip/deep/x.md")
    (tmp_path / ".gitignore").write_bytes(b"\xef\xbb\xbf*.log\nskip/\n")
    (tmp_path / "sub" / ".gitignore").write_text("b.md\n!a.log\n")
    (tmp_path / "sub" / ".gatewayignore").write_text("!b.md\nc.md\n")
    assert walked(tmp_path)[0] == ["sub/a.log", "sub/b.md"]
    assert walked(tmp_path, Choice(Rules.of(), ignore_files=False))[0] == [
        "a.log",
        "skip/deep/x.md",
        "sub/a.log",
        "sub/b.md",
        "sub/c.md",
    ]


def test_a_directory_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    make(tmp_path, "a.txt", "sub/b.txt")
    with Forbidding(tmp_path) as folder:
        folder.forbidden = ["sub"]
        walk = Walk(folder, ALL)
        assert ["/".join(candidate.parts) for candidate in walk] == ["a.txt"]
    assert [(each.path, each.error, each.is_walk) for each in walk.problems] == [
        ("sub", "cannot read the directory: permission denied", True)
    ]


def test_patterns_that_cannot_be_read_close_their_directory(tmp_path: Path) -> None:
    make(tmp_path, "a.txt", "sub/b.txt", "sub/.gitignore", "linked/c.txt")
    (tmp_path / "linked" / ".gitignore").symlink_to("../a.txt")
    with Forbidding(tmp_path) as folder:
        folder.forbidden = ["sub", ".gitignore"]
        walk = Walk(folder, ALL)
        assert ["/".join(candidate.parts) for candidate in walk] == ["a.txt"]
    assert [(each.path, each.error) for each in walk.problems] == [
        ("linked/.gitignore", "cannot read the patterns: it is a link; its directory is left out"),
        ("sub/.gitignore", "cannot read the patterns: permission denied; its directory is left out"),
    ]


def test_deep_directories_need_no_deep_stack(tmp_path: Path) -> None:
    make(tmp_path, "d/" * 400 + "x")
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 200)
    try:
        paths, walk = walked(tmp_path)
    finally:
        sys.setrecursionlimit(before)
    assert (paths, walk.problems) == (["d/" * 400 + "x"], [])


def test_a_directory_whose_path_is_too_long_is_not_entered(tmp_path: Path) -> None:
    make(tmp_path, "a.txt")
    descriptor = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=descriptor)
        deeper = os.open("d" * 250, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = deeper
    os.close(descriptor)
    paths, walk = walked(tmp_path)
    assert paths == ["a.txt"]
    [problem] = walk.problems
    assert (problem.error, problem.is_walk) == ("cannot read the directory: its path is too long", False)
    assert problem.path.count("/") == 16


@pytest.mark.parametrize("name", [b"caf\xe9.txt", b"a\nb.txt", "naïve 漢.txt".encode()])
def test_any_name_is_found(tmp_path: Path, name: bytes) -> None:
    (tmp_path / os.fsdecode(name)).write_text("")
    assert walked(tmp_path)[0] == [os.fsdecode(name)]
