"""The rerank dialect of Cohere (versions 1 and 2) and Jina: parses requests and renders replies; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.completions.records import Body
from gatewayd.errors import GatewayError, invalid
from gatewayd.pipeline.endpoints import model_of

MAX_DOCUMENTS: Final = 10_000
"""Maximum number of documents in one request, as at Cohere."""

KEPT_FIELDS: Final = ("id", "meta", "usage")
"""Fields of the source's answer that the reply has too."""


@dataclass(frozen=True, slots=True)
class RerankRequest:
    """A rerank request; `documents` are the texts to compare, `originals` the documents as they were sent."""

    body: Body
    originals: list[Any]
    top_n: int
    returns_documents: bool


def parse_request(value: Mapping[str, Any]) -> RerankRequest:
    """Parse a rerank body; raise invalid_request with the name of a bad field.

    A document is a text or an object with `text`, or with the fields that `rank_fields` names.
    """
    rest = {name: item for name, item in value.items() if name not in {"return_documents", "rank_fields"}}
    model_of(value)
    query = value.get("query")
    if not isinstance(query, str) or not query:
        raise invalid("cannot accept query: expected a text", param="query")
    documents = value.get("documents")
    if not isinstance(documents, list) or not documents:
        raise invalid("cannot accept documents: expected a list of texts", param="documents")
    if len(documents) > MAX_DOCUMENTS:
        raise invalid(
            f"cannot accept documents: it has {len(documents)} elements, at most {MAX_DOCUMENTS} are allowed",
            param="documents",
        )
    fields = _rank_fields(value.get("rank_fields"))
    texts = [_text_of(document, index, fields) for index, document in enumerate(documents)]
    returns = value.get("return_documents")
    if returns is not None and not isinstance(returns, bool):
        raise invalid("cannot accept return_documents: expected true or false", param="return_documents")
    top_n = value.get("top_n")
    if top_n is not None and not (type(top_n) is int and top_n > 0):
        raise invalid("cannot accept top_n: expected a whole number of 1 or more", param="top_n")
    return RerankRequest({**rest, "documents": texts}, documents, top_n or len(documents), returns is True)


def render(answer: Mapping[str, Any], asked: RerankRequest, answer_id: str) -> Body:
    """Return the reply: the results by falling score, with `id` if the source gave none."""
    results: Sequence[Body] = sorted(answer["results"], key=_rank)
    kept = [_result(item, asked) for item in results[: asked.top_n]]
    given = {name: answer[name] for name in KEPT_FIELDS if name in answer}
    return {"id": answer_id, **given, "model": asked.body["model"], "results": kept}


def _rank(item: Mapping[str, Any]) -> tuple[float, int]:
    return -item["relevance_score"], item["index"]


def _result(item: Body, asked: RerankRequest) -> Body:
    if not asked.returns_documents:
        return item
    document = asked.originals[item["index"]]
    return {**item, "document": {"text": document} if isinstance(document, str) else document}


def _rank_fields(value: Any) -> Sequence[str]:
    if value is None:
        return ("text",)
    if not isinstance(value, list) or not value or not all(isinstance(name, str) for name in value):
        raise invalid("cannot accept rank_fields: expected a list of names", param="rank_fields")
    return value


def _text_of(document: Any, index: int, fields: Sequence[str]) -> str:
    if isinstance(document, str):
        return document
    if not isinstance(document, dict):
        raise _bad_document(index, "expected a text or an object with a text")
    texts = [document[name] for name in fields if isinstance(document.get(name), str)]
    if not texts:
        raise _bad_document(index, f"it has no text in {', '.join(fields[:8])}")
    return "\n".join(texts)


def _bad_document(index: int, reason: str) -> GatewayError:
    name = f"documents[{index}]"
    return invalid(f"cannot accept {name}: {reason}", param=name)
