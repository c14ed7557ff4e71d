"""How good the answers of searches are: by words and meaning together, and by each alone."""

import math
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from tests.bench.documents_questions import Examination, Question
from tests.bench.documents_site import Client, Running
from tests.bench.measure import say

KINDS: Final = {"hybrid": {}, "dense": {"hybrid": False}, "words": {"hybrid_bm25_weight": 1.0}}
DEPTH: Final = 10


def measure_quality(running: Running, folder: Path, examination: Examination) -> dict[str, Any]:
    """Ingest the documents, ask the questions, and return nDCG@10 and hit@10 of each way of searching."""
    client = running.client
    collection_id = client.create_collection()
    folder.mkdir()
    file_ids = []
    for name, text in examination.documents.items():
        path = folder / name
        path.write_text(text)
        file_ids.append(client.upload(path, collection_id))
    client.wait(file_ids)
    row: dict[str, Any] = {"documents": len(file_ids), "questions": len(examination.questions)}
    for way, options in KINDS.items():
        row[way] = _asked(client, collection_id, examination, options)
    say(f"quality  {row}")
    return row


def _asked(
    client: Client, collection_id: str, examination: Examination, options: dict[str, Any]
) -> dict[str, float]:
    ranks: dict[str, list[int | None]] = defaultdict(list)
    for question in examination.questions:
        answer = client.query(collection_id, question.text, k=DEPTH, **options)
        found = rank(question, answer)
        for kind in ("all", question.kind):
            ranks[kind].append(found)
    return {
        f"{measure} {kind}": fmean(map(value, found))
        for kind, found in ranks.items()
        for measure, value in (("ndcg", _gain), ("hit", _hit))
    }


def rank(question: Question, answer: dict[str, Any]) -> int | None:
    """Return the place, from 1, of the first passage that holds a part of the answer, or None."""
    passages = zip(answer["metadatas"][0], answer["documents"][0], strict=True)
    for place, (metadata, passage) in enumerate(passages, 1):
        if question.is_answered_by(metadata["name"], passage):
            return place
    return None


def _gain(place: int | None) -> float:
    # One passage is wanted, so the ideal gain is 1.
    return 0.0 if place is None else 1 / math.log2(place + 1)


def _hit(place: int | None) -> float:
    return float(place is not None)
