"""The import map of the page, and which modules a view needs at once."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final

from gatewayd.http.web.assets import PageAssets, suffix_of

MAIN: Final = "#app/main"
"""The module that starts the page."""

EARLY: Final = "#app/core/early"
"""The module that runs before all others have come."""

STATIC_IMPORT: Final = re.compile(
    r"""(?:^|[;}])[ \t]*(?:import|export)"""
    r"""(?:\b[^"'();={}\n]*(?:\{[^"'();={}]*\}[^"'();={}\n]*)?\bfrom)?[ \t]*["']([^"']+)["']""",
    re.MULTILINE,
)
"""Pattern of an import that is loaded with its module; `import("...")` is none."""


def import_names(assets: PageAssets) -> dict[str, str]:
    """Return the names under which modules import each other, each with the name of its file.

    `#app/core/api` is `app/core/api.js`, `#own/module` that of the administrators; libraries have the
    names of their manifest, and `#language/de`, `#icons/sprite.svg` are files that a module finds by
    `import.meta.resolve`.
    """
    names = {}
    for asset in assets.all:
        suffix = suffix_of(asset.name)
        if asset.name.startswith(("app/", "own/")):
            names[f"#{asset.name.removesuffix(suffix)}"] = asset.name
        elif asset.name.startswith("languages/"):
            names[f"#language/{asset.name.removeprefix('languages/').removesuffix(suffix)}"] = asset.name
        elif asset.name.startswith("icons/"):
            names[f"#{asset.name}"] = asset.name
    for package in json.loads(assets.text("vendor/manifest.json"))["packages"]:
        for row in package["files"]:
            if "import" in row:
                names[row["import"]] = f"vendor/{row['file']}"
    return names


def import_map(assets: PageAssets, names: Mapping[str, str]) -> str:
    """Return the import map as JSON (HTML standard, import maps)."""
    imports = {name: assets.asset(file).address for name, file in names.items()}
    return json.dumps({"imports": imports}, separators=(",", ":"))


def needed_files(assets: PageAssets, names: Mapping[str, str], entries: Iterable[str]) -> list[str]:
    """Return the files that modules load at once, their own among them; absent modules are left out."""
    waiting, found = list(entries), dict[str, None]()
    while waiting:
        file = names.get(waiting.pop(0))
        if file is None or file in found:
            continue
        found[file] = None
        waiting.extend(STATIC_IMPORT.findall(assets.text(file)))
    return list(found)
