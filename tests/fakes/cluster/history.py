"""Histories of nodes, and their checkers, which say what is wrong."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Seen:
    """A change that a node applied; with `is_clear` it emptied its caches at this version instead."""

    node: str
    version: int
    subject: str = ""
    is_clear: bool = False


@dataclass(frozen=True)
class Asked:
    """A request with a credential that was sent to a node at a boot time, and whether it was admitted.

    `is_unknown` says that no answer came.
    """

    node: str
    sent_at: float
    is_admitted: bool
    is_unknown: bool = False


def check_order(seen: Iterable[Seen]) -> Sequence[str]:
    """Return where a node skipped or repeated a version, or where two nodes differ about one."""
    problems, last, known = [], dict[str, int](), dict[int, str]()
    for each in seen:
        before = last.get(each.node, 0)
        last[each.node] = each.version
        if each.is_clear:
            continue
        if each.version != before + 1:
            problems.append(f"{each.node}: version {each.version} follows {before}")
        if known.setdefault(each.version, each.subject) != each.subject:
            problems.append(f"{each.node}: version {each.version} is {each.subject}")
    return problems


def check_revocation(asked: Sequence[Asked], revoked_at: float, seconds: float = 1.0) -> Sequence[str]:
    """Return which requests were admitted too late; a history without an admission proves nothing."""
    problems = [
        f"{each.node}: admitted {each.sent_at - revoked_at:.3f} s after the revocation"
        for each in asked
        if each.is_admitted and each.sent_at > revoked_at + seconds
    ]
    if not any(each.is_admitted and each.sent_at < revoked_at for each in asked):
        problems.append("nothing was admitted before the revocation")
    if not any(each.sent_at > revoked_at + seconds for each in asked):
        problems.append("nothing was asked after the revocation")
    return problems
