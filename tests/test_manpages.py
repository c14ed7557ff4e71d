"""The manual pages: correct, complete in their sections, and true about the daemon."""

import asyncio
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import gatewayctl
import gatewayd
from gatewayd import command, deferred_writes
from gatewayd.accounts.endpoints import allows, parse
from gatewayd.accounts.sessions import LEEWAY_SECONDS
from gatewayd.builtin_model.source import RestartPolicy
from gatewayd.chats.run_writer import RESTARTED
from gatewayd.daemon import WRITE_SECONDS
from gatewayd.deadlines import GRACE_SECONDS
from gatewayd.extract.pool import PoolOptions
from gatewayd.observe.outputs import CLOSE_SECONDS, MAX_QUEUED_BYTES
from gatewayd.observe.systemd import PROBE_SHARE
from gatewayd.plugins.isolation import process
from gatewayd.plugins.isolation.supervisor import START_SECONDS
from gatewayd.settings import definitions
from gatewayd.storage.engine.postgres import ACQUIRE_SECONDS, CLAIM_SECONDS, STATEMENT_SECONDS
from gatewayd.upstream.http.response import ProviderResponse
from gatewayd.upstream.sources.config import UpstreamTimeouts
from gatewayd.vectors import local
from gatewayd.vectors.process import ANSWER_SECONDS, OPEN_SECONDS
from gatewayd.workers import MAX_ANSWER_SECONDS, MAX_READING_SECONDS

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "man").glob("*.[1-9]"))
UNIT = ROOT / "systemd" / "gatewayd.service"

