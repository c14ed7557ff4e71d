"""Child process that runs one embedding model or cross-encoder: `python -m gatewayd.vectors.worker`.

The first request is `{"do": "open", "threads", ...}` with the description of a model (`interfaces`); the
reply is `{"width"}`. The process confines itself to the folder of the model, as `sandbox` says, before it
opens the model. Later requests have `texts` and `priority` (query, passage), and `purpose` or `query` as the
model needs it; the bytes of the reply are rows of little-endian float32. `threads` threads of low priority
compute passages, one further thread computes queries.

Texts are computed one by one. In a batch, texts share the scale to which int8 products are rounded, so the
vector of a text would depend on its neighbours. For passages of usual length a batch is not faster and takes
more memory. An unexpected failure ends the process; the parent starts another.
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
"""Modules that are imported inside the sandbox: they start threads, and only later threads are confined."""


class AnswerWriter(Protocol):
    """Destination of replies; `workers.ParentPipe` is one."""

    def answer(self, message: Header, header: Header, blob: bytes = b"") -> None:
        """Answer a message. Thread-safe."""
        ...

    def refuse(self, message: Header, error: GatewayError) -> None:
        """Answer a message with an error. Thread-safe."""
        ...


class EmbeddingWorker:
    """Computes requests with a model in threads."""

    def __init__(self, answers: AnswerWriter, model: "InferenceModel", threads: int) -> None:
        self._answers = answers
        self._model = model
        self._passages = JobThread("passages", threads, is_patient=True)
        self._queries = JobThread("queries", 1, is_patient=False)

    def take(self, message: Header) -> None:
        """Queue the texts of a request; it is answered when its last text is done."""
        threads = self._queries if message["priority"] == QUERY else self._passages
        call = _Call(self._answers, self._model, message)
        for place in range(len(message["texts"])):
            threads.put(partial(call.run, place))


class _Call:
    """Progress of one request."""

    def __init__(self, answers: AnswerWriter, model: "InferenceModel", message: Header) -> None:
        self._answers = answers
        self._model = model
        self._message = message
        self._left = len(message["texts"])
        self._counting = threading.Lock()
        self._rows = np.empty((len(message["texts"]), model.width), dtype="<f4")

    def run(self, place: int) -> None:
        """Compute one row; answer the request if it was the last."""
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
            ErrorKind.UPSTREAM_FAILED, "cannot use the result of the model: it has values that are not finite"
        )
        self._answers.refuse(self._message, error)


def main() -> None:
    """Answer requests until the parent closes the pipe."""
    threading.excepthook = _give_up
    parent = ParentPipe()
    messages = parent.messages()
    opening = next(messages, None)
    worker = None if opening is None else _opened(parent, opening[0])
    for message, _ in messages:
        if worker is not None:
            worker.take(message)
    # Threads inside the model cannot be stopped otherwise.
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
    """End the process after the failure of a thread."""
    traceback.print_exception(failure.exc_value, file=sys.stderr)
    sys.stderr.flush()
    os._exit(1)


if __name__ == "__main__":
    main()
