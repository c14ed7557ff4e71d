"""The figures of LIMITS AND SLOW PEERS in gatewayd(8) are those of the code."""

import re
from pathlib import Path

import pytest

from gatewayd.descriptors import CONTROL_FILES_DIVISOR, MIN_CONTROL_FILES
from gatewayd.http import server
from gatewayd.http.connections import arrivals, capacity, request_heads
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.errors import CODE_STATUSES
from gatewayd.http.public.health import HealthRoutes
from gatewayd.http.socketio import sessions
from gatewayd.settings import Settings, definitions
from tests.suite.manual_tables import rows

PAGE = (Path(__file__).parents[1] / "man" / "gatewayd.8").read_text()
SECTION = PAGE.partition(".Sh LIMITS AND SLOW PEERS\n")[2].partition("\n.Sh ")[0]
TEXT = " ".join(re.sub(r"(?m)^\.\w+ ", "", SECTION).split())
SETTINGS = Settings()
PARTS = {2: "half", 4: "a fourth"}


@pytest.mark.parametrize("row", rows(PAGE, "rates"), ids=lambda row: row[0])
def test_a_rate_is_the_default_of_its_settings(row: list[str]) -> None:
    _, least, longest, _ = row
    name, figure = least.removesuffix(" B/s").split(", ")
    assert int(getattr(SETTINGS, name)) == int(figure)
    name, figure = longest.removesuffix(" s").split(", ")
    assert getattr(SETTINGS, name) == int(figure)


def test_what_is_too_slow_is_told_as_the_page_says() -> None:
    assert [told for *_, told in rows(PAGE, "rates")] == [str(CODE_STATUSES["body_timeout"]), "cut"]


def test_every_bound_is_in_the_page_with_its_default() -> None:
    listed = rows(PAGE, "bounds")
    assert [row[0] for row in listed] == list(
        dict.fromkeys(name for use in RequestUse for name in use.counted)
    )
    for name, *owners, code in listed:
        assert code == f"too_many_{name}"
        for owner, told in zip(("account", "address"), owners, strict=True):
            setting = f"{owner}_{name.removesuffix('s')}_limit"
            assert told == f"{setting}, {getattr(SETTINGS, setting)}"


def test_the_parts_of_the_room_are_those_of_the_code() -> None:
    assert dict(rows(PAGE, "room")) == {
        "SQLite, log, child processes, providers": f"{capacity.RESERVED_DESCRIPTORS}",
        "connections to PostgreSQL": "database_pool_size",
        "control socket": f"a {CONTROL_FILES_DIVISOR}nd of the limit, at least {MIN_CONTROL_FILES}",
        "health requests in a full room": f"{capacity.HEALTH_DESCRIPTORS}",
        "everybody": "the others",
        "connections without a credential": f"{PARTS[capacity.ADDRESS_DIVISOR]} of those for everybody",
        "one address": f"{PARTS[capacity.ADDRESS_DIVISOR]} of those for everybody",
        "one account": f"{PARTS[capacity.ACCOUNT_DIVISOR]} of those for everybody",
    }


def test_the_descriptors_of_embeddings_are_those_of_the_code() -> None:
    assert f"a request for embeddings has {RequestUse.EMBEDDINGS.files - 1} more" in TEXT


def test_the_fixed_times_are_those_of_the_code() -> None:
    assert f"{arrivals.HEADER_SECONDS:g} seconds for the header of the PROXY protocol" in TEXT
    assert f"{arrivals.HANDSHAKE_SECONDS:g} seconds for a handshake of TLS" in TEXT
    assert f"{request_heads.HEAD_SECONDS:g} seconds for the head of the first request" in TEXT
    assert f"{server.KEEP_ALIVE_SECONDS:g} seconds for the next request" in TEXT
    assert f"{sessions.ANONYMOUS_SECONDS:g} seconds for a websocket without a user" in TEXT


def test_settings_and_probes_that_the_section_names_exist() -> None:
    named = set(re.findall(r"(?:\.| )Ic ([a-z_]+)", SECTION))
    assert {name for name in named if not name.startswith("too_many_")} <= set(definitions())
    probes = {
        row.path
        for row in HealthRoutes.routes(HealthRoutes.__new__(HealthRoutes))
        if row.use is RequestUse.PROBE
    }
    assert set(re.findall(r"(?m)^\.Li (/[a-z/]+)", SECTION)) == probes
