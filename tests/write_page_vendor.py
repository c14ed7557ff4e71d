"""Copies the libraries of the page out of npm packages: `python -m tests.write_page_vendor NODE_MODULES`.

The files are taken as they are; `vendor/manifest.json` names the package, version, licence and SHA-256 of
each.
"""

import hashlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any, Final

VENDOR: Final = Path(__file__).parents[1] / "gatewayd" / "web" / "page" / "vendor"

LANGUAGES: Final = (
    *("bash", "c", "cpp", "csharp", "css", "diff", "dockerfile", "go", "ini", "java", "javascript", "json"),
    *("kotlin", "lua", "makefile", "markdown", "nginx", "php", "powershell", "python", "r", "ruby", "rust"),
    *("shell", "sql", "swift", "typescript", "xml", "yaml"),
)

# Folder below vendor/, npm package, and the names under which the page imports its modules.
PACKAGES: Final[tuple[tuple[str, str, dict[str, str]], ...]] = (
    ("preact", "preact", {"preact": "dist/preact.mjs", "preact/hooks": "hooks/dist/hooks.mjs"}),
    ("htm", "htm", {"htm": "dist/htm.mjs"}),
    ("signals-core", "@preact/signals-core", {"@preact/signals-core": "dist/signals-core.mjs"}),
    ("signals", "@preact/signals", {"@preact/signals": "dist/signals.mjs"}),
    ("marked", "marked", {"marked": "lib/marked.esm.js"}),
    ("dompurify", "dompurify", {"dompurify": "dist/purify.es.mjs"}),
    (
        "highlight",
        "@highlightjs/cdn-assets",
        {
            "highlight/core": "es/core.min.js",
            **{f"highlight/{name}": f"es/languages/{name}.min.js" for name in LANGUAGES},
        },
    ),
    ("temml", "temml", {"temml": "dist/temml.mjs"}),
)


def main(modules: Path) -> None:
    """Write the folder anew."""
    shutil.rmtree(VENDOR, ignore_errors=True)
    packages = [copy_package(modules, *row) for row in PACKAGES]
    text = json.dumps({"packages": packages}, indent=2)
    (VENDOR / "manifest.json").write_text(f"{text}\n")


def copy_package(modules: Path, folder: str, package: str, names: dict[str, str]) -> dict[str, Any]:
    """Copy the files and licences of one package, and return its row of the manifest."""
    source, target = modules / package, VENDOR / folder
    described = json.loads((source / "package.json").read_text())
    target.mkdir(parents=True)
    files = []
    for name, path in [*names.items(), *[("", one.name) for one in sorted(source.glob("LICENSE*"))]]:
        data = (source / path).read_bytes()
        (target / Path(path).name).write_bytes(data)
        row = {
            "file": f"{folder}/{Path(path).name}",
            "source": path,
            "sha256": hashlib.sha256(data).hexdigest(),
        }
        files.append({"import": name, **row} if name else row)
    return {
        "name": package,
        "version": described["version"],
        "licence": described["license"],
        "files": files,
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
