"""Reranking by providers: the reply forms of Cohere, Jina, vLLM, Voyage and Text Embeddings Inference."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatewayd.catalog.interfaces import CallContext
from gatewayd.completions.records import Body
from gatewayd.upstream.sources.provider_client import ProviderClient

RESULT_FIELDS: Final = ("results", "data")
SCORE_FIELDS: Final = ("relevance_score", "score")


async def post_rerank(client: ProviderClient, path: str, body: Body, context: CallContext) -> Body:
    """Send a rerank request and return its answer with `results` of `{"index", "relevance_score"}`.

    Raises upstream_failed for an answer without usable scores.
    """
    answer = await client.post_any(path, body, context)
    results = _results(answer, len(body["documents"]))
    if results is None:
        raise client.failures.broken("its answer has no list of scores, each with the index of a document")
    rest = answer if isinstance(answer, Mapping) else {}
    return {
        **{name: value for name, value in rest.items() if name not in RESULT_FIELDS and name != "event"},
        "results": results,
    }


def _results(answer: Any, count: int) -> list[Body] | None:
    """Return the results of an answer about `count` documents, None if they are unusable."""
    listed = answer
    if isinstance(answer, Mapping):
        listed = next((answer[name] for name in RESULT_FIELDS if isinstance(answer.get(name), list)), None)
    if not isinstance(listed, list):
        return None
    found = [_result(item, count) for item in listed]
    kept = [item for item in found if item is not None]
    is_whole = len(kept) == len(found) and len({item["index"] for item in kept}) == len(kept)
    return kept if is_whole else None


def _result(item: Any, count: int) -> Body | None:
    if not isinstance(item, Mapping):
        return None
    index, score = item.get("index"), _score(item)
    if type(index) is not int or not 0 <= index < count or score is None:
        return None
    return {"index": index, "relevance_score": score}


def _score(item: Mapping[str, Any], names: Sequence[str] = SCORE_FIELDS) -> float | None:
    given = next((item[name] for name in names if name in item), None)
    is_number = isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given)
    return given if is_number else None
