"""The process that runs one embedding model or cross-encoder: `python -m gatewayd.vectors.worker`.

The first request is `{"do": "open", "threads", ...}` with the description of a model (`interfaces`), answered
by `{"width"}`. A model in a folder is opened when the process has confined itself to that folder, as
`sandbox` says. Those that follow have `texts` and `priority` (query, passage), and `purpose` or `query` as
the model needs it; the answer's bytes are rows of little-endian float32. Passages are worked on by `threads`
patient threads, queries by one of their own.

Texts are computed one by one. Those computed together share the scale that int8 products are rounded to, so
a text's vector would depend on its neighbours; and with passages of usual length it is not slower, but takes
less memory. Any failure that is not foreseen ends the process: whoever started it starts another.
"""

import os
import sys
import threading
import traceback
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import numpy as np

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.process_memory import return_memory
from gatewayd.sandbox import confinement
from gatewayd.sandbox.confinement import SandboxMode
from gatewayd.vectors.models.catalogue import ModelEngine
from gatewayd.vectors.priority_threads import JobThread
from gatewayd.workers import Header, ParentPipe

if TYPE_CHECKING:
    from gatewayd.vectors.interfaces import InferenceModel

QUERY: Final = "query"
LOADERS: Final = {
    ModelEngine.WORDPIECE: "gatewayd.vectors.models.wordpiece",
    ModelEngine.FASTEMBED: "gatewayd.vectors.models.fastembed_models",
}
"""Loaded in the sandbox: a library of it starts a thread, and only threads that begin later are confined."""


class AnswerWriter(Protocol):
    """Where answers go; `workers.Parent`."""

    def answer(self, message: Header, header: Header, blob: bytes = b"") -> None:
        """Answer a message; from any thread."""
        ...

    def refuse(self, message: Header, error: GatewayError) -> None:
        """Answer a message with a failure; from any thread."""
        ...


class EmbeddingWorker:
    """Answers requests with a model."""

    def __init__(self, answers: AnswerWriter, model: "InferenceModel", threads: int) -> None:
        self._answers = answers
        self._model = model
        self._passages = JobThread("passages", threads, is_patient=True)
        self._queries = JobThread("queries", 1, is_patient=False)

    def take(self, message: Header) -> None:
        """Start on a request; it is answered when its last text is done."""
        lane = self._queries if message["priority"] == QUERY else self._passages
        call = _Call(self._answers, self._model, message)
        for place in range(len(message["texts"])):
            lane.put(partial(call.run, place))


class _Call:
    """One request."""

    def __init__(self, answers: AnswerWriter, model: "InferenceModel", message: Header) -> None:
        self._answers = answers
        self._model = model
        self._message = message
        self._left = len(message["texts"])
        self._counting = threading.Lock()
        self._rows = np.empty((len(message["texts"]), model.width), dtype="<f4")

    def run(self, place: int) -> None:
        """Compute one row, and answer when it was the last."""
        self._rows[place] = self._model.compute(self._message["texts"][place], self._message)
        with self._counting:
            self._left -= 1
            is_last = not self._left
        if is_last:
            self._finish()

    def _finish(self) -> None:
        if np.isfinite(self._rows).all():
            self._answers.answer(self._message, {}, self._rows.tobytes())
            return
        error = GatewayError(
            ErrorKind.UPSTREAM_FAILED, "cannot use what the model computed: it has no numbers"
        )
        self._answers.refuse(self._message, error)


def main() -> None:
    """Answer until the parent closes the pipe."""
    threading.excepthook = _give_up
    parent = ParentPipe()
    messages = parent.messages()
    opening = next(messages, None)
    serving = None if opening is None else _opened(parent, opening[0])
    for message, _ in messages:
        if serving is not None:
            serving.take(message)
    # Threads that are inside of the model cannot be ended in another way.
    os._exit(0)


def _opened(parent: ParentPipe, message: Header) -> EmbeddingWorker | None:
    if message["path"] is not None:
        confinement.apply_sandbox(SandboxMode(message["sandbox"]), [Path(message["path"])])
    try:
        model = cast("InferenceModel", import_module(LOADERS[message["engine"]]).load(message))
    except GatewayError as error:
        parent.refuse(message, error)
        return None
    return_memory()
    parent.answer(message, {"width": model.width})
    return EmbeddingWorker(parent, model, message["threads"])


def _give_up(failure: Any) -> None:
    """End the process: a thread of it has failed."""
    traceback.print_exception(failure.exc_value, file=sys.stderr)
    sys.stderr.flush()
    os._exit(1)


if __name__ == "__main__":
    main()
