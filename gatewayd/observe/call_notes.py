"""Facts of the calls of models on the notes of their request; a `metering.interfaces.CallObserver`."""

import time

from gatewayd.measurement.request_notes import CURRENT_NOTES, RequestNotes
from gatewayd.metering.records import MeteredCall


class CallNotes:
    """Adds model, provider, tokens and the first part of an answer to the notes of the present request.

    A request with several calls has the model of the first one and the tokens of all.
    """

    def __init__(self) -> None:
        self._open: dict[MeteredCall, RequestNotes] = {}

    def begun(self, call: MeteredCall) -> None:
        """Remember the notes of the request that makes the call."""
        notes = CURRENT_NOTES.get()
        if notes is not None:
            self._open[call] = notes
            notes.model = notes.model or call.model

    def first(self, call: MeteredCall) -> None:
        """Note the time to the first part of the answer."""
        notes = self._open.get(call)
        if notes is not None and not notes.first_seconds:
            notes.first_seconds = time.monotonic() - notes.began

    def finished(self, call: MeteredCall) -> None:
        """Note the provider and the tokens."""
        notes = self._open.pop(call, None)
        if notes is None:
            return
        notes.provider = notes.provider or call.source
        usage = call.usage
        if usage is not None:
            notes.prompt += usage.prompt
            notes.cached += usage.cached
            notes.completion += usage.completion
