import pytest

from gatewayd.vectors.runs import MOST_TEXTS, MOST_TOKENS, estimated, runs


@pytest.mark.parametrize(
    "texts",
    [[], ["a"], ["a" * size for size in (5, 3000, 10, 700, 12, 9, 8, 7, 400, 2900)], ["文" * 90] * 9],
)
def test_each_text_is_in_one_run_that_is_small(texts: list[str]) -> None:
    parts = list(runs(texts))
    assert sorted(place for part in parts for place in part) == list(range(len(texts)))
    for part in parts:
        longest = max(estimated(texts[place]) for place in part)
        assert 1 <= len(part) <= MOST_TEXTS
        assert len(part) == 1 or len(part) * longest <= MOST_TOKENS


def test_texts_go_with_those_of_their_length() -> None:
    assert list(runs(["b" * 900, "a", "c" * 900, "d"])) == [[1, 3], [0], [2]]


def test_a_character_of_another_script_counts_as_a_token() -> None:
    assert estimated("文" * 100) == 102
