"""What gatewayd(8) promises of versions is what the programs do."""

import re
from pathlib import Path

import pytest

from gatewayctl import failures
from gatewayctl.wire import base
from gatewayd.plugins.open_webui.modules.settings import VERSION
from gatewayd.storage.engine.location import MIGRATIONS
from gatewayd.storage.engine.migrate import MigrationStatus, check, known_migrations

ROOT = Path(__file__).parents[1]


def promised() -> dict[str, str]:
    """Return the text of each part of the section, its words one blank apart."""
    page = (ROOT / "man" / "gatewayd.8").read_text()
    section = page.partition(".Sh VERSIONS AND COMPATIBILITY\n")[2].partition("\n.Sh ")[0]
    parts = re.split(r"(?m)^\.Ss (.+)$", section)
    texts = {"Versions": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}
    return {
        title: re.sub(r"(?m)(?:^\.[A-Z][a-z] |\s)+", " ", text).replace(" ,", ",").replace(" .", ".")
        for title, text in texts.items()
    }


def test_each_interface_has_its_part() -> None:
    assert list(promised()) == [
        *("Versions", "HTTP interface", "Control protocol", "Plugins", "Database", "Settings")
    ]


def test_the_control_protocol_is_the_one_that_is_spoken() -> None:
    text = promised()["Control protocol"]
    assert f"speak version {base.VERSION} of their protocol" in text
    assert f"send it in the header {base.HEADER}." in text
    assert f"with the code protocol_mismatch, and gatewayctl 1 exits with {failures.PROTOCOL}." in text


def test_unknown_fields_pass_to_the_client_and_not_to_the_daemon() -> None:
    assert base.Written.model_validate({"outcome": "created", "newer": 1}).outcome is base.Outcome.CREATED
    with pytest.raises(ValueError, match="newer"):
        base.Request.model_validate({"newer": 1})


def test_plugins_see_the_version_that_is_told() -> None:
    assert f"open_webui.env.VERSION is {VERSION}." in promised()["Plugins"]


@pytest.mark.parametrize("others", [[], ["9999_newer"]])
def test_a_schema_of_another_version_is_refused(others: list[str]) -> None:
    known = known_migrations(MIGRATIONS)
    applied = [*known, *others] if others else known[:-1]
    with pytest.raises(Exception, match="schema is newer" if others else "run gatewayctl database migrate"):
        check(MigrationStatus(applied, known, frozenset({"users"})))
    assert (
        "refuses to use a schema that is newer than itself, and one that is older" in promised()["Database"]
    )
