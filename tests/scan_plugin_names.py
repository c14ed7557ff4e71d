"""Read which names of `open_webui` the plugins of a folder use, and what is decided of each.

Run from the top of the repository: python -m tests.scan_plugin_names FOLDER

Names come from imports and from chains of attributes that begin with an imported name. What hangs on the
application object counts from `app.state` on. Exits with 1 when there is a name of which nothing is decided
in tests/plugins/names_in_use.txt.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from gatewayd.errors import GatewayError
from gatewayd.plugins.open_webui.manifest import PACKAGE, current_name
from gatewayd.plugins.source import code as source_code
from gatewayd.plugins.source.static_analysis import read_outline

LIST: Final = Path(__file__).parent / "plugins" / "names_in_use.txt"
OFFERED, REFUSED = "offered", "refused"
SETTING: Final = re.compile(r"(?:open_webui\.(?:config|env)|app\.state\.config)\.[A-Z][A-Z0-9_]+")
"""Names of settings; which there are depends on the gateway's own."""

_STATE: Final = re.compile(r"(?:.*\.)?(app\.state\..*)")


@dataclass(frozen=True)
class Decision:
    """What the gateway does with a name; `reason` says why one is refused."""

    name: str
    word: str
    reason: str = ""


def read_decisions(path: Path = LIST) -> Sequence[Decision]:
    """Return the decisions of a list: a name, the word, and for `refused` the reason."""
    rows = [line.split(None, 2) for line in path.read_text().splitlines() if line and line[0] != "#"]
    return [Decision(*row) for row in rows]


def names_of(content: str) -> set[str]:
    """Return the names that one source uses; GatewayError unless it is Python."""
    tree = source_code.parse(content)
    bound = _bound(tree)
    imports = [one for one in read_outline(content).imports if one.package == PACKAGE]
    found = {replace(one, module=current_name(one.module)).full for one in imports}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        chain = ast.unparse(node)
        if not re.fullmatch(r"[\w.]+", chain):
            continue
        first, _, rest = chain.partition(".")
        if first in bound:
            chain = f"{bound[first]}.{rest}"
        if match := _STATE.fullmatch(chain):
            found.add(_whole(match[1]))
        elif first in bound and not chain.endswith(".app.state"):
            found.add(chain)
    return {name for name in found if not any(other.startswith(f"{name}.") for other in found)}


def _whole(chain: str) -> str:
    """Return the part of a chain below `app.state` that the gateway answers for."""
    parts = chain.split(".")
    return ".".join(parts[:4] if parts[2] == "config" else parts[:3])


def _bound(tree: ast.Module) -> dict[str, str]:
    """Return what the imported names of `open_webui` are called in the source."""
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            ours = [alias for alias in node.names if alias.name.partition(".")[0] == PACKAGE]
            bound.update({one.asname or PACKAGE: one.name if one.asname else PACKAGE for one in ours})
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            module = current_name(source_code.current_module_name(node.module))
            if module.partition(".")[0] == PACKAGE:
                bound.update({alias.asname or alias.name: f"{module}.{alias.name}" for alias in node.names})
    return bound


def scan(folder: Path) -> Counter[str]:
    """Return how many sources of a folder use each name; one that is no Python is told and left out."""
    counted: Counter[str] = Counter()
    for path in sorted(folder.rglob("*.py")):
        try:
            counted.update(names_of(path.read_text(encoding="utf-8", errors="replace")))
        except GatewayError as error:
            sys.stderr.write(f"{path}: {error.message}\n")
    return counted


def undecided(counted: Mapping[str, int]) -> list[str]:
    """Return the names of which nothing is decided, settings left out."""
    known = {one.name for one in read_decisions()}
    return [name for name in counted if _decided(name, known) not in known and not SETTING.fullmatch(name)]


def _decided(name: str, known: Iterable[str]) -> str:
    """Return the name that a decision is to be looked for: a member goes with its owner.

    Members of a table are decided one by one: its name has decisions below it.
    """
    owner = name
    while owner and owner not in known:
        owner = owner.rpartition(".")[0]
    has_members = owner != name and any(one.startswith(f"{owner}.") for one in known)
    return name if has_members else owner


def main(folder: str) -> int:
    """Print each name with its count and what is decided."""
    counted = scan(Path(folder))
    words = {one.name: one.word for one in read_decisions()}
    for name, count in sorted(counted.items(), key=lambda item: (-item[1], item[0])):
        word = "setting" if SETTING.fullmatch(name) else words.get(_decided(name, words), "undecided")
        sys.stdout.write(f"{count:5} {word:10} {name}\n")
    return 1 if undecided(counted) else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
