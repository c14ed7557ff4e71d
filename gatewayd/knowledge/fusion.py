"""Score fusion of dense and lexical search hits; pure functions."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from gatewayd.ingest.records import SearchHit

RANK_CONSTANT: Final = 10
WORD_WEIGHT: Final = 0.5
"""Default weight of the lexical hits, unless the model or the settings set another."""


class FusionMethod(StrEnum):
    """Method that combines the scores of two lists."""

    # Weighted sum of the scores of each list, scaled to 0..1.
    MINMAX = "minmax"
    # Weighted sum of reciprocal ranks.
    RRF = "rrf"


def merge_hits(lists: Iterable[Sequence[SearchHit]]) -> list[SearchHit]:
    """Return the hits of several searches of one kind, each passage once with its best score, best first."""
    best: dict[int, float] = {}
    for hits in lists:
        for hit in hits:
            known = best.get(hit.passage_id)
            if known is None or hit.score > known:
                best[hit.passage_id] = hit.score
    return [SearchHit(passage_id, score) for passage_id, score in sort_by_score(best)]


def fuse_scores(
    dense: Sequence[SearchHit], lexical: Sequence[SearchHit], weight: float, fusion: FusionMethod
) -> Mapping[int, float]:
    """Return a score from 0 to 1 for every passage of two lists, each ordered best first.

    `weight` (0 to 1) is the weight of the lexical list, 1 - `weight` that of the dense one. If one list is
    empty, the other has the weight 1.
    """
    weight = min(max(weight, 0.0), 1.0)
    if not dense or not lexical:
        weight = 0.0 if dense else 1.0
    scale = _scale_minmax if fusion is FusionMethod.MINMAX else _reciprocal_ranks
    fused = {hit.passage_id: 0.0 for hit in (*dense, *lexical)}
    for share, hits in ((1.0 - weight, dense), (weight, lexical)):
        for passage_id, score in scale(hits).items():
            fused[passage_id] += share * score
    return fused


def sort_by_score(scores: Mapping[int, float]) -> list[tuple[int, float]]:
    """Return ids with their scores, best first; among equal scores the lower id first."""
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def cosine_to_similarity(cosine: float) -> float:
    """Return a cosine (-1 to 1) as a number from 0 to 1."""
    return min(max((cosine + 1.0) / 2.0, 0.0), 1.0)


def _scale_minmax(hits: Sequence[SearchHit]) -> dict[int, float]:
    """Return the scores scaled linearly to 0 (worst) to 1 (best); all 1 when they are equal."""
    if not hits:
        return {}
    scores = [hit.score for hit in hits]
    low, span = min(scores), max(scores) - min(scores)
    return {hit.passage_id: min((hit.score - low) / span, 1.0) if span > 0 else 1.0 for hit in hits}


def _reciprocal_ranks(hits: Sequence[SearchHit]) -> dict[int, float]:
    """Return reciprocal-rank scores, scaled so that the first hit has 1."""
    best = RANK_CONSTANT + 1
    return {hit.passage_id: best / (RANK_CONSTANT + rank) for rank, hit in enumerate(hits, 1)}
