from collections.abc import Sequence

from gatewayd.storage.search.word_plan import COMMON_PASSAGES, LookUp, QueryWord, look_ups, query_weights
from gatewayd.storage.search.word_weights import word_keys


def word(number: int, *passages: float) -> QueryWord:
    return QueryWord(number, [*passages, *[0.0] * (8 - len(passages))])


def planned(*words: QueryWord, size: float = 100_000) -> Sequence[LookUp]:
    return list(look_ups(words, size))


def test_rare_words_are_looked_up_together() -> None:
    [found] = planned(word(2, 100), word(1, 10, 20), word(3, 1000))
    assert found.groups == [[*word_keys(1), *word_keys(2), *word_keys(3)]]


def test_a_frequent_word_is_looked_up_where_it_weighs_most() -> None:
    even = QueryWord(5, [1000.0] * 8)
    [found] = planned(even)
    assert found.groups == [word_keys(5)[7:]]
    assert even.top(2500) == word_keys(5)[5:]
    assert even.top(10**9) == word_keys(5)
    assert even.top(0) == []


def test_frequent_words_are_looked_up_in_pairs_of_bounded_size() -> None:
    rare, *frequent = word(1, 5), *(QueryWord(n, [1000.0 * n] * 8) for n in range(2, 9))
    found = planned(rare, *frequent)
    assert found[0].groups == [word_keys(1)]
    assert [len(each.groups) for each in found] == [1] * 8 + [2] * 6 + [3] * 4 + [4]
    assert all(each.limit == COMMON_PASSAGES for each in found[8:])
    # The pair of the most frequent words is of their higher tiers alone.
    assert len(found[13].groups[0]) < 8
    # Words that seldom meet are looked up as they are.
    [_, _, pair] = planned(word(1, 2000), word(2, 3000))
    assert pair.groups == [word_keys(1), word_keys(2)]


def test_words_without_passages_give_no_look_up_that_fails() -> None:
    assert planned() == []
    assert planned(size=0.0) == []
    [found] = planned(word(1), size=0.0)
    assert found.groups == [word_keys(1)]
    assert query_weights([word(1, 10), word(2, 60_000)], 100_000)[2] == 1e-6
