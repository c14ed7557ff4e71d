"""
description: Refuses requests of users who have sent too many, with the time to wait.
title: Rate limit
author: gatewayd
version: 1.0.0
license: Apache-2.0
"""

import importlib
import math
import time
from collections import deque
from typing import Any, Final

from pydantic import BaseModel, Field

MINUTE: Final = 60
HOUR: Final = 3600
CHARACTERS_PER_TOKEN: Final = 4
BACKGROUND_ENDPOINT: Final = "background"
"""Endpoint of the tasks of the gateway, such as titles; their chat request is already counted."""

MAX_WINDOWS: Final = 10_000
"""Number of windows above which empty ones are removed."""

Key = tuple[str, str, int]
Limit = tuple[Key, int, int, str]


class HTTPException(Exception):  # noqa: N818 - name of the fastapi class
    """Replacement of the HTTPException of fastapi, when that is not installed."""

    def __init__(self, status_code: int, detail: str, headers: dict[str, str]) -> None:
        super().__init__(detail)
        self.status_code = status_code
        self.detail = detail
        self.headers = headers


class RateWindow:
    """Count of the last `seconds`."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds
        self.total = 0
        self._entries: deque[tuple[float, int]] = deque()

    def wait(self, now: float, amount: int, limit: int) -> float:
        """Return the seconds until `amount` more fits within `limit`: 0 for now, infinity for never."""
        self.forget(now)
        if amount > limit:
            return math.inf
        free = limit - self.total
        for at, counted in self._entries:
            if free >= amount:
                break
            free += counted
            if free >= amount:
                return at + self.seconds - now
        return 0.0

    def count(self, now: float, amount: int) -> None:
        """Add an amount at the time `now`."""
        self._entries.append((now, amount))
        self.total += amount

    def forget(self, now: float) -> None:
        """Drop amounts that are older than the window."""
        while self._entries and self._entries[0][0] <= now - self.seconds:
            self.total -= self._entries.popleft()[1]


class Filter:
    """Counts requests in sliding windows and refuses requests over a limit, which do not count."""

    class Valves(BaseModel):
        """The limits; 0 means no limit."""

        priority: int = Field(-100, description="Filters with lower numbers run first.")
        user_per_minute: int = Field(
            20, ge=0, description="Requests of one user in a minute; 0 for no limit."
        )
        user_per_hour: int = Field(0, ge=0, description="Requests of one user in an hour; 0 for no limit.")
        user_model_per_minute: int = Field(
            0, ge=0, description="Requests of one user to one model in a minute; 0 for no limit."
        )
        user_model_per_hour: int = Field(
            0, ge=0, description="Requests of one user to one model in an hour; 0 for no limit."
        )
        model_per_minute: int = Field(
            0, ge=0, description="Requests of all users to one model in a minute; 0 for no limit."
        )
        model_per_hour: int = Field(
            0, ge=0, description="Requests of all users to one model in an hour; 0 for no limit."
        )
        tokens_per_minute: int = Field(
            0, ge=0, description="Estimated tokens that one user sends in a minute; 0 for no limit."
        )
        admins_exempt: bool = Field(True, description="Administrators have no limits and are not counted.")

    def __init__(self) -> None:
        self.valves = self.Valves()
        self.clock = time.monotonic
        self._windows: dict[Key, RateWindow] = {}

    async def inlet(
        self,
        body: dict[str, Any],
        __user__: dict[str, Any],
        __model__: dict[str, Any] | None = None,
        __shared_limits__: Any = None,
    ) -> dict[str, Any]:
        """Count a request, or refuse it with status 429; `__shared_limits__` counts those of all nodes."""
        if self.valves.admins_exempt and __user__.get("role") == "admin":
            return body
        if (body.get("metadata") or {}).get("endpoint") == BACKGROUND_ENDPOINT:
            return body
        now = self.clock()
        model = str((__model__ or {}).get("id") or body.get("model") or "")
        limits = self._limits(str(__user__.get("id") or ""), model)
        tokens = estimate_tokens(body.get("messages")) if self.valves.tokens_per_minute else 0
        shared = None
        if limits and __shared_limits__ is not None:
            rows = [
                ("\n".join(map(str, key)), key[2], number, _amount(key, tokens))
                for key, number, _, _ in limits
            ]
            shared = await __shared_limits__(rows)
        if shared is None:
            shared = [self._wait(limit, now, tokens) for limit in limits]
        waits = list(zip(shared, limits, strict=True))
        longest, (key, number, seconds, what) = max(waits, default=(0.0, (("", "", 0), 0, 0, "")))
        if longest:
            raise refusal_exception(longest, number, seconds, what, tokens if key[0] == "tokens" else 1)
        for key, _, seconds, _ in limits:
            if key not in self._windows:
                self._remove_empty_windows(now)
            window = self._windows.setdefault(key, RateWindow(seconds))
            window.count(now, _amount(key, tokens))
        return body

    def _limits(self, user: str, model: str) -> list[Limit]:
        """Return the limits in force, each with the key of its window."""
        valves = self.valves
        both = f"{user}\n{model}"
        rows = (
            ("user", user, MINUTE, valves.user_per_minute, "requests"),
            ("user", user, HOUR, valves.user_per_hour, "requests"),
            ("user and model", both, MINUTE, valves.user_model_per_minute, f"requests to {model}"),
            ("user and model", both, HOUR, valves.user_model_per_hour, f"requests to {model}"),
            ("model", model, MINUTE, valves.model_per_minute, f"requests of all users to {model}"),
            ("model", model, HOUR, valves.model_per_hour, f"requests of all users to {model}"),
            ("tokens", user, MINUTE, valves.tokens_per_minute, "tokens"),
        )
        return [
            ((kind, of, seconds), number, seconds, what) for kind, of, seconds, number, what in rows if number
        ]

    def _wait(self, limit: Limit, now: float, tokens: int) -> float:
        key, number, seconds, _ = limit
        if key not in self._windows:
            self._remove_empty_windows(now)
        window = self._windows.get(key) or RateWindow(seconds)
        return window.wait(now, _amount(key, tokens), number)

    def _remove_empty_windows(self, now: float) -> None:
        if len(self._windows) < MAX_WINDOWS:
            return
        for window in self._windows.values():
            window.forget(now)
        self._windows = {key: window for key, window in self._windows.items() if window.total}


def estimate_tokens(messages: Any) -> int:
    """Return the estimated tokens of messages, one for each four characters of text."""
    total = 0
    for message in messages if isinstance(messages, list) else []:
        content = message.get("content") if isinstance(message, dict) else None
        parts = content if isinstance(content, list) else [{"text": content}]
        texts = [part.get("text") for part in parts if isinstance(part, dict)]
        total += sum(len(text) for text in texts if isinstance(text, str))
    return math.ceil(total / CHARACTERS_PER_TOKEN)


def refusal_exception(wait: float, number: int, seconds: int, what: str, amount: int) -> Exception:
    """Return the exception for a refused request, with status 429 and the seconds to wait."""
    span = "a minute" if seconds == MINUTE else "an hour"
    if number == 1:
        what = what.replace("requests", "request", 1)
    if math.isinf(wait):
        sentence = f"cannot answer: the request has about {amount} {what}, and {number} are allowed in {span}"
        return _http_exception(sentence, {})
    whole = max(1, math.ceil(wait))
    unit = "second" if whole == 1 else "seconds"
    sentence = f"cannot answer yet: the limit is {number} {what} in {span}; try again in {whole} {unit}"
    return _http_exception(sentence, {"Retry-After": str(whole)})


def _http_exception(sentence: str, headers: dict[str, str]) -> Exception:
    try:
        kind = importlib.import_module("fastapi").HTTPException
    except ImportError:
        kind = HTTPException
    made: Exception = kind(status_code=429, detail=sentence, headers=headers)
    return made


def _amount(key: Key, tokens: int) -> int:
    return tokens if key[0] == "tokens" else 1
