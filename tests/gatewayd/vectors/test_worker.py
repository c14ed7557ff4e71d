import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from gatewayd.errors import ErrorKind
from gatewayd.vectors.interfaces import Row
from gatewayd.vectors.worker import EmbeddingWorker
from tests.fakes.providers.embedding_models import Answers, floats


class Model:
    """Gives the length of a text and 1; passages wait for `release`."""

    width = 2

    def __init__(self) -> None:
        self.release = threading.Event()
        self.begun = threading.Event()
        self.number = 1.0

    def compute(self, text: str, request: Mapping[str, Any]) -> Row:
        if request["priority"] == "passage":
            self.begun.set()
            self.release.wait(timeout=30)
        return np.array([len(text) * self.number, self.number], np.float32)


def asked(number: int, priority: str, *texts: str) -> dict[str, Any]:
    return {"number": number, "texts": texts, "priority": priority}


async def test_a_query_overtakes_a_queue_of_passages() -> None:
    answers, model = Answers(), Model()
    serving = EmbeddingWorker(answers, model, 2)
    for number in range(20):
        serving.take(asked(number, "passage", *["text"] * 64))
    assert model.begun.wait(timeout=10)
    serving.take(asked(99, "query", "question"))
    await answers.to(99)
    assert answers.order == [99]
    model.release.set()
    for number in range(20):
        await answers.to(number)
    assert floats(answers.rows[99]) == [8, 1]


async def test_rows_are_in_the_order_of_the_texts() -> None:
    answers, model = Answers(), Model()
    model.release.set()
    sizes = [3, 3000, 1, 2, 2900, 4, 5]
    EmbeddingWorker(answers, model, 2).take(asked(1, "passage", *("a" * size for size in sizes)))
    await answers.to(1)
    assert floats(answers.rows[1])[::2] == sizes


async def test_what_is_no_number_is_a_failure() -> None:
    answers, model = Answers(), Model()
    model.number = float("nan")
    EmbeddingWorker(answers, model, 1).take(asked(1, "query", "text", "other" * 1000))
    await answers.to(1)
    assert answers.errors[1].kind is ErrorKind.UPSTREAM_FAILED
    assert not answers.rows
