"""Packages that tests install, and sources of plugins that need them."""

from pathlib import Path
from zipfile import ZipFile


def wheel(folder: Path, name: str, version: str = "1.0") -> Path:
    """Write a package whose module `name` has `VALUE`; return its wheel."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.py", f"VALUE = {version!r}\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def requiring(name: str) -> str:
    return (
        f'"""\nrequirements: {name}\n"""\nimport {name}\n'
        f"class Tools:\n    def run(self): return {name}.VALUE\n"
    )
