"""gatewayd-operations(7), METRICS, the dashboard and the alert rules name the metrics that there are."""

import json
import re

from gatewayd.assembly.metrics.services import CLOSE_SECONDS
from gatewayd.measurement.request_notes import RequestNotes, ServedRequest
from gatewayd.observe import access_log
from gatewayd.observe.metrics import calls
from gatewayd.observe.metrics.exposition import MAX_AGE_SECONDS, WAIT_SECONDS
from gatewayd.observe.metrics.families import FAMILIES, PROCESS_FAMILIES, MetricFamily
from gatewayd.observe.traces import conventions
from tests.test_manpages import ROOT

PAGE = (ROOT / "man" / "gatewayd-operations.7").read_text()
METRICS = PAGE.partition(".Sh METRICS\n")[2].partition("\n.Sh ")[0]


def row(family: MetricFamily) -> str:
    """Return the row of a family in the page."""
    labels = f", by {', '.join(family.labels)}" if family.labels else ""
    return f".It Li {family.name}\n{family.type.value.capitalize()}{labels}.\n{family.help}."


def test_the_page_has_a_row_for_each_family_in_the_order_of_the_exposition() -> None:
    found = METRICS.partition(".Bl -tag -width Ds\n")[2].partition("\n.El")[0]
    assert found == "\n".join(map(row, FAMILIES))


def test_the_page_names_the_metrics_of_the_process_and_the_figures() -> None:
    assert all(f".Li {name}" in METRICS for name in PROCESS_FAMILIES)
    words = " ".join(METRICS.split())
    assert f"The first {calls.MAX_MODELS} models" in words
    assert f"it waits at most {WAIT_SECONDS:g} s" in words
    assert f"it has {CLOSE_SECONDS:g} s to take" in words
    assert {
        conventions.DURATION,
        conventions.FIRST_CHUNK,
        conventions.TOKEN_USAGE,
        conventions.HTTP_DURATION,
    } <= {line.removeprefix(".Li ").removesuffix(" ,").removesuffix(" ;") for line in METRICS.splitlines()}
    assert f"older than {MAX_AGE_SECONDS:g} s" in words


def test_the_page_has_the_fields_and_figures_of_the_access_log() -> None:
    section = PAGE.partition(".Sh ACCESS LOG\n")[2].partition("\n.Sh ")[0]
    notes = RequestNotes(0.0)
    notes.model, notes.provider, notes.first_seconds = "m", "p", 1.0
    line = access_log.render_json(
        0.0, ServedRequest("r", "c", "GET", "/", 200, 1, 1.0, "u", "", "k", notes), "u"
    )
    named = {name for row in re.findall(r"(?m)^\.It Li (.*)$", section) for name in row.split(" , ")}
    assert named == set(json.loads(line)) - {"time", "level", "logger", "message"}
    assert f"at most {access_log.MAX_QUEUED_REQUESTS} lines wait" in section
    assert f"batches of {access_log.BATCH_SECONDS:g} s" in section
    assert f"at most {access_log.MAX_VALUE_CHARACTERS} characters" in section


def known_names() -> frozenset[str]:
    """Return the names of all samples."""
    names = set(PROCESS_FAMILIES)
    for family in FAMILIES:
        names |= {family.name, *(f"{family.name}_{part}" for part in ("bucket", "sum", "count"))}
    return frozenset(names)


def expressions(text: str) -> list[str]:
    """Return the names of metrics in expressions of Prometheus."""
    return re.findall(r"\b(?:gatewayd|process)_[a-z0-9_]+(?=[\[{ )\],]|$)", text)


def test_the_alert_rules_name_metrics_that_there_are() -> None:
    rules = (ROOT / "config" / "prometheus-alerts.yml").read_text()
    found = [
        name for line in re.findall(r"(?m)^ +expr: .*|^          .*\(.*", rules) for name in expressions(line)
    ]
    assert len(set(found)) > 10
    assert set(found) <= known_names()


def test_the_dashboard_names_metrics_that_there_are() -> None:
    board = json.loads((ROOT / "config" / "grafana-dashboard.json").read_text())
    texts = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    found = {name for text in texts for name in expressions(text)}
    shown = {name.removesuffix("_bucket") for name in found}
    assert found <= known_names()
    left_out = {family.name for family in FAMILIES} - shown
    assert left_out == {
        "gatewayd_build_info",
        "gatewayd_ready",
        "gatewayd_model_source_models",
        "gatewayd_event_rooms",
        "gatewayd_plugins",
        "gatewayd_plugin_processes",
        "gatewayd_vector_index_limit_bytes",
        "gatewayd_vector_index_reloads_total",
        "gatewayd_database_connections",
        "gatewayd_event_loop_longest_stall_seconds",
        "gatewayd_log_dropped_lines_total",
        "gatewayd_scrape_seconds",
    }
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in board["panels"]]
    assert len(set(places)) == len(places) == len({panel["id"] for panel in board["panels"]})
