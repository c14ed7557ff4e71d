"""Plugins that are kept as files."""

import os
from pathlib import Path

from gatewayd.plugins import directory
from gatewayd.plugins.records import PluginFamily, PluginKind, PluginOrigin
from gatewayd.plugins.source import code as source_code


def write(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.write_text(content)
    return path


def test_files_are_plugins_by_their_names(tmp_path: Path) -> None:
    path = write(tmp_path, "Redact.py", '"""\ntitle: Red\ndescription: Hides\n"""\nclass Filter: pass\n')
    write(tmp_path, "weather.py", "class Tools: pass")
    write(tmp_path, "_part.py", "class Tools: pass")
    write(tmp_path, "notes.txt", "no plugin")
    found = directory.read_directory(tmp_path)
    assert found.faults == {}
    red, weather = found.plugins
    assert (red.id, red.family, red.kind, red.name) == (
        "redact",
        PluginFamily.FUNCTION,
        PluginKind.FILTER,
        "Red",
    )
    assert (red.description, red.path, red.origin) == ("Hides", str(path), PluginOrigin.FILE)
    assert (red.is_active, red.is_global) == (True, True)
    assert (weather.family, weather.is_active, weather.is_global) == (PluginFamily.TOOL, True, False)


def test_headers_switch_files(tmp_path: Path) -> None:
    write(tmp_path, "a.py", '"""\nactive: false\nglobal: false\n"""\nclass Filter: pass\n')
    (plugin,) = directory.read_directory(tmp_path).plugins
    assert (plugin.is_active, plugin.is_global) == (False, False)


def test_files_that_are_no_plugins_are_told(tmp_path: Path) -> None:
    pipeline = write(tmp_path, "line.py", "class Pipeline: pass")
    named = write(tmp_path, "not-an-id.py", "class Filter: pass")
    (tmp_path / "bytes.py").write_bytes(b"\xff\xfe")
    write(tmp_path, "A.py", "class Filter: pass")
    taken = write(tmp_path, "a.py", "class Filter: pass")
    found = directory.read_directory(tmp_path)
    assert [one.id for one in found.plugins] == ["a"]
    assert "Pipelines server" in found.faults[str(pipeline)]
    assert "cannot accept id" in found.faults[str(named)]
    assert "cannot read the file" in found.faults[str(tmp_path / "bytes.py")]
    assert "has it already" in found.faults[str(taken)]


def test_a_file_with_an_error_is_listed_by_what_it_looks_like(tmp_path: Path) -> None:
    write(tmp_path, "half.py", "class Pipe:\n    def (")
    (plugin,) = directory.read_directory(tmp_path).plugins
    assert plugin.kind is PluginKind.PIPE


def test_a_missing_directory_holds_nothing(tmp_path: Path) -> None:
    assert directory.read_directory(tmp_path / "none") == directory.PluginFiles([], {})


def test_built_in_ones_are_inactive() -> None:
    for plugin in directory.read_builtin():
        assert plugin.origin is PluginOrigin.BUILTIN
        assert not plugin.is_active


def test_what_is_no_file_of_a_sensible_size_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "gone.py").symlink_to(tmp_path / "nothing")
    with (tmp_path / "huge.py").open("wb") as file:
        file.truncate(source_code.MAX_SOURCE_BYTES + 1)
    write(tmp_path, "good.py", "class Tools: pass")
    found = directory.read_directory(tmp_path)
    assert [plugin.id for plugin in found.plugins] == ["good"]
    shown = {Path(path).name: fault for path, fault in found.faults.items()}
    assert shown["pipe.py"] == shown["folder.py"] == "cannot read the file: it is not a regular file"
    assert "more than" in shown["huge.py"]
    assert "No such file" in shown["gone.py"]


def test_a_directory_that_cannot_be_read_is_a_fault_and_none_is_not(tmp_path: Path) -> None:
    file = write(tmp_path, "file", "")
    assert list(directory.read_directory(file).faults) == [str(file)]
    assert directory.read_directory(tmp_path / "none").faults == {}
