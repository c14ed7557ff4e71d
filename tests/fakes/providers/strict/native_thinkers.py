"""Thinkers of the Responses protocol and of the native protocol of Gemini; see `thinkers`."""

from collections.abc import Mapping
from typing import Any

import orjson

from tests.fakes.providers.responses_stream import call, message, reasoning
from tests.fakes.providers.strict.gemini import SIGNATURE, StrictGemini, answer, check, stream_of
from tests.fakes.providers.strict.responses import StrictResponses
from tests.fakes.providers.upstream import Recorded, Reply, json_reply

Object = dict[str, Any]


class ResponsesThinker(StrictResponses):
    """It seals its reasoning and reads nothing else."""

    def __init__(self, name: str) -> None:
        super().__init__(["gpt-6-astra"])
        self.name = name
        self.count = 0
        self.refused: list[Object] = []
        self.answered: list[Object] = []

    def _default(self, request: Recorded) -> Reply:
        reply = super()._default(request)
        _note(self, request, reply)
        return reply

    def _output(self, body: Mapping[str, Any]) -> list[Object]:
        self.count += 1
        thought = reasoning(
            f"{self.name} thinks {self.count}", data=f"sealed for {self.organization}", number=self.count
        )
        if body["input"][-1].get("type") == "function_call_output":
            return [thought, message(f"{self.name} says {self.count}", self.count)]
        return [thought, call("look", _arguments(self.name, self.count), self.count)]


class GeminiThinker(StrictGemini):
    """It signs its calls."""

    def __init__(self, name: str) -> None:
        super().__init__(["gemini-3-flash"])
        self.name = name
        self.count = 0
        self.refused: list[Object] = []
        self.answered: list[Object] = []

    def _default(self, request: Recorded) -> Reply:
        reply = super()._default(request)
        _note(self, request, reply)
        return reply

    def _answer_method(self, method: str, request: Recorded) -> Reply:
        body = request.json
        check(body, signs=True)
        self.count += 1
        parts: list[Object] = [{"text": f"{self.name} thinks {self.count}", "thought": True}]
        if any("functionResponse" in part for part in body["contents"][-1]["parts"]):
            parts.append({"text": f"{self.name} says {self.count}"})
        else:
            asked = {"name": "look", "args": orjson.loads(_arguments(self.name, self.count))}
            parts.append({"functionCall": asked, "thoughtSignature": SIGNATURE})
        if method == "streamGenerateContent":
            return Reply(steps=list(stream_of(parts)))
        return json_reply(answer(parts, reason="STOP"))


def _arguments(name: str, number: int) -> str:
    return orjson.dumps({"maker": name, "number": number}).decode()


def _note(thinker: ResponsesThinker | GeminiThinker, request: Recorded, reply: Reply) -> None:
    if reply.status >= 400:
        thinker.refused.append(
            orjson.loads(b"".join(step for step in reply.steps if isinstance(step, bytes)))
        )
    elif request.method == "POST":
        thinker.answered.append(request.json)
