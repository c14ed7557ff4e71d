"""The web library that plugins import themselves, loaded when one needs it and never before."""

import importlib
from typing import Any

from gatewayd.extras import PackageExtra, missing_extra_error


def load_web_module(module: str) -> Any:
    """Return a module of starlette or fastapi.

    Raises not_configured when the library is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise missing_extra_error(f"cannot give plugins {module}", PackageExtra.PLUGINS) from error
