"""gatewayd-operations(7), DECLARATIVE STATE: its table has the tables and fields of the document."""

import re

from gatewayctl.wire.upkeep import state
from gatewayd.accounts.groups import MAX_MEMBERS_AT_ONCE
from gatewayd.json_decoder import BULK_LIMITS
from gatewayd.state.scope import MAX_GRANTS
from tests.suite.source_tree import ROOT

PAGE = (ROOT / "man" / "gatewayd-operations.7").read_text()
SECTION = PAGE.partition(".Sh DECLARATIVE STATE\n")[2].partition(".Sh ")[0]


def rows() -> dict[str, str]:
    """Return the last column of each row of the table by its first one."""
    found = re.findall(r"^\.It Ic (\w+) Ta .* Ta (.+)$", SECTION, re.MULTILINE)
    return dict(found)


def test_the_table_has_each_table_and_field() -> None:
    assert list(rows()) == ["format", *state.TABLES]
    for table, model in state.OBJECTS.items():
        fields = {field.alias or name for name, field in model.model_fields.items()}
        assert set(rows()[table].split(", ")) == fields, table


def test_the_document_has_each_table() -> None:
    assert list(state.StateDocument.model_fields) == ["format", *state.TABLES]
    assert set(state.OBJECTS) == set(state.TABLES) - {"settings", "permissions"}


def test_the_figures() -> None:
    assert f"at most {MAX_GRANTS} names" in SECTION
    assert f"at most {MAX_MEMBERS_AT_ONCE:,}." in SECTION
    limits = f"{BULK_LIMITS.containers:,} tables and lists, and {BULK_LIMITS.values:,} values"
    size = f"{state.MAX_DOCUMENT_BYTES >> 20} MiB as JSON"
    assert f"at most {size}, {limits}" in " ".join(SECTION.split())
