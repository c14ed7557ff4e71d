"""Strict providers that think and call a tool, each in its own form, for conversations that change them.

Each question is answered by a call of `look` whose arguments name the maker and the number of its answer,
each result by a text. What a provider thinks begins with its name, so that a leak to another one shows.
Mistral takes part if the package with its validators is installed.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import orjson
from aiohttp import web

from tests.fakes.providers.strict import deepseek, gemini_chat, histories, kimi, openai, perplexity
from tests.fakes.providers.strict.base import Body, Check, StrictProvider, StrictRefusalError
from tests.fakes.providers.strict.makers import MAKERS
from tests.fakes.providers.strict.native_thinkers import GeminiThinker, ResponsesThinker
from tests.fakes.providers.strict.signed_thoughts import SigningProvider, check, thinking

HAS_MISTRAL = find_spec("mistral_common") is not None

if HAS_MISTRAL:
    from tests.fakes.providers.strict import mistral

TOOL = {
    "name": "look",
    "description": "Looks something up",
    "parameters": {
        "type": "object",
        "properties": {"maker": {"type": "string"}, "number": {"type": "integer"}},
        "required": ["maker", "number"],
        "additionalProperties": False,
    },
}


def thought(maker: str, number: int) -> str:
    """What a maker thinks before an answer."""
    return f"{maker} thinks {number}"


@dataclass(frozen=True)
class Thinker:
    """A model of a maker: its checks, the ids of its calls, and its reasoning as members of a message.

    `sign` adds the members of a call that the maker wants back.
    """

    model: str
    checks: Sequence[Check]
    call_id: Callable[[int], str] = "call_{:024}".format
    reason: Callable[[str], Mapping[str, Any]] = lambda text: {"reasoning_content": text}
    sign: Callable[[Mapping[str, Any]], dict[str, Any]] = dict


def _groq(index: int, name: str) -> StrictRefusalError:
    text = f"'messages.{index}' : property '{name}' is unsupported"
    return StrictRefusalError(400, {"error": {"message": text, "type": "invalid_request_error"}})


_only_plain = histories.only_members(histories.PLAIN_MEMBERS, _groq)


def _in_parts(text: str) -> Mapping[str, Any]:
    return {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]}


def _with_details(text: str) -> Mapping[str, Any]:
    detail = {"type": "reasoning.text", "text": text, "signature": f"signature of {text}", "index": 0}
    return {"reasoning": text, "reasoning_details": [detail]}


def _mistral() -> Mapping[str, Thinker]:
    if not HAS_MISTRAL:
        return {}
    return {
        "mistral": Thinker(
            "mistral-large-2512",
            [MAKERS["mistral"]["mistral-large-2512"], mistral.messages(mistral.OLD)],
            call_id="{:09}".format,
            reason=lambda text: {},
        ),
        "magistral": Thinker(
            "magistral-medium-latest",
            [mistral.messages(mistral.NEW)],
            call_id="{:09}".format,
            reason=_in_parts,
        ),
    }


THINKERS: Mapping[str, Thinker] = {
    **_mistral(),
    "openai": Thinker(
        "gpt-5",
        [*openai.checks("gpt-5"), histories.paired, histories.short_ids, _only_plain],
        call_id="call_{:035}".format,
        reason=lambda text: {},
    ),
    "deepseek": Thinker("deepseek-v4", [histories.paired, deepseek.demands_reasoning]),
    "kimi": Thinker(
        "kimi-k2.5",
        [MAKERS["kimi"]["kimi-k2.5"], histories.paired, kimi.demands_reasoning],
        # The numbers begin anew in each answer.
        call_id="functions.look:0".format,
    ),
    "gemini": Thinker(
        "gemini-3-pro-preview",
        [
            MAKERS["gemini"]["gemini-3-pro-preview"],
            histories.paired,
            gemini_chat.members,
            gemini_chat.signatures,
        ],
        call_id="function-call-{:016}".format,
        reason=lambda text: {},
        sign=gemini_chat.signed_call,
    ),
    "groq": Thinker(
        "openai/gpt-oss-120b",
        [MAKERS["groq"]["openai/gpt-oss-120b"], histories.paired, _only_plain],
        reason=lambda text: {"reasoning": text},
    ),
    "openrouter": Thinker("anthropic/claude-sonnet-5", [histories.paired], reason=_with_details),
    "cohere": Thinker(
        "command-a-03-2025",
        [MAKERS["cohere"]["command-a-03-2025"], histories.paired, _only_plain],
        call_id="look_{:08}".format,
        reason=lambda text: {},
    ),
    "perplexity": Thinker("sonar-pro", [MAKERS["perplexity"]["sonar-pro"], perplexity.alternation]),
}

MAKER_OF: Mapping[str, str] = {"magistral": "mistral", "sealing": "openai", "signing": "gemini"}
"""The makers of thinkers with another name."""


class ThinkingProvider(StrictProvider):
    """A provider of chat completions that answers as a thinker."""

    def __init__(self, name: str, thinker: Thinker) -> None:
        super().__init__(*thinker.checks, models=[thinker.model])
        self.name = name
        self.thinker = thinker
        self.count = 0

    async def answer(self, request: web.Request, body: Body) -> web.StreamResponse:
        """Answer with a call or a text."""
        if request.method == "POST":
            self.count += 1
            self.script(self._reply(body))
        return await super().answer(request, body)

    def _reply(self, body: Body) -> Body:
        reasoning = dict(self.thinker.reason(thought(self.name, self.count)))
        text = f"{self.name} says {self.count}"
        if "tools" not in body or body["messages"][-1]["role"] == "tool":
            if isinstance(reasoning.get("content"), list):
                text = [*reasoning.pop("content"), {"type": "text", "text": text}]  # type: ignore[assignment]
            return {**reasoning, "content": text}
        arguments = orjson.dumps({"maker": self.name, "number": self.count}).decode()
        call = {
            "id": self.thinker.call_id(self.count),
            "type": "function",
            "function": {"name": "look", "arguments": arguments},
        }
        return {**reasoning, "tool_calls": [self.thinker.sign(call)]}


class SignedThinker(SigningProvider):
    """A provider of the messages protocol that answers with signed thinking and a call, or a text."""

    def __init__(self, name: str) -> None:
        super().__init__(check, models=["claude-sonnet-4-5"])
        self.name = name
        self.count = 0

    async def answer(self, request: web.Request, body: Body) -> web.StreamResponse:
        """Answer with a call or a text."""
        if request.method == "POST":
            self.count += 1
            last = body["messages"][-1]["content"]
            is_result = isinstance(last, list) and last[0]["type"] == "tool_result"
            block: Body = {"type": "text", "text": f"{self.name} says {self.count}"}
            if not is_result:
                arguments = {"maker": self.name, "number": self.count}
                block = {
                    "type": "tool_use",
                    "id": f"toolu_{self.count:02}",
                    "name": "look",
                    "input": arguments,
                }
            self.script({"content": [thinking(thought(self.name, self.count)), block]})
        return await super().answer(request, body)


AnyThinker = ThinkingProvider | SignedThinker | ResponsesThinker | GeminiThinker


async def start_thinkers(stack: AsyncExitStack) -> dict[str, AnyThinker]:
    """Start one provider for each thinker, and one of each other protocol."""
    providers: dict[str, AnyThinker] = {
        name: ThinkingProvider(name, thinker) for name, thinker in THINKERS.items()
    }
    providers["anthropic"] = SignedThinker("anthropic")
    providers["sealing"] = ResponsesThinker("sealing")
    providers["signing"] = GeminiThinker("signing")
    for provider in providers.values():
        await stack.enter_async_context(provider)
    return providers
