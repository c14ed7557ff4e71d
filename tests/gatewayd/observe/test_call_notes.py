"""Facts of calls on the notes of their request."""

import pytest

from gatewayd.measurement.request_notes import CURRENT_NOTES, RequestNotes
from gatewayd.metering.records import MeteredCall, TokenUsage
from gatewayd.observe.call_notes import CallNotes


def make_call(model: str = "m") -> MeteredCall:
    call = MeteredCall("u", (), "", model, "chat")
    call.source, call.usage = "p", TokenUsage(prompt=10, cached=4, completion=3)
    return call


def test_a_request_has_the_model_of_its_first_call_and_the_tokens_of_all() -> None:
    observer, notes = CallNotes(), RequestNotes(0.0)
    token = CURRENT_NOTES.set(notes)
    calls = [make_call("one"), make_call("two")]
    for call in calls:
        observer.begun(call)
    CURRENT_NOTES.reset(token)
    for call in calls:
        observer.first(call)
        observer.finished(call)
    assert (notes.model, notes.provider) == ("one", "p")
    assert (notes.prompt, notes.cached, notes.completion) == (20, 8, 6)
    assert notes.first_seconds > 0
    assert not observer._open


@pytest.mark.parametrize("usage", [None, TokenUsage()])
def test_calls_without_a_request_or_usage_are_no_error(usage: TokenUsage | None) -> None:
    observer, call = CallNotes(), make_call()
    call.usage = usage
    observer.begun(call)
    observer.first(call)
    observer.finished(call)
    notes = RequestNotes(0.0)
    token = CURRENT_NOTES.set(notes)
    observer.begun(call)
    CURRENT_NOTES.reset(token)
    observer.finished(call)
    assert notes.prompt == 0
