"""Read every layer, check it, and hand out the settings or all that is wrong with them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gatewayd.settings.checks import PROBLEMS, WARNINGS, SettingsCheck
from gatewayd.settings.definitions import definitions
from gatewayd.settings.environment import (
    read_credentials,
    read_directories,
    read_secret_files,
    read_variables,
)
from gatewayd.settings.files import DEFAULT_FILE, read_files
from gatewayd.settings.layers import SettingEntry, SettingLayer
from gatewayd.settings.model import Settings
from gatewayd.settings.origins import BUILT_IN, FROM_COMMAND_LINE
from gatewayd.settings.problems import ConfigurationError, ConfigurationProblem, did_you_mean, problem_at
from gatewayd.settings.result import SettingsReading
from gatewayd.settings.scim_tokens import read_token_file
from gatewayd.settings.validation import check_layer


def load(
    file: Path | None,
    environ: Mapping[str, str],
    overrides: Mapping[str, Any] | None = None,
    *,
    default_file: Path | None = DEFAULT_FILE,
) -> Settings:
    """Return the settings; raise ConfigurationError with every problem found.

    Highest first: `overrides` (by setting name), the credentials directory, files named by `NAME_FILE`
    variables, the environment, `conf.d/*.toml` beside the file in reverse order of their names, the file,
    directories of the service manager, built-in defaults. Without `file`, `default_file` is read if it is
    there. Where none of them gives `scim_token`, it is read from its own file.

    Each value that an override hides makes a warning.
    """
    reading = SettingsReading()
    read_directories(environ, reading)
    read_files(file, default_file, environ, reading)
    read_variables(environ, reading)
    read_secret_files(environ, reading)
    read_credentials(environ, reading)
    _read_overrides(overrides or {}, reading)
    layers, bad = _sound_layers(reading.layers, reading)
    given = read_token_file(Settings.from_layers(layers), reading)
    layers += _sound_layers([given], reading)[0]
    settings = Settings.from_layers(layers)
    origins = {name: entry.origin for layer in layers for name, entry in layer.entries.items()}
    for name, sentence in _run(PROBLEMS, settings, bad):
        reading.problems.append(problem_at(origins.get(name, BUILT_IN), name, sentence))
    if reading.problems:
        raise ConfigurationError(sorted(reading.problems, key=_position))
    warnings = [*reading.warnings, *(sentence for _, sentence in _run(WARNINGS, settings, bad))]
    return settings.with_notes(origins, warnings)


def _read_overrides(overrides: Mapping[str, Any], reading: SettingsReading) -> None:
    known = definitions()
    for name in overrides:
        if name not in known:
            sentence = f"unknown setting {name}{did_you_mean(name, known)}"
            reading.refuse(FROM_COMMAND_LINE, name, sentence)
    entries = {
        name: SettingEntry(value, name, FROM_COMMAND_LINE)
        for name, value in overrides.items()
        if name in known
    }
    reading.warnings += _hidden(reading.layers, entries)
    reading.add(entries)


def _hidden(layers: Sequence[SettingLayer], overrides: Mapping[str, SettingEntry]) -> Iterator[str]:
    """Yield a sentence for each written value that the command line takes the place of."""
    for layer in layers:
        for name in sorted(layer.entries.keys() & overrides.keys()):
            entry = layer.entries[name]
            if entry.origin.explicit and str(entry.value) != str(overrides[name].value):
                yield f"{name} of {entry.origin.text} is not used: the command line decides it"


def _sound_layers(
    layers: Sequence[SettingLayer], reading: SettingsReading
) -> tuple[list[SettingLayer], set[str]]:
    sound, bad = [], set()
    for layer in layers:
        rest, problems, names = check_layer(layer)
        sound.append(rest)
        reading.problems.extend(problems)
        bad |= names
    return sound, bad


def _run(checks: Sequence[SettingsCheck], settings: Settings, bad: set[str]) -> Iterator[tuple[str, str]]:
    for check in checks:
        if bad.isdisjoint(check.reads):
            yield from check.run(settings)


def _position(problem: ConfigurationProblem) -> tuple[bool, str, int]:
    return problem.file is None, str(problem.file), problem.line or 0
