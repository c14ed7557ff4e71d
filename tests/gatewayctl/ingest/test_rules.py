"""Which files are taken."""

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.ingest.rules import Rules


def takes(rules: Rules, path: str) -> bool:
    """Tell whether a file is taken, or with a / at its end a directory."""
    parts = path.rstrip("/").split("/")
    return rules.takes_folder(parts) if path.endswith("/") else rules.takes_file(parts)


@pytest.mark.parametrize(
    ("path", "is_taken"),
    [
        ("a.md", True),
        ("sub/a.md", True),
        ("sub/", True),
        (".hidden", False),
        (".hidden/", False),
        ("sub/.a.md", False),
        (".git/", False),
        ("lost+found/", False),
        (".gitignore", False),
    ],
)
def test_without_patterns(path: str, is_taken: bool) -> None:
    assert takes(Rules.of(), path) is is_taken


def test_hidden_names_are_taken_when_that_is_wanted() -> None:
    rules = Rules.of(hidden=True)
    assert takes(rules, ".hidden")
    assert takes(rules, ".hidden/")
    assert not takes(rules, ".git/")
    assert not takes(rules, "sub/.gatewayignore")


def test_patterns_are_those_of_git() -> None:
    rules = Rules.of(["*.log", "!keep.log", "/build/", "docs/**/draft"])
    assert not takes(rules, "x/a.log")
    assert takes(rules, "x/keep.log")
    assert not takes(rules, "build/")
    assert takes(rules, "build")
    assert takes(rules, "x/build/")
    assert not takes(rules, "docs/a/b/draft")
    assert not takes(rules, "a\nb.log")
    assert not takes(rules, "a\udcff.log")


def test_only_what_is_included() -> None:
    rules = Rules.of(["drafts/"], ["*.md", "/notes/*.txt"])
    assert takes(rules, "x/a.md")
    assert takes(rules, "notes/a.txt")
    assert not takes(rules, "x/a.txt")
    assert takes(rules, "x/")
    assert not takes(rules, "drafts/")


def test_the_deepest_file_of_patterns_decides_and_the_command_line_above_all() -> None:
    top = Rules.of(["!a.tmp"]).entering(0, "*.txt\n*.tmp\n")
    below = top.entering(1, "# a comment\n!b.txt\n/c.md\n")
    assert not takes(top, "b.txt")
    assert takes(below, "sub/b.txt")
    assert not takes(below, "sub/d.txt")
    assert not takes(below, "sub/c.md")
    assert takes(below, "sub/deeper/c.md")
    assert takes(below, "sub/a.tmp")
    assert not takes(below, "sub/b.tmp")


def test_lines_that_are_no_pattern_match_nothing() -> None:
    rules = Rules.of().entering(0, "!\nfoo\\\n[[:alpha:]]\n*.log\n")
    assert not takes(rules, "a.log")
    assert takes(rules, "a.md")
    assert Rules.of().entering(0, "\n") == Rules.of()


@pytest.mark.parametrize("option", ["--ignore", "--include"])
def test_a_wrong_pattern_on_the_command_line_is_refused(option: str) -> None:
    with pytest.raises(CommandError, match=f"cannot read {option} '!'") as caught:
        Rules.of(["!"] if option == "--ignore" else [], ["!"] if option == "--include" else [])
    assert caught.value.exit_code == 2
