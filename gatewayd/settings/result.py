"""What reading the layers leaves behind: the layers, problems and warnings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gatewayd.settings.definitions import definitions
from gatewayd.settings.layers import SettingEntry, SettingLayer
from gatewayd.settings.origins import SettingOrigin
from gatewayd.settings.problems import ConfigurationProblem, problem_at
from gatewayd.settings.secret_files import exposure_warning, read_value


@dataclass(slots=True)
class SettingsReading:
    """Collects, so that one run reports everything; `layers` has the lowest first."""

    layers: list[SettingLayer] = field(default_factory=list)
    problems: list[ConfigurationProblem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def add(self, entries: Mapping[str, SettingEntry]) -> None:
        """Put a layer on top."""
        self.layers.append(SettingLayer(entries))

    def refuse(self, origin: SettingOrigin, key: str, sentence: str) -> None:
        """Note a problem."""
        self.problems.append(problem_at(origin, key, sentence))

    def value_file(self, name: str, path: Path, origin: SettingOrigin, key: str) -> SettingEntry | None:
        """Read the file that holds the value of setting `name`, and note what is wrong with it."""
        try:
            value = read_value(path)
        except ValueError as error:
            self.refuse(origin, key, f"cannot read {path} for {name}: {error}")
            return None
        if definitions()[name].secret:
            self.warn_if_exposed(path)
        return SettingEntry(value, key, origin)

    def warn_if_exposed(self, path: Path) -> None:
        """Note once when others may read a file that holds a secret."""
        warning = exposure_warning(path)
        if warning and warning not in self.warnings:
            self.warnings.append(warning)
