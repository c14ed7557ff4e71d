"""Tests for gatewayd.knowledge.fusion."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.ingest.records import SearchHit
from gatewayd.knowledge.fusion import (
    FusionMethod,
    cosine_to_similarity,
    fuse_scores,
    merge_hits,
    sort_by_score,
)

SCORES = st.floats(-1, 50, allow_nan=False, width=32)
WEIGHTS = st.floats(0, 1, allow_nan=False)
KINDS = st.sampled_from(FusionMethod)


@st.composite
def hits(draw: st.DrawFn) -> list[SearchHit]:
    scores = draw(st.dictionaries(st.integers(1, 40), SCORES, max_size=25))
    return [SearchHit(key, score) for key, score in sort_by_score(scores)]


@given(hits(), hits(), WEIGHTS, KINDS)
def test_every_passage_has_a_score_from_0_to_1(
    dense: list[SearchHit], lexical: list[SearchHit], weight: float, fusion: FusionMethod
) -> None:
    fused = fuse_scores(dense, lexical, weight, fusion)
    assert set(fused) == {hit.passage_id for hit in (*dense, *lexical)}
    assert all(0 <= score <= 1 + 1e-9 for score in fused.values())


@given(hits(), hits(), WEIGHTS, KINDS)
def test_what_both_lists_have_first_is_first_with_score_1(
    dense: list[SearchHit], lexical: list[SearchHit], weight: float, fusion: FusionMethod
) -> None:
    fused = fuse_scores([SearchHit(99, 60), *dense], [SearchHit(99, 60), *lexical], weight, fusion)
    assert fused[99] == pytest.approx(1)
    assert max(fused.values()) == pytest.approx(1)


@given(hits(), hits(), WEIGHTS, KINDS)
def test_the_lists_are_alike_when_the_weight_is_turned_round(
    dense: list[SearchHit], lexical: list[SearchHit], weight: float, fusion: FusionMethod
) -> None:
    one, other = fuse_scores(dense, lexical, weight, fusion), fuse_scores(lexical, dense, 1 - weight, fusion)
    assert one == pytest.approx(dict(other))


@given(hits(), hits(), KINDS)
def test_one_list_alone_keeps_its_order(
    dense: list[SearchHit], lexical: list[SearchHit], fusion: FusionMethod
) -> None:
    fused = fuse_scores(dense, lexical, 0.0, fusion)
    scores = [fused[hit.passage_id] for hit in dense]
    assert scores == sorted(scores, reverse=True)
    assert fuse_scores(dense, [], 0.7, fusion) == fuse_scores(dense, [], 0.0, fusion)
    assert fuse_scores([], lexical, 0.1, fusion) == fuse_scores([], lexical, 1.0, fusion)


@given(hits(), hits(), WEIGHTS)
def test_ranks_decide_in_rrf_and_scores_do_not(
    dense: list[SearchHit], lexical: list[SearchHit], weight: float
) -> None:
    stretched = [SearchHit(hit.passage_id, hit.score * 3 + 7) for hit in dense]
    assert fuse_scores(dense, lexical, weight, FusionMethod.RRF) == fuse_scores(
        stretched, lexical, weight, FusionMethod.RRF
    )


@given(hits(), hits(), WEIGHTS)
def test_the_unit_of_the_scores_does_not_matter(
    dense: list[SearchHit], lexical: list[SearchHit], weight: float
) -> None:
    doubled = [SearchHit(hit.passage_id, hit.score * 2) for hit in lexical]
    one, other = (fuse_scores(dense, each, weight, FusionMethod.MINMAX) for each in (lexical, doubled))
    assert one == pytest.approx(dict(other))


@given(hits(), hits(), WEIGHTS, KINDS)
def test_a_better_rank_in_both_is_never_worse(
    dense: list[SearchHit], lexical: list[SearchHit], weight: float, fusion: FusionMethod
) -> None:
    fused = fuse_scores(dense, lexical, weight, fusion)
    places = [{hit.passage_id: place for place, hit in enumerate(each)} for each in (dense, lexical)]
    both = places[0].keys() & places[1].keys()
    for one in both:
        for other in both:
            if all(place[one] < place[other] for place in places):
                assert fused[one] >= fused[other] - 1e-9


def test_min_max_and_rrf_of_a_small_case() -> None:
    dense, lexical = (
        [SearchHit(1, 0.9), SearchHit(2, 0.7), SearchHit(3, 0.5)],
        [SearchHit(3, 8.0), SearchHit(4, 4.0)],
    )
    fused = fuse_scores(dense, lexical, 0.5, FusionMethod.MINMAX)
    assert fused == pytest.approx({1: 0.5, 2: 0.25, 3: 0.5, 4: 0.0})
    fused = fuse_scores(dense, lexical, 0.5, FusionMethod.RRF)
    assert fused == pytest.approx({1: 0.5, 2: 5.5 / 12, 3: 5.5 / 13 + 0.5, 4: 5.5 / 12})


@given(st.lists(hits(), max_size=4))
def test_merged_lists_have_each_passage_once_at_its_best(lists: list[list[SearchHit]]) -> None:
    merged = merge_hits(lists)
    best: dict[int, float] = {}
    for hit in (hit for each in lists for hit in each):
        best[hit.passage_id] = max(best.get(hit.passage_id, hit.score), hit.score)
    assert {hit.passage_id: hit.score for hit in merged} == best
    assert [hit.score for hit in merged] == sorted(best.values(), reverse=True)


def test_equal_scores_are_in_the_order_of_the_passages() -> None:
    assert [key for key, _ in sort_by_score({9: 1.0, 2: 1.0, 5: 2.0})] == [5, 2, 9]


@pytest.mark.parametrize(("cosine", "expected"), [(-1, 0), (0, 0.5), (1, 1), (1.0000001, 1), (-1.1, 0)])
def test_similarity(cosine: float, expected: float) -> None:
    assert cosine_to_similarity(cosine) == expected
