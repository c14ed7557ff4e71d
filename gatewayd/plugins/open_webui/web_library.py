"""The web library that plugins import themselves, loaded when one needs it and never before."""

import importlib
from typing import Any

from gatewayd.extras import Extra, refusal


def load(module: str) -> Any:
    """Return a module of starlette or fastapi.

    Raises not_configured when the library is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise refusal(f"cannot give plugins {module}", Extra.PLUGINS) from error
