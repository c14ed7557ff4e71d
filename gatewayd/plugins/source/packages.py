"""Installed packages: unmet requirements, missing modules, and the packages that provide modules."""

import importlib.metadata
import importlib.util
import re
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion

DISTRIBUTIONS: Final = {
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "fitz": "PyMuPDF",
    "git": "GitPython",
    "google.generativeai": "google-generativeai",
    "jose": "python-jose",
    "jwt": "PyJWT",
    "PIL": "Pillow",
    "pptx": "python-pptx",
    "sklearn": "scikit-learn",
    "yaml": "PyYAML",
}
"""Packages of modules with another name, for plugins that do not name the package."""

PROVIDED: Final = "open-webui"
"""Package of Open WebUI, which some plugins require; the gateway provides its modules."""

_NAMESPACE_MEMBER: Final = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")


def find_unmet(requirements: Sequence[str]) -> tuple[str, ...]:
    """Return the requirements that the installed packages do not meet, in order.

    A text that is not a requirement by PEP 508, such as a URL, is unmet. A requirement without a version or
    extras is met by a module of its name as well.
    """
    return tuple(text for text in requirements if not _is_met(text))


def missing_part(name: str) -> str:
    """Return the first missing part of a module name, "" when the module exists.

    Only namespace packages are imported for the lookup.
    """
    for prefix in _prefixes(name):
        spec = _find_spec(prefix)
        if spec is None:
            return prefix
        if spec.origin is not None:
            return ""
    return ""


def missing_module(error: ImportError) -> str:
    """Return the module that an error reports as missing, "" for any other import error."""
    if isinstance(error, ModuleNotFoundError):
        return error.name or ""
    if found := _NAMESPACE_MEMBER.match(str(error)):
        return missing_part(f"{found[2]}.{found[1]}")
    return ""


def choose_requirements(module: str, requirements: Sequence[str]) -> Sequence[str]:
    """Return the requirements whose names match a module; empty when none does."""
    whole = canonicalize_name(DISTRIBUTIONS.get(module, module))
    first = canonicalize_name(module.partition(".")[0])
    names = {text: canonicalize_name(_name(text)) for text in requirements}
    same = [text for text, name in names.items() if name in (whole, first)]
    alike = [text for text, name in names.items() if f"-{first}-" in f"-{name}-"]
    return same or alike


def _prefixes(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[: end + 1]) for end in range(len(parts)))


def _find_spec(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None


def _name(text: str) -> str:
    try:
        return Requirement(text).name
    except InvalidRequirement:
        return text


def _is_met(text: str) -> bool:
    try:
        return _is_installed(Requirement(text), ())
    except (InvalidRequirement, InvalidVersion):
        return False


def _is_installed(requirement: Requirement, above: tuple[str, ...]) -> bool:
    """Whether a requirement is met, with the requirements of its extras.

    `above` are the requirements whose extras are being resolved, since extras may be cyclic.
    """
    is_for_here = requirement.marker is None or requirement.marker.evaluate()
    if not is_for_here or canonicalize_name(requirement.name) == PROVIDED:
        return True
    try:
        found = importlib.metadata.distribution(requirement.name)
    except importlib.metadata.PackageNotFoundError:
        spec = _find_spec(requirement.name.replace("-", "_"))
        is_module = spec is not None and spec.origin is not None
        return is_module and not (requirement.specifier or requirement.extras)
    if "Version" not in found.metadata:
        return False
    if not requirement.specifier.contains(found.version, prereleases=True):
        return False
    if str(requirement) in above:
        return True
    return all(_is_installed(one, (*above, str(requirement))) for one in _of_extras(found, requirement))


def _of_extras(found: importlib.metadata.Distribution, requirement: Requirement) -> Iterator[Requirement]:
    for text in found.requires or ():
        required = Requirement(text)
        marker = required.marker
        if marker is None or marker.evaluate({"extra": ""}):
            continue
        if any(marker.evaluate({"extra": extra}) for extra in requirement.extras):
            required.marker = None
            yield required