# mdoc(7) has this order; a page may have more.
SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "ENVIRONMENT", "FILES", "EXIT STATUS", "EXAMPLES", "SEE ALSO"]
REQUIRED = {
    "1": {"NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "SEE ALSO"},
    "5": {"NAME", "DESCRIPTION", "SEE ALSO"},
    "7": {"NAME", "DESCRIPTION", "SEE ALSO"},
    "8": {"NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "SEE ALSO"},
}

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def sections(page: Path) -> dict[str, str]:
    """Return the source of each section of a page by title, in order."""
    parts = re.split(r"(?m)^\.Sh (.+)$", page.read_text())
    return {title.strip('"'): text for title, text in zip(parts[1::2], parts[2::2], strict=True)}


def plain(source: str) -> str:
    """Return mdoc source without the escapes of hyphens and spaces."""
    return source.replace(r"\-", "-").replace("Fl -", "--").replace("Fl ", "-")


DAEMON = sections(ROOT / "man" / "gatewayd.8")


def test_there_is_a_page_for_each_part() -> None:
    assert {page.name for page in PAGES} >= {"gatewayd.8", "gatewayctl.1", "gatewayd.toml.5"}


def test_each_page_is_installed_in_its_section() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    files = project["tool"]["setuptools"]["data-files"]
    installed = {
        f"{folder}/{page.name}"
        for folder, patterns in files.items()
        if folder.startswith("share/man/")
        for pattern in patterns
        for page in ROOT.glob(pattern)
    }
    assert installed == {f"share/man/man{page.suffix[1:]}/{page.name}" for page in PAGES}


@pytest.mark.real("mandoc")
@each_page
def test_pages_are_correct(page: Path) -> None:
    lint = subprocess.run(
        ["mandoc", "-Tlint", "-Wwarning", str(page)], capture_output=True, text=True, check=False, timeout=60
    )
    assert lint.stdout == ""
    assert lint.returncode == 0


@each_page
def test_pages_have_their_sections_in_order(page: Path) -> None:
    titles = list(sections(page))
    assert set(titles) >= REQUIRED[page.suffix[1:]]
    known = [title for title in titles if title in SECTIONS]
    assert known == sorted(known, key=SECTIONS.index)


def test_pages_carry_the_date_of_the_release() -> None:
    first = {page.name: page.read_text().partition("\n")[0] for page in PAGES}
    stale = {name: line for name, line in first.items() if line != f".Dd {gatewayd.__released__}"}
    assert stale == {}, "run: python -m tests.write_release_date"


def test_both_programs_are_of_one_version() -> None:
    assert gatewayctl.__version__ == gatewayd.__version__


@each_page
def test_the_name_is_the_name_of_the_file(page: Path) -> None:
    text = sections(page)["NAME"]
    assert f".Nm {page.stem}\n" in text
    assert re.search(r"(?m)^\.Nd \S.*[^.]$", text)
    assert f".Dt {page.stem.upper()} {page.suffix[1:]}\n" in page.read_text()


@each_page
def test_references_within_the_manual_lead_somewhere(page: Path) -> None:
    pages = {other.name for other in PAGES}
    for name, section in re.findall(r"(?m)^\.Xr (\S+) (\d)", page.read_text()):
        if name.startswith("gateway"):
            assert f"{name}.{section}" in pages


def test_every_option_of_the_daemon_has_its_line() -> None:
    options = plain(DAEMON["DESCRIPTION"])
    documented = {
        option
        for line in re.findall(r"(?m)^\.It (-.*)$", options)
        for option in re.findall(r"--?[A-Za-z][a-z-]*", line)
    }
    assert documented == {
        option for action in command.make_parser()._actions for option in action.option_strings
    }


def test_every_exit_status_of_the_daemon_has_its_line() -> None:
    documented = {int(number) for number in re.findall(r"(?m)^\.It (\d+)$", DAEMON["EXIT STATUS"])}
    assert documented == {value for name, value in vars(command).items() if name.startswith("EX_")}


def test_every_credential_of_the_unit_has_its_file() -> None:
    handed = set(re.findall(r"(?m)^LoadCredential=[^:]+:(\S+)$", UNIT.read_text()))
    assert handed
    assert handed == set(re.findall(r"/etc/credstore/(\S+)", DAEMON["FILES"]))


def test_settings_that_the_page_names_exist() -> None:
    named = set(re.findall(r"(?m)^\.Ic ([a-z_]+)", DAEMON["DESCRIPTION"]))
    assert named
    assert named <= set(definitions())


def texts() -> dict[str, str]:
    """Return every page, the README and the sample, each with its words one blank apart."""
    files = [*PAGES, ROOT / "README.md", *(ROOT / "config").iterdir(), *(ROOT / "systemd").iterdir()]
    sources = {file.name: file.read_text() for file in files if file.is_file()}
    joined = {name: re.sub(r"(?m)(?:^\.[A-Z][a-z] |^# ?|\s)+", " ", text) for name, text in sources.items()}
    return {name: text.replace(r"\-", "-").replace(r"\(aq", "'") for name, text in joined.items()}


async def test_the_first_byte_is_waited_for_twice() -> None:
    loop = asyncio.get_running_loop()
    before = loop.time()
    answer = ProviderResponse(UpstreamTimeouts(connect=1000.0, first_byte=30.0, idle=5.0), loop)
    answer.sent()
    assert 30 <= answer.due - before < 40
    answer.begin(200, [])
    assert answer.overdue(before) == "it was silent for 30 s"
    answer.add(b"x")
    assert answer.overdue(before) == "it was silent for 5 s"
    assert "within first_byte_timeout after the request was sent" in texts()["gatewayd-dialects.7"]
    assert f"there are up to {GRACE_SECONDS:g} seconds more" in texts()["gatewayd-dialects.7"]
    assert "and again for the first byte of its body" in texts()["gatewayd.toml.5"]


def test_an_allowed_endpoint_with_a_slash_at_its_end_is_that_path_alone() -> None:
    said = "that ends with a slash means that path alone, with and without the slash"
    assert said in texts()["gatewayd.toml.5"]
    reached = {
        entry: [
            allows(parse(entry), "GET", path) for path in ("/api/models", "/api/models/", "/api/models/a")
        ]
        for entry in ("/api/models", "/api/models/")
    }
    assert reached == {"/api/models": [True, True, True], "/api/models/": [True, True, False]}


def test_the_timer_of_ingestion_runs_as_often_as_the_pages_say() -> None:
    assert "OnCalendar=*:0/15" in (ROOT / "systemd" / "gatewayd-ingest@.timer").read_text()
    for name in ("README.md", "gatewayd-documents.7"):
        assert "every quarter of an hour" in texts()[name]


def test_what_is_kept_for_the_reader_of_the_log_is_told() -> None:
    page = " ".join(texts()["gatewayd.8"].split())
    assert f"{MAX_QUEUED_BYTES >> 20} MiB of records are kept for it" in page
    assert f"waits up to {CLOSE_SECONDS:g} seconds for these records" in page


def test_what_waits_for_the_database_is_told() -> None:
    page = " ".join(texts()["gatewayd.8"].split())
    assert f"plugins wait {deferred_writes.PATIENCE_SECONDS:g} second for a write" in page
    assert f"The first pause is {deferred_writes.FIRST_PAUSE_SECONDS:g} seconds" in page
    assert f"at most {deferred_writes.MAX_PAUSE_SECONDS:g} seconds, and chance" in page
    assert f"given up after {deferred_writes.MAX_DEFERRED_SECONDS} seconds" in page
    assert (
        f"at most {deferred_writes.MAX_DEFERRED_WRITES} writes and {deferred_writes.MAX_DEFERRED_CHARACTERS}"
        in page
    )
    assert f"{WRITE_SECONDS:g} seconds. If PostgreSQL hangs" in page
    assert deferred_writes.ACCOUNT_SHARE == 1 / 4
    assert "has at most a quarter of the room for answers, and an eighth for everything else" in page
    assert RESTARTED in page
    assert f"PostgreSQL does not end within {STATEMENT_SECONDS:g} seconds" in page


def test_what_the_watchdog_waits_for_is_told() -> None:
    page = " ".join(texts()["gatewayd.8"].split())
    # The probe comes once in half of the time.
    assert PROBE_SHARE / 2 == 2 / 3
    assert "longer than two thirds of that time, the daemon does not report" in page
    found = 2 * CLAIM_SECONDS + ACQUIRE_SECONDS
    assert f"PostgreSQL that hangs takes up to {found:g} seconds" in page
    assert "\nWatchdogSec=30\n" in UNIT.read_text()
    assert found < 30 * PROBE_SHARE / 2


def test_by_how_much_the_clock_may_be_set_back_is_told() -> None:
    assert LEEWAY_SECONDS == 24 * 3600
    assert "issued up to a day ahead of it is accepted" in texts()["gatewayd.8"]


def test_the_times_of_child_processes_are_told() -> None:
    settings = definitions()
    names = ("rag_embedding_timeout", "ingest_timeout", "plugin_load_timeout", "plugin_process_timeout")
    timeout, reading, loading, alive = (float(settings[name].default) for name in names)
    pool = PoolOptions(Path())
    assert pool.seconds == reading
    page = (ROOT / "man" / "gatewayd.8").read_text()
    table = page.partition("begin processes\n")[2].partition('.\\" end processes')[0]
    assert re.findall(r"Ta (.+)", table) == [
        f"Ic rag_embedding_timeout , No {timeout:g} s",
        f"{local.PASSAGE_TIME_FACTOR} times that",
        f"{OPEN_SECONDS:g} s, with a download {local.DOWNLOAD_SECONDS:g} s",
        f"{pool.patience:g} times Ic ingest_timeout , No {pool.patience * reading:g} s",
        f"{RestartPolicy().silence:g} s",
        f"Ic plugin_load_timeout , No {loading:g} s and {START_SECONDS:g} s",
        f"Ic plugin_process_timeout , No {alive:g} s",
        f"{process.MAX_ANSWER_SECONDS:g} s",
        f"{MAX_READING_SECONDS:g} s",
        "no limit",
        f"{MAX_ANSWER_SECONDS:g} s",
    ]
    assert f"vectors of {local.PASSAGE_BATCH_SIZE} passages" in table
    assert {"call", "next"} <= process.UNLIMITED_REQUESTS
    assert timeout == ANSWER_SECONDS
    assert f"up to {GRACE_SECONDS:g} seconds more" in texts()["gatewayd.8"]
