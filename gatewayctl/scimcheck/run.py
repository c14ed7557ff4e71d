"""Run of the steps, one after the other."""

import secrets
from collections.abc import Iterator, Sequence
from typing import Final

from gatewayctl.scimcheck.address import Base
from gatewayctl.scimcheck.common import fingerprint
from gatewayctl.scimcheck.probe import Probe
from gatewayctl.scimcheck.read_steps import READING
from gatewayctl.scimcheck.records import Fault, Memory, Result, Step, Unanswered
from gatewayctl.scimcheck.write_steps import WRITING
from gatewayctl.wire.scim import ScimCheck

GROUP_NAME: Final = "gatewayctl scim check"
# Why a step is skipped, by the value that it needs.
LACKS: Final = {
    "access": "the token was not accepted",
    "user": "there is no user",
    "group": "the group was not made",
}


def run(probe: Probe, memory: Memory, steps: Sequence[Step]) -> Iterator[ScimCheck]:
    """Yield the result of each step; after one without an answer the others are skipped."""
    is_lost = False
    for step in steps:
        missing = [each for each in step.needs if each not in memory]
        if is_lost or missing:
            reason = "there was no answer before" if is_lost else LACKS[missing[0]]
            yield ScimCheck(step=step.name, result=Result.SKIPPED, detail=reason)
            continue
        try:
            yield _tried(probe, memory, step)
        except Unanswered as error:
            is_lost = True
            yield _failed(step, error.fault)


def steps(*, is_writing: bool) -> Sequence[Step]:
    """Return the steps to run."""
    return (*READING, *WRITING) if is_writing else READING


def start(base: Base, token: str) -> Memory:
    """Return the memory for the first step."""
    chance = secrets.token_hex(8)
    return {
        "random": chance,
        "name": f"{GROUP_NAME} {chance}",
        "fingerprint": fingerprint(token),
        "is_open": "yes" if base.is_open else "no",
    }


def _tried(probe: Probe, memory: Memory, step: Step) -> ScimCheck:
    verdict = step.judge(probe.send(step.ask(memory)), memory)
    if isinstance(verdict, Fault):
        return _failed(step, verdict)
    return ScimCheck(step=step.name, result=Result.OK, detail=verdict)


def _failed(step: Step, fault: Fault) -> ScimCheck:
    return ScimCheck(step=step.name, result=Result.FAILED, detail=fault.detail, advice=fault.advice)
