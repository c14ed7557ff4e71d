"""Hard links to files that may be removed while a backup is made: what was linked once stays readable."""

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from gatewayd.backup.archive import STATE
from gatewayd.backup.places import BLOBS, UNCHANGING, GatewayPlace

PREFIX: Final = ".backup-"


class FileLinks:
    """Links below a folder of its own in the state directory, where links to its files are possible."""

    def __init__(self, place: GatewayPlace) -> None:
        self._place = place
        self._folder = place.data_dir / f"{PREFIX}{os.getpid()}"
        self._folder.mkdir(mode=0o700)
        self._linked: dict[str, Path] = {}
        self._unlinkable: dict[str, Path] = {}

    def update(self) -> None:
        """Link every file that is there now and was not linked before."""
        for name, path in self._place.state_files():
            if name in self._linked or not name.removeprefix(STATE).startswith(UNCHANGING):
                continue
            link = self._folder / str(len(self._linked))
            try:
                os.link(path, link, follow_symlinks=False)
                self._linked[name] = link
            except FileNotFoundError:
                continue
            except OSError:
                # A folder on another file system: the file is read where it is.
                self._unlinkable[name] = path

    def missing(self, keys: frozenset[str]) -> frozenset[str]:
        """Return the keys of the uploaded files that were not seen."""
        begin = f"{STATE}{BLOBS}/"
        seen = {name.rpartition("/")[2] for name in self._all() if name.startswith(begin)}
        return keys - seen

    def files(self) -> Iterator[tuple[str, Path]]:
        """Yield all files of the state by their names in an archive, sorted: linked ones by their links."""
        others = {name: path for name, path in self._place.state_files() if name not in self._linked}
        yield from sorted({**others, **self._all()}.items())

    def remove(self) -> None:
        """Remove the links."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _all(self) -> Mapping[str, Path]:
        return {**self._unlinkable, **self._linked}


def remove_leftovers(data_dir: Path) -> None:
    """Remove the links of backups that were killed; no other may run."""
    for folder in data_dir.glob(f"{PREFIX}*"):
        shutil.rmtree(folder, ignore_errors=True)
