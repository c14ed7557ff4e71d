"""Checkers of what clients of several nodes saw during faults; each says what is wrong.

A write is acknowledged, or its outcome is unknown: its answer was lost, or an error that came after it began.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Connected:
    """A listener was connected: what it resumed after, and whether it was told of a gap."""

    has_gap: bool


@dataclass(frozen=True)
class Frame:
    """A listener got an event with this number."""

    number: int


@dataclass(frozen=True)
class StoredFile:
    """A file as the gateway has it at the end."""

    status: str
    content: bytes
    passages: Sequence[int] = ()


@dataclass
class Writes:
    """Values that were written, each once."""

    acknowledged: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)


def check_writes(writes: Writes, found: Sequence[str]) -> Sequence[str]:
    """Return which writes were lost, doubled or invented; a history without a write proves nothing."""
    counts = Counter(found)
    problems = [f"lost: {each}" for each in sorted(writes.acknowledged - counts.keys())]
    problems += [f"{count} times: {each}" for each, count in sorted(counts.items()) if count > 1]
    known = writes.acknowledged | writes.unknown
    problems += [f"never written: {each}" for each in sorted(counts.keys() - known)]
    if not writes.acknowledged:
        problems.append("nothing was acknowledged")
    return problems


def check_files(sent: Mapping[str, bytes], found: Mapping[str, StoredFile]) -> Sequence[str]:
    """Return which acknowledged files are lost, changed, not processed, or lack or repeat a passage."""
    problems = []
    for file_id, content in sent.items():
        file = found.get(file_id)
        if file is None:
            problems.append(f"lost: {file_id}")
            continue
        if file.content != content:
            problems.append(f"other bytes: {file_id}")
        if file.status != "completed":
            problems.append(f"{file.status}: {file_id}")
        if not file.passages or sorted(file.passages) != list(range(len(file.passages))):
            problems.append(f"passages {sorted(file.passages)}: {file_id}")
    return problems


def check_stream(
    told: Sequence[int], unsure: Collection[int], seen: Sequence[Connected | Frame]
) -> Sequence[str]:
    """Return which events a listener got twice, late, or not at all though no gap was told then or later.

    `told` are the numbers of acknowledged events in their order, `unsure` those that may be lost: of a write
    without an acknowledgement, or of a process that was killed before it passed them on.
    """
    problems: list[str] = []
    lost: list[str] = []
    got: set[int] = set()
    since_gap: set[int] = set()
    last: int | None = None
    for each in seen:
        if isinstance(each, Connected):
            if each.has_gap:
                # The listener reads anew what is stored, and what is still kept is told again.
                last, lost, since_gap = None, [], set()
            continue
        if each.number in since_gap:
            problems.append(f"twice: {each.number}")
        elif last is not None:
            between = [number for number in told if last < number < each.number and number not in unsure]
            lost += [f"lost: {number}" for number in between]
            if each.number < last:
                problems.append(f"late: {each.number} after {last}")
        got.add(each.number)
        since_gap.add(each.number)
        last = each.number
    problems += lost
    if told and told[-1] not in got and told[-1] not in unsure:
        problems.append(f"the last event did not come: {told[-1]}")
    if not got:
        problems.append("nothing was heard")
    return problems


def check_runs(messages: Mapping[str, Mapping[str, object]], answers: Collection[str]) -> Sequence[str]:
    """Return which runs did not end, or ended with a text that is no beginning of an answer."""
    problems = [f"not done: {name}" for name, message in messages.items() if message.get("done") is not True]
    for name, message in messages.items():
        content = str(message.get("content", ""))
        if not any(answer.startswith(content) for answer in answers):
            problems.append(f"{content!r}: {name}")
        elif content not in answers and not message.get("error"):
            problems.append(f"{content!r} without an error: {name}")
    if not messages:
        problems.append("nothing was answered")
    return problems
