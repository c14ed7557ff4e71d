"""Checks of what is stored, of providers and plugins: from facts to findings."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from gatewayd.doctor import contents, service_commands
from gatewayd.doctor.findings import DoctorFinding

LIMIT = contents.StoredLimit("rag_file_max_size", 5 << 20, (9 << 20) + 1, "a stored file")
CHECKPOINTS = Path("/a b/c")
SOURCE = {"name": "openai", "models": 0, "problem": "cannot reach it"}


def garbage(kind: str, count: int = 1) -> Iterable[DoctorFinding]:
    return contents.check_garbage(contents.GarbageFacts({kind: count}))


@pytest.mark.parametrize(
    ("found", "code", "command"),
    [
        (contents.check_schema("schema_older", "x"), "schema-older", "gatewayd --migrate"),
        (contents.check_schema("schema_newer", "x"), "schema-newer", service_commands.upgrade()),
        (contents.check_schema("schema_broken", "x"), "schema-broken", service_commands.RESTORE),
        (contents.check_schema("database_incomplete", "x"), "schema-broken", service_commands.RESTORE),
        (contents.check_damage(["Tree 5"]), "database-damaged", service_commands.RESTORE),
        (
            contents.check_limits([LIMIT]),
            "limit-small",
            service_commands.drop_in("rag-file-max-size", "Environment=RAG_FILE_MAX_SIZE=10MiB"),
        ),
        (garbage("orphaned files"), "files-orphaned", "gatewayctl gc"),
        (garbage("abandoned uploads"), "uploads-abandoned", "gatewayctl gc"),
        (garbage("unused vectors"), "vectors-unused", "gatewayctl gc"),
        (contents.check_lost(["f1"]), "file-lost", "gatewayctl file delete f1 --yes"),
        (contents.check_index(3, 5), "index-behind", "gatewayctl collection reindex --wait"),
        (contents.check_sources([], "fetch it"), "provider-none", "fetch it"),
        (contents.check_sources([SOURCE], "fetch it"), "provider-unreachable", "gatewayctl health"),
        (
            contents.check_plugins({("tool", "weather"): "it raised"}),
            "plugin-broken",
            "gatewayctl tool disable weather",
        ),
        (
            contents.check_audit(["row 3 is missing"], [], CHECKPOINTS),
            "audit-broken",
            "gatewayctl audit verify",
        ),
        (
            contents.check_audit([], ["row 3 is not the one", "row 4 is not"], CHECKPOINTS),
            "audit-broken",
            "mv --backup=numbered '/a b/c' '/a b/c.former'",
        ),
    ],
)
def test_findings(found: Iterable[DoctorFinding], code: str, command: str) -> None:
    [finding] = found
    assert (finding.code, finding.command) == (code, command)
    assert not finding.sentence.endswith(".")


@pytest.mark.parametrize(
    "found",
    [
        contents.check_schema("", "the server does not answer"),
        contents.check_damage([]),
        contents.check_limits([contents.StoredLimit("a", 0, 9, "b"), contents.StoredLimit("a", 9, 9, "b")]),
        garbage("orphaned files", 0),
        garbage("expired sessions", 5),
        contents.check_index(5, 5),
        contents.check_sources([{**SOURCE, "problem": None}], "fetch it"),
        contents.check_plugins({}),
        contents.check_audit([], [], CHECKPOINTS),
    ],
)
def test_nothing_is_found_where_nothing_is_wrong(found: Iterable[DoctorFinding]) -> None:
    assert list(found) == []
