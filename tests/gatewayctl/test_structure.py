"""How the sources of gatewayctl are named and grouped."""

import ast
from collections import Counter
from pathlib import Path

import gatewayctl

ROOT = Path(gatewayctl.__file__).parent
MAX_MODULES = 25


def test_a_public_class_name_stands_once() -> None:
    names = Counter(
        node.name
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_no_folder_holds_too_many_modules() -> None:
    folders = Counter(path.parent for path in ROOT.rglob("*.py"))
    assert {folder: count for folder, count in folders.items() if count > MAX_MODULES} == {}
