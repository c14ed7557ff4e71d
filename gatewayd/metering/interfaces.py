"""Interfaces of those who watch calls of models, and of those who may refuse them."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from gatewayd.metering.records import MeteredCall, TokenUsage


class CallObserver(Protocol):
    """Is told of every call; synchronous, without I/O, within microseconds, and it never raises."""

    def begun(self, call: MeteredCall) -> None:
        """Note a call before its first attempt."""
        ...

    def first(self, call: MeteredCall) -> None:
        """Note the first part of a streamed answer."""
        ...

    def finished(self, call: MeteredCall) -> None:
        """Note the end of a call, with outcome, usage and cost; told exactly once for each begun call."""
        ...


def ignore_call(_: object, call: MeteredCall) -> None:
    """Do nothing; the method of an observer that is not told of a step."""


class CallAdmission(Protocol):
    """May refuse a call before anything is sent, and learns what an admitted one used."""

    def concerns(self, call: MeteredCall) -> bool:
        """Return whether the call needs to be admitted; without I/O, within a microsecond."""
        ...

    async def admit(self, call: MeteredCall, estimate: TokenUsage) -> None:
        """Admit a call with the expected tokens; raises GatewayError (rate_limited) to refuse it.

        May wait, for a place in a queue. May keep its state in `reservation` of the call. One that raises or
        is cancelled leaves nothing behind, and the call is not settled.
        """
        ...

    def headers(self, call: MeteredCall) -> Mapping[str, str]:
        """Return the headers of the answer of an admitted call, also after its end.

        Limits have the names of OpenAI's headers (`completions.rate_limits`).
        """
        ...

    def settled(self, call: MeteredCall) -> None:
        """Take the final usage of an admitted call; called exactly once, however the call ended."""
        ...


@runtime_checkable
class MovingAdmission(Protocol):
    """Admits calls by their source."""

    async def move(self, call: MeteredCall) -> bool:
        """Admit a call whose source has changed, in place of its former admission.

        Returns whether it admitted the call. May wait, and raises as `CallAdmission.admit`; the former
        admission is given up in any case.
        """
        ...


@runtime_checkable
class ChargingAdmission(Protocol):
    """Counts calls that a provider answered outside of the gateway's own calls."""

    async def can_hold(self, call: MeteredCall, estimate: TokenUsage) -> bool:
        """Return whether a call with the expected tokens would be admitted by what is charged now."""
        ...

    async def charge(self, call: MeteredCall) -> None:
        """Count the usage and the cost of a call that has ended; nothing refuses it."""
        ...
