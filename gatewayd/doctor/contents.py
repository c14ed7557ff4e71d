"""Checks of what is stored: the schema, limits, bytes and vectors; and of providers and plugins."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gatewayd.doctor import service_commands
from gatewayd.doctor.findings import DoctorFinding
from gatewayd.doctor.state_folder import value_command

SCHEMA_MENDS: Final = {
    "schema_older": ("schema-older", "gatewayd --migrate"),
    "schema_newer": ("schema-newer", service_commands.upgrade()),
    "schema_broken": ("schema-broken", service_commands.RESTORE),
    "database_incomplete": ("schema-broken", service_commands.RESTORE),
}

MEBIBYTE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class StoredLimit:
    """A setting with its value (0 for no limit), and the largest stored thing that it limits, in bytes.

    `place` is the line of the configuration file that sets it, None if another source does.
    """

    setting: str
    value: int
    largest: int
    noun: str
    place: tuple[Path, int] | None = None


@dataclass(frozen=True, slots=True)
class GarbageFacts:
    """Numbers of what nothing needs, by the kind of `ingest.garbage`."""

    counts: Mapping[str, int] = field(default_factory=dict)


GARBAGE_CODES: Final = {
    "orphaned files": ("files-orphaned", "stored files have no row"),
    "abandoned uploads": ("uploads-abandoned", "uploads were begun and never finished"),
    "unused vectors": ("vectors-unused", "embedding models have vectors that nothing searches"),
}


def check_schema(code: str, message: str) -> Iterator[DoctorFinding]:
    """Return the finding of a schema that does not fit; `code` is that of the error."""
    if code in SCHEMA_MENDS:
        found, command = SCHEMA_MENDS[code]
        yield DoctorFinding(found, message, command)


def check_damage(problems: Sequence[str]) -> Iterator[DoctorFinding]:
    """Return the findings of a damaged database."""
    for problem in problems:
        yield DoctorFinding("database-damaged", problem, service_commands.RESTORE)


def check_limits(limits: Sequence[StoredLimit]) -> Iterator[DoctorFinding]:
    """Compare limits with what is stored: a larger thing could not be stored again, after a restore."""
    for limit in limits:
        if 0 < limit.value < limit.largest:
            needed = f"{-(-limit.largest // MEBIBYTE)}MiB"
            name = limit.setting.replace("_", "-")
            command = service_commands.drop_in(name, f"Environment={limit.setting.upper()}={needed}")
            if limit.place is not None:
                command = value_command(*limit.place, limit.setting, needed)
            yield DoctorFinding(
                "limit-small",
                f"{limit.setting} is {limit.value} bytes, and {limit.noun} has {limit.largest}",
                command,
            )


def check_garbage(facts: GarbageFacts) -> Iterator[DoctorFinding]:
    """Return the findings of what `gatewayctl gc` removes."""
    for kind, (code, words) in GARBAGE_CODES.items():
        count = facts.counts.get(kind, 0)
        if count:
            yield DoctorFinding(code, f"{count} {words}", "gatewayctl gc")


def check_lost(file_ids: Sequence[str]) -> Iterator[DoctorFinding]:
    """Return the findings of files whose bytes are gone."""
    for file_id in file_ids:
        yield DoctorFinding(
            "file-lost",
            f"the bytes of the file {file_id} are gone",
            f"gatewayctl file delete {file_id} --yes",
        )


def check_index(embedded: int, passages: int) -> Iterator[DoctorFinding]:
    """Compare the passages with those that have a vector in the space that is searched."""
    if embedded < passages:
        yield DoctorFinding(
            "index-behind",
            f"{passages - embedded} of {passages} passages have no vector: only their words are found",
            "gatewayctl collection reindex --wait",
        )


def check_sources(states: Sequence[Mapping[str, object]], command: str) -> Iterator[DoctorFinding]:
    """Check the model sources, as the catalogue describes them; `command` makes a first one."""
    if not states:
        yield DoctorFinding("provider-none", "there is no model provider", command)
    for state in states:
        if state["problem"] is not None:
            yield DoctorFinding(
                "provider-unreachable", f"{state['name']}: {state['problem']}", "gatewayctl health"
            )


def check_plugins(problems: Mapping[tuple[str, str], str]) -> Iterator[DoctorFinding]:
    """Check that active plugins load; the keys are family and id."""
    for (family, plugin_id), problem in problems.items():
        yield DoctorFinding(
            "plugin-broken",
            f"the {family} {plugin_id} does not work: {problem}",
            f"gatewayctl {family} disable {plugin_id}",
        )


def check_audit(
    problems: Sequence[str], by_checkpoint: Sequence[str], checkpoints: Path
) -> Iterator[DoctorFinding]:
    """Return the findings of a broken chain of the audit log.

    What the file of checkpoints alone shows is so after each restore: the command puts the file aside, where
    it stays as evidence, and the daemon begins another one.
    """
    for message in problems:
        yield DoctorFinding(
            "audit-broken", f"the audit log is not whole: {message}", "gatewayctl audit verify"
        )
    if by_checkpoint:
        path = shlex.quote(str(checkpoints))
        yield DoctorFinding(
            "audit-broken",
            "the audit log is not that of its checkpoints, as after a restore; else it was cut: "
            f"{by_checkpoint[0]}",
            f"mv --backup=numbered {path} {shlex.quote(f'{checkpoints}.former')}",
        )
