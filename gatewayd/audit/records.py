"""Records of the audit log: what is recorded, and a row of the chain."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from gatewayd.text import MAX_STORED_DEPTH, storable, storable_value

MAX_NAME_CHARACTERS: Final = 300
MAX_SUBJECT_CHARACTERS: Final = 1003
"""Longest text of a row: 1000 characters and the mark of a cut one."""

MAX_VALUES_BYTES: Final = 16 * 1024
"""Largest JSON of the values of a row before or after the change; larger ones are dropped with a note."""

NO_HASH: Final = "0" * 64
"""The hash before the first row."""


class AuditActorKind(StrEnum):
    """Who acts."""

    ACCOUNT = "account"
    KEY = "key"
    UNIX = "unix"
    SCIM = "scim"
    ANONYMOUS = "anonymous"
    GATEWAY = "gateway"


class AuditResult(StrEnum):
    """What became of an action."""

    DONE = "done"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class AuditActor:
    """Who acts: `name` is an e-mail address, a unix user or a SCIM client.

    `id` is the id of the account, the uid of the unix user or the fingerprint of the SCIM token; `key` is the
    prefix of the API key.
    """

    kind: AuditActorKind
    name: str = ""
    id: str = ""
    key: str = ""


GATEWAY_ACTOR: Final = AuditActor(AuditActorKind.GATEWAY, "gatewayd")


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One action, without its place in the chain. No value is a secret.

    `subject` is the name of the changed object, `target` its path or id. `detail` says why an action was
    refused.
    """

    action: str
    actor: AuditActor
    address: str = ""
    target: str = ""
    subject: str = ""
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    request_id: str = ""
    result: AuditResult = AuditResult.DONE
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ChainHead:
    """The place of the last row of a chain: its sequence number and hash."""

    sequence: int = 0
    hash: str = NO_HASH

    def __str__(self) -> str:
        return f"{self.sequence}:{self.hash}"


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One row of the chain, with the names of its columns. `at` is in epoch microseconds.

    `hash` is the SHA-256 of the canonical JSON of all other columns (`chain.canonical`).
    """

    sequence: int
    at: int
    actor_kind: str
    actor: str
    actor_id: str
    key: str
    address: str
    action: str
    target: str
    subject: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    request_id: str
    result: str
    detail: str
    previous: str
    hash: str

    @property
    def place(self) -> ChainHead:
        """The place of the row in the chain."""
        return ChainHead(self.sequence, self.hash)


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """A selection of rows; an empty text selects all.

    `who` is part of the actor's name or equal to their id or key prefix, `action` and `target` are parts of
    those columns or of the subject. `since` and `until` are epoch microseconds, `after` is a sequence number.
    """

    who: str = ""
    action: str = ""
    target: str = ""
    since: int | None = None
    until: int | None = None
    after: int | None = None
    limit: int = 100
    newest: bool = False
    """Whether the newest rows of the selection are wanted; rows come in the order of the chain anyway."""


@dataclass(frozen=True, slots=True)
class ChainProblem:
    """A fault of a chain: the sequence number of the row, and a sentence.

    `by_checkpoint` is whether a checkpoint alone shows it: the chain itself is whole.
    """

    sequence: int
    message: str
    by_checkpoint: bool = False


@dataclass(frozen=True, slots=True)
class ChainVerdict:
    """Result of a verification; without problems the chain is sound. `base` is what retention removed."""

    rows: int
    base: ChainHead
    head: ChainHead
    problems: Sequence[ChainProblem] = ()


def storable_entry(entry: AuditEntry) -> dict[str, Any]:
    """Return the columns of an entry, with each text and value in a form that every database can store."""
    actor = entry.actor
    names = {
        "actor_kind": actor.kind.value,
        "actor": actor.name,
        "actor_id": actor.id,
        "key": actor.key,
        "address": entry.address,
        "action": entry.action,
        "request_id": entry.request_id,
        "result": entry.result.value,
    }
    texts = {"target": entry.target, "subject": entry.subject, "detail": entry.detail}
    return {
        **{name: storable(text[:MAX_NAME_CHARACTERS]) for name, text in names.items()},
        **{name: storable(text[:MAX_SUBJECT_CHARACTERS]) for name, text in texts.items()},
        "before": _storable_values(entry.before),
        "after": _storable_values(entry.after),
    }


def _storable_values(values: Mapping[str, Any]) -> dict[str, Any]:
    clean: dict[str, Any] = storable_value(dict(values), str, MAX_STORED_DEPTH)
    return clean
