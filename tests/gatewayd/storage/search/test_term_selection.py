import pytest

from gatewayd.storage.search.term_selection import TermPlan

SHARES = {"file": 0.4, "open": 0.1, "socket": 0.005, "colormap": 0.0}


def steps(shares: dict[str, float], size: int = 100_000, total: int = 100_000) -> list[str]:
    return list(TermPlan(shares, size, total).steps())


def test_a_small_scope_is_looked_at_as_a_whole() -> None:
    assert steps(SHARES, size=4_000, total=10_000_000) == [""]
    assert steps(SHARES, size=0, total=0) == [""]


def test_rare_words_come_first_and_frequent_ones_when_those_find_too_little() -> None:
    assert steps(SHARES) == [
        "colormap | socket",
        "colormap | socket | open",
        "colormap | socket | open | file",
    ]


def test_passages_with_all_words_come_first_where_no_word_is_rare() -> None:
    assert steps({"file": 0.4, "open": 0.1}) == ["open & file", "open", "open | file"]
    assert steps({"file": 0.4}) == ["file"]


def test_words_of_which_nothing_is_known_are_rare() -> None:
    assert steps({"zebra": 0.0, "file": 0.4})[0] == "zebra"
    many = {f"word{number}": 0.0 for number in range(30)}
    assert len(steps(many)[0].split(" | ")) == 5


def test_without_statistics_the_scope_says_how_many_passages_there_are() -> None:
    assert steps(SHARES, total=0) == steps(SHARES)


@pytest.mark.parametrize(
    ("size", "found"), [(10_000, [""]), (1_000_000, ["open", "open | file"])], ids=["little", "most"]
)
def test_what_takes_longer_than_to_look_at_the_scope_is_not_looked_up(size: int, found: list[str]) -> None:
    # In the small scope one of hundred passages with a word is in it.
    tried = steps({"file": 0.4, "open": 0.1}, size=size, total=1_000_000)
    assert tried[-len(found) :] == found
