"""The source files of the two packages, parsed once, for the tests that look at all of them."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("gatewayd", "gatewayctl")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
TESTS = sorted(
    path for path in (ROOT / "tests").rglob("*.py") if not path.is_relative_to(ROOT / "tests/plugins/corpus")
)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def classes(body: list[ast.stmt], outer: str = "") -> Iterator[tuple[str, ast.ClassDef]]:
    """Yield each class, nested ones too, after the name of the class around it; empty at module level."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield outer, node
            yield from classes(node.body, node.name)
