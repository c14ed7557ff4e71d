"""The bytecode of the modules, made once before the workers of pytest-xdist start.

On a fresh copy of the tree each of them would rewrite and compile every module by itself, at the same time.
"""

import importlib.util
import multiprocessing
import os
import py_compile
import sys
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

from tests.suite.source_tree import SOURCES, TESTS

CHUNK = 20


def compile_all(config: pytest.Config, paths: Iterable[Path] = (*TESTS, *SOURCES)) -> None:
    """Compile what has no bytecode, on all processors; modules of tests as pytest rewrites them."""
    if sys.dont_write_bytecode:
        return
    wanted = [(path, is_rewritten(config, path)) for path in paths]
    missing = [(path, is_test) for path, is_test in wanted if not bytecode_of(path, is_test).exists()]
    with multiprocessing.get_context("fork").Pool(os.cpu_count(), _begin, [config]) as pool:
        pool.map(_compile, missing, CHUNK)


def is_rewritten(config: pytest.Config, path: Path) -> bool:
    """Whether pytest rewrites the assertions of a module."""
    return path.name == "conftest.py" or any(
        fnmatch(path.name, form) for form in config.getini("python_files")
    )


def bytecode_of(path: Path, is_test: bool) -> Path:
    """Return where the bytecode of a module is kept."""
    if is_test:
        return rewrite.get_cache_dir(path) / f"{path.stem}{rewrite.PYC_TAIL}"
    return Path(importlib.util.cache_from_source(path))


def _begin(config: pytest.Config) -> None:
    global _config
    _config = config


_config: pytest.Config


def _compile(found: tuple[Path, bool]) -> None:
    path, is_test = found
    if not is_test:
        py_compile.compile(str(path), doraise=True)
        return
    kept = bytecode_of(path, is_test)
    kept.parent.mkdir(exist_ok=True)
    version, code = rewrite._rewrite_test(path, _config)
    rewrite._write_pyc(_config.stash[rewrite.assertstate_key], code, version, kept)
