"""Loading of the settings: reads every layer, checks it, and returns the settings or all problems."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from gatewayd.settings.checks import PROBLEMS, WARNINGS, SettingsCheck
from gatewayd.settings.definitions import definitions
from gatewayd.settings.environment import (
    read_credentials,
    read_directories,
    read_secret_files,
    read_variables,
)
from gatewayd.settings.files import DEFAULT_FILE, read_files
from gatewayd.settings.layers import BUILT_IN, FROM_COMMAND_LINE, SettingEntry, SettingLayer, from_token_file
from gatewayd.settings.result import (
    ConfigurationError,
    ConfigurationProblem,
    SettingsReading,
    did_you_mean,
    problem_at,
)
from gatewayd.settings.settings_model import Settings
from gatewayd.settings.validation import check_layer

SCIM_TOKEN: Final = "scim_token"  # noqa: S105 - a name


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
    directories of the service manager, built-in defaults. Without `file`, `default_file` is read if it
    exists. If none of them sets `scim_token`, it is read from its own file.

    A configured value that an override replaces adds a warning.
    """
    reading = SettingsReading()
    read_directories(environ, reading)
    read_files(file, default_file, environ, reading)
    read_variables(environ, reading)
    read_secret_files(environ, reading)
    read_credentials(environ, reading)
    _read_overrides(overrides or {}, reading)
    layers, bad = _sound_layers(reading.layers, reading)
    given = _read_token_file(Settings.from_layers(layers), reading)
    layers += _sound_layers([given], reading)[0]
    settings = Settings.from_layers(layers)
    origins = {name: entry.origin for layer in layers for name, entry in layer.entries.items()}
    for name, sentence in _run(PROBLEMS, settings, bad):
        reading.problems.append(problem_at(origins.get(name, BUILT_IN), name, sentence))
    if reading.problems:
        raise ConfigurationError(sorted(reading.problems, key=_position))
    warnings = [*reading.warnings, *(sentence for _, sentence in _run(WARNINGS, settings, bad))]
    return settings.with_notes(origins, warnings)


def _read_token_file(settings: Settings, reading: SettingsReading) -> SettingLayer:
    """Return the layer of the token file; it is empty if the file is not needed or does not exist.

    The file is needed if SCIM is on and `scim_token` is not set in another layer.
    """
    path = settings.scim_token_path()
    if not settings.scim_enabled or settings.scim_token or _is_absent(path):
        return SettingLayer()
    entry = reading.value_file(SCIM_TOKEN, path, from_token_file(path), SCIM_TOKEN)
    return SettingLayer({SCIM_TOKEN: entry} if entry else {})


def _is_absent(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        # Reading the file reports the error.
        return False
    return False


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
    """Yield a warning for each configured value that the command line replaces."""
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
