"""The real weights of the built-in model: found, or fetched once into the user's cache."""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gatewayd.builtin_model.weights import fetch_weights, find_weights
from gatewayd.extras import PackageExtra, is_installed, missing_extra_error


def cache_dir() -> Path:
    """Return a folder that outlives the test run."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "gatewayd"


def obtain_weights() -> Path:
    """Return the weights, downloading them when they are not here; raises GatewayError.

    Also when there is no engine that could run them.
    """
    if not is_installed(PackageExtra.LOCAL):
        raise missing_extra_error("cannot run the built-in model", PackageExtra.LOCAL)
    cache = cache_dir()
    found = find_weights(cache, None)
    if found is not None:
        return found
    with ThreadPoolExecutor(1) as other_thread:
        return other_thread.submit(asyncio.run, fetch_weights(cache, lambda _: None)).result()
