"""The meter of calls of models: begins, watches and finishes each of them."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, ParamSpec, TypeVar

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.metering.begun_call import BEGUN
from gatewayd.metering.estimates import estimate_call, estimate_end
from gatewayd.metering.interfaces import CallAdmission, CallObserver, MovingAdmission, ignore_call
from gatewayd.metering.records import (
    NO_USAGE,
    CallOutcome,
    CallPricing,
    MeteredCall,
    MeteredCaller,
    TokenUsage,
)

Result = TypeVar("Result")
Parameters = ParamSpec("Parameters")

CallHook = Callable[[MeteredCall], None]
"""A method of an observer."""

FAILURE_KINDS: Final = frozenset(
    {
        *(ErrorKind.UPSTREAM_FAILED, ErrorKind.UPSTREAM_UNREACHABLE, ErrorKind.TIMEOUT),
        *(ErrorKind.PLUGIN_FAILED, ErrorKind.INTERNAL),
    }
)
"""Errors that are failures; others are refusals."""


def no_price(call: MeteredCall, usage: TokenUsage) -> int | None:
    """Return None: no price is known."""
    return None


class CallMeter:
    """Holds the calls in flight, and tells observers and admissions of them.

    Each call is finished exactly once; what comes after that is ignored.
    """

    def __init__(
        self,
        observers: Sequence[CallObserver] = (),
        admissions: Sequence[CallAdmission] = (),
        pricing: CallPricing = no_price,
    ) -> None:
        self._begun: list[CallHook] = []
        self._first: list[CallHook] = []
        self._finished: list[CallHook] = []
        for observer in observers:
            self.watch(observer)
        self.admissions = list(admissions)
        self.pricing = pricing
        self.calls: set[MeteredCall] = set()
        """The calls in flight."""

    def watch(self, observer: CallObserver) -> None:
        """Tell an observer of all calls that begin from now on."""
        for hooks, name in ((self._begun, "begun"), (self._first, "first"), (self._finished, "finished")):
            if getattr(type(observer), name) is not ignore_call:
                hooks.append(getattr(observer, name))

    def begin(
        self,
        caller: MeteredCaller,
        model: str,
        endpoint: str,
        body: Mapping[str, Any] | None = None,
        *,
        request_id: str = "",
        is_stream: bool = False,
    ) -> MeteredCall:
        """Return a call that has begun; `body` is the request, for estimates."""
        begun = BEGUN.get()
        if begun is not None and (known := begun.take_call(model)) is not None:
            return known
        call = self.prepare(caller, model, endpoint, body, request_id=request_id, is_stream=is_stream)
        self.start(call)
        return call

    def prepare(
        self,
        caller: MeteredCaller,
        model: str,
        endpoint: str,
        body: Mapping[str, Any] | None = None,
        *,
        request_id: str = "",
        is_stream: bool = False,
    ) -> MeteredCall:
        """Return a call that has not begun; the arguments are those of `begin`."""
        return MeteredCall(
            caller.user_id,
            caller.group_ids,
            caller.key_id or "",
            model,
            endpoint,
            request_id,
            is_stream,
            body=body,
        )

    def start(self, call: MeteredCall) -> None:
        """Begin a prepared call."""
        self.calls.add(call)
        for hook in self._begun:
            hook(call)

    def is_free(self, call: MeteredCall) -> bool:
        """Return whether no admission concerns a call."""
        for admission in self.admissions:  # noqa: SIM110 - a generator would cost more than the loop
            if admission.concerns(call):
                return False
        return True

    async def run(
        self,
        call: MeteredCall,
        ask: Callable[Parameters, Awaitable[Result]],
        *args: Parameters.args,
        **options: Parameters.kwargs,
    ) -> Result:
        """Admit a call, and return what `ask` answers; a refusal, failure or cancellation finishes it.

        The caller finishes an answered call.
        """
        outcome: CallOutcome | None = CallOutcome.FAILED
        try:
            if not call.is_admitted and not self.is_free(call):
                await self._admit(call)
            result = await ask(*args, **options)
            outcome = None
        except asyncio.CancelledError:
            outcome = CallOutcome.CANCELLED
            raise
        except GatewayError as error:
            outcome = CallOutcome.FAILED if error.kind in FAILURE_KINDS else CallOutcome.REFUSED
            call.error_kind = error.kind.value
            raise
        finally:
            if outcome is not None:
                self.finish(call, outcome)
        return result

    async def move(self, call: MeteredCall) -> None:
        """Admit a call of this meter that is about to be sent to another source than before.

        Raises as the admissions do.
        """
        if call.holds_calls or call not in self.calls:
            return
        for admission in self.admissions:
            if isinstance(admission, MovingAdmission):
                is_known = admission in call.admissions
                if await admission.move(call) and not is_known:
                    call.admissions = (*call.admissions, admission)

    def first(self, call: MeteredCall) -> None:
        """Note the first part of the answer."""
        if call.first_at:
            return
        call.first_at = time.monotonic()
        for hook in self._first:
            hook(call)

    def finish(self, call: MeteredCall, outcome: CallOutcome, usage: TokenUsage | None = None) -> None:
        """End a call; `usage` is what the provider told, None or zeros make it estimated by what came."""
        if call.ended_at:
            return
        call.ended_at = time.monotonic()
        call.outcome = outcome
        self.calls.discard(call)
        if call.holds_calls:
            usage = NO_USAGE
        elif usage is None or not (usage.prompt or usage.completion):
            usage = estimate_end(call)
            call.is_estimated = usage.total > 0
        call.usage = usage
        call.body = None
        call.cost = self.pricing(call, usage)
        for hook in self._finished:
            hook(call)
        for admission in call.admissions:
            admission.settled(call)

    async def _admit(self, call: MeteredCall) -> None:
        estimate: TokenUsage | None = None
        for admission in self.admissions:
            if admission.concerns(call):
                estimate = estimate or estimate_call(call)
                await admission.admit(call, estimate)
                call.admissions = (*call.admissions, admission)
