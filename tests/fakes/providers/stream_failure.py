"""A playbook of something that can befall a stream, and the accidents that are the same in all protocols."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tests.fakes.providers.upstream import CUT, SILENCE, Reply, Step, json_reply

Kind = Literal["openai", "anthropic", "ollama"]
Steps = Sequence[bytes | Step]


@dataclass(frozen=True)
class Accident:
    """One playbook: `reply` to a request for a stream, and its outcome.

    `text` and `thoughts` are all that is said; `tool_calls` are names with arguments. `usage` is the numbers
    of prompt and completion tokens when the caller asked for them. With `error` the stream fails and the
    message holds these words: in band when anything was said before (`is_begun`), otherwise as a status.
    """

    name: str
    kind: Kind
    reply: Reply
    text: str = ""
    thoughts: str = ""
    tool_calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    finish_reason: str | None = None
    usage: tuple[int, int] | None = None
    error: str | None = None
    is_begun: bool = True

    @property
    def is_silent(self) -> bool:
        """Whether the provider says nothing until a deadline passes."""
        return self.reply.before is SILENCE or SILENCE in self.reply.steps


USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
CALLS = (("f", {"x": 1}), ("g", {"y": "é"}))
HTML = b"<!doctype html>\n<html><body><h1>502 Bad Gateway</h1></body></html>\n"
HUGE: Steps = [b"x" * (1024 * 1024)] * 30
EXECUTE = {"event": {"type": "execute", "data": {"code": "canary()"}}}


def drip(text: bytes, size: int = 1) -> list[bytes]:
    """Return the writes of a text in pieces of so many bytes."""
    return [text[at : at + size] for at in range(0, len(text), size)]


TEXT = "Hello é\U0001f600"
"""What a good stream says."""


def refused(kind: Kind) -> list[Accident]:
    """Return the faults before a stream, the same in all protocols."""
    named: dict[str, tuple[Reply, str]] = {
        "a refusal": (json_reply({"error": {"message": "no such thing"}}, 400), "no such thing"),
        "a rejected key": (json_reply({"error": {"message": "who?"}}, 401), "401"),
        "a limit": (json_reply({"error": {"message": "slow down"}}, 429, Retry_After="7"), "slow down"),
        "a failure without a body": (Reply(500, content_type=""), "500"),
        "an HTML page": (Reply(steps=[HTML], content_type="text/html"), "HTML"),
        "an HTML page as an error": (Reply(503, steps=[HTML], content_type="text/html"), "HTML"),
        "a redirect": (Reply(307, {"Location": "http://127.0.0.1:1/"}), "redirects"),
        "an error with status 200": (json_reply({"error": {"message": "overloaded"}}), "overloaded"),
        "nothing": (Reply(), "before it was complete"),
        "a cut before the head": (Reply(before=CUT), ""),
        "a cut after the head": (Reply(steps=[CUT]), ""),
        "silence": (Reply(before=SILENCE), ""),
        "silence after the head": (Reply(steps=[SILENCE]), ""),
        "garbage": (Reply(steps=[b"\x00\xff\xfe garbage\n"], content_type="application/json"), "not JSON"),
        "a huge line": (Reply(steps=[b"data: ", *HUGE, b"\n\n"]), "bytes"),
    }
    return [
        Accident(f"{kind}: {name}", kind, reply, error=words, is_begun=False)
        for name, (reply, words) in named.items()
    ]


def broken(kind: Kind, begun: bytes, text: str, faults: Mapping[str, tuple[Steps, str]]) -> list[Accident]:
    """Return the faults in the middle of a stream that began with `begun`."""
    return [
        Accident(f"{kind}: {name}", kind, Reply(steps=[begun, *steps]), text=text, error=words)
        for name, (steps, words) in faults.items()
    ]
