"""Remembers for an hour who made a reasoning text, and what its maker wants back with it.

Many clients and two of the protocols have no place for signatures, encrypted reasoning and other members of
an answer (gatewayd-dialects(7), REASONING).
"""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from gatewayd.completions.json_access import as_mapping, as_text

MAX_ENTRY_BYTES: Final = 1024 * 1024
"""Maximum size of what is remembered of one answer; nothing is remembered of a larger one."""

MAX_USER_BYTES: Final = 4 * 1024 * 1024
MAX_MEMORY_BYTES: Final = 64 * 1024 * 1024
"""Maximum size of all entries of one user, and of all users; the oldest go first."""

MAX_SAME_KEYS: Final = 64
"""Maximum number of answers that one key finds; some providers number the calls of each answer anew."""

MAX_KEYED_CHARACTERS: Final = 32 * 1024
"""Maximum length of the arguments of a call that is found by them."""

MAX_KEYED_CALLS: Final = 64
"""Maximum number of calls, and of thinking blocks, by which one message is found."""

LIFETIME_SECONDS: Final = 3600.0

_ENTRY_BYTES: Final = 600
_KEY_BYTES: Final = 120
"""Approximate size of the records of one entry, and of one of its keys."""


@dataclass(frozen=True, slots=True)
class KeptCall:
    """A call of an answer: its id, the key of its name and arguments, and its further members."""

    id: str
    key: str
    members: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KeptReasoning:
    """What is remembered of one answer: who made it, its reasoning, and members that only its maker reads."""

    origin: str
    text: str = ""
    members: Mapping[str, Any] = field(default_factory=dict)
    calls: tuple[KeptCall, ...] = ()
    number: int = field(default=0, compare=False)
    """Tells apart what is remembered of different answers."""


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    number: int
    user_id: str
    origin: str
    keys: tuple[str, ...]
    data: bytes
    size: int
    until: float


@dataclass(slots=True)
class _UserEntries:
    by_key: dict[str, dict[int, _Entry]] = field(default_factory=dict)
    entries: OrderedDict[int, _Entry] = field(default_factory=OrderedDict)
    size: int = 0


class ReasoningMemory:
    """Entries by user and key; nobody else's entries are found."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        user_bytes: int = MAX_USER_BYTES,
        total_bytes: int = MAX_MEMORY_BYTES,
    ) -> None:
        self._clock = clock
        self._user_bytes = user_bytes
        self._total_bytes = total_bytes
        self._users: dict[str, _UserEntries] = {}
        self._all: OrderedDict[int, _Entry] = OrderedDict()
        self._count = 0
        self.size = 0
        """The approximate number of bytes of all entries."""

    def holds(self, user_id: str) -> bool:
        """Return True if anything is remembered for a user."""
        return user_id in self._users

    def put(self, user_id: str, keys: Iterable[str], kept: KeptReasoning) -> None:
        """Remember an answer under its keys, each of which finds the newest answers first."""
        now = self._clock()
        self._forget_expired(now)
        calls = [[call.id, call.key, call.members] for call in kept.calls]
        try:
            data = orjson.dumps([kept.origin, kept.text, kept.members, calls])
        except orjson.JSONEncodeError:
            # It nests too deep for any request.
            return
        names = tuple(dict.fromkeys(filter(None, keys)))
        size = len(data) + _ENTRY_BYTES + _KEY_BYTES * len(names)
        if not names or size > min(MAX_ENTRY_BYTES, self._user_bytes):
            return
        self._count += 1
        entry = _Entry(self._count, user_id, kept.origin, names, data, size, now + LIFETIME_SECONDS)
        own = self._users.setdefault(user_id, _UserEntries())
        own.entries[entry.number] = self._all[entry.number] = entry
        own.size += size
        self.size += size
        for key in names:
            same = own.by_key.setdefault(key, {})
            same[entry.number] = entry
            if len(same) > MAX_SAME_KEYS:
                del same[next(iter(same))]
        while own.size > self._user_bytes:
            self._remove(next(iter(own.entries.values())))
        while self.size > self._total_bytes:
            self._remove(next(iter(self._all.values())))

    def find(self, user_id: str, key: str, used: Container[int] = ()) -> KeptReasoning | None:
        """Return the newest answer of a user under a key whose number is not in `used`."""
        entry = self._find(user_id, key, used)
        if entry is None:
            return None
        origin, text, members, calls = orjson.loads(entry.data)
        return KeptReasoning(origin, text, members, tuple(KeptCall(*call) for call in calls), entry.number)

    def find_origin(self, user_id: str, key: str) -> str | None:
        """Return who made the newest answer of a user under a key; quick, whatever the size of the answer."""
        entry = self._find(user_id, key, ())
        return None if entry is None else entry.origin

    def _find(self, user_id: str, key: str, used: Container[int]) -> _Entry | None:
        own = self._users.get(user_id)
        same = own.by_key.get(key) if own is not None else None
        if same is None:
            return None
        entry = next((each for each in reversed(same.values()) if each.number not in used), None)
        return None if entry is None or entry.until <= self._clock() else entry

    def _forget_expired(self, now: float) -> None:
        while self._all:
            oldest = next(iter(self._all.values()))
            if oldest.until > now:
                return
            self._remove(oldest)

    def _remove(self, entry: _Entry) -> None:
        del self._all[entry.number]
        self.size -= entry.size
        own = self._users[entry.user_id]
        del own.entries[entry.number]
        own.size -= entry.size
        for key in entry.keys:
            same = own.by_key.get(key, {})
            same.pop(entry.number, None)
            if not same:
                own.by_key.pop(key, None)
        if not own.entries:
            del self._users[entry.user_id]


def call_key(call_id: str, content: str) -> str:
    """Return the key of an answer by the id of one of its calls and its `content_key`."""
    return _key("id", f"{content}:{call_id}")


def text_key(text: str) -> str:
    """Return the key of an answer by its reasoning, "" for one that is too long to be remembered."""
    return _key("text", text) if len(text) <= MAX_ENTRY_BYTES else ""


def signature_key(signature: str) -> str:
    """Return the key of an answer by a signature of its thinking."""
    return _key("signature", signature)


def content_keys(calls: Sequence[Any]) -> list[str]:
    """Return the `content_key` of each call of a message, "" for those beyond MAX_KEYED_CALLS."""
    keys = []
    for call in calls[:MAX_KEYED_CALLS]:
        function = as_mapping(as_mapping(call).get("function"))
        keys.append(content_key(as_text(function.get("name")), as_text(function.get("arguments"))))
    return [*keys, *[""] * (len(calls) - len(keys))]


def content_key(name: str, arguments: str) -> str:
    """Return the key of an answer by the name and the JSON arguments of one of its calls, "" for long ones.

    Clients of one protocol drop the ids of calls.
    """
    if len(arguments) > MAX_KEYED_CHARACTERS:
        return ""
    try:
        arguments = orjson.dumps(orjson.loads(arguments or "{}"), option=orjson.OPT_SORT_KEYS).decode()
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        # Clients return text that is no JSON as it is.
        return _key("call", f"{name}:{arguments}")
    return _key("call", f"{name}:{arguments}")


def _key(kind: str, text: str) -> str:
    return hashlib.blake2b(f"{kind}:{text}".encode(errors="replace"), digest_size=16).hexdigest()
