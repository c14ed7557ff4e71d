"""MiniMax: one message of instructions, at the start, and calls whose arguments are JSON."""

import json

from tests.fakes.providers.strict.base import Body, StrictRefusalError


def instructions(body: Body) -> None:
    """Refuse several messages of instructions, and one that is not the first."""
    places = [place for place, message in enumerate(body["messages"]) if message["role"] == "system"]
    if len(places) > 1:
        raise refusal("invalid params, invalid chat setting (2013)")
    if places not in ([], [0]):
        raise refusal("invalid params, chat content has invalid message role: system (2013)")


def results(body: Body) -> None:
    """Refuse results without a call, and arguments that are no JSON."""
    known: set[str] = set()
    for message in body["messages"]:
        for call in message.get("tool_calls") or ():
            known.add(call["id"])
            try:
                json.loads(call["function"]["arguments"])
            except ValueError as error:
                text = f"invalid function arguments json string, tool_call_id: {call['id']}"
                raise refusal(f"invalid params, {text} (2013)") from error
        if message["role"] == "tool" and message.get("tool_call_id") not in known:
            raise refusal(
                f"invalid params, tool result's tool id({message.get('tool_call_id')}) not found (2013)"
            )


def refusal(text: str) -> StrictRefusalError:
    """Return an error of MiniMax."""
    error = {"type": "bad_request_error", "message": text, "http_code": "400"}
    return StrictRefusalError(400, {"type": "error", "error": error, "request_id": "r1"})
