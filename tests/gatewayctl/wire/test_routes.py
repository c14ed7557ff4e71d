"""The route table, and that nobody else writes a path of the control API."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import gatewayctl
import gatewayd
from gatewayctl.wire.endpoint import NoBody
from gatewayctl.wire.routes import ENDPOINTS

CLIENT = Path(gatewayctl.__file__).parent
CONTROL = Path(gatewayd.__file__).parent / "http" / "control"


def test_each_route_stands_once() -> None:
    counts = Counter(str(endpoint) for endpoint in ENDPOINTS)
    assert [route for route, count in counts.items() if count > 1] == []
    assert len(ENDPOINTS) >= 100


def test_what_only_reads_has_no_body_and_no_dry_run() -> None:
    reads = [endpoint for endpoint in ENDPOINTS if endpoint.method == "GET"]
    assert all(endpoint.request is NoBody and "dry_run" not in endpoint.query for endpoint in reads)
    writes = [endpoint for endpoint in ENDPOINTS if endpoint.method in {"PUT", "PATCH", "DELETE"}]
    assert [str(endpoint) for endpoint in writes if "dry_run" not in endpoint.query] == []


def test_no_path_is_written_outside_the_table() -> None:
    modules = [path for path in CLIENT.rglob("*.py") if path.parent.name != "wire"]
    found = {
        f"{path}: {text}"
        for path in (*modules, *CONTROL.rglob("*.py"))
        for text in _strings(path)
        if text.startswith("/v1/")
    }
    assert found == set()


def _strings(path: Path) -> Iterator[str]:
    """Yield the string literals of a module, those in f-strings too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
