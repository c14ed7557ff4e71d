"""The SCIM tokens from the file that is kept for them, which the daemon itself may write."""

from pathlib import Path
from typing import Final

from gatewayd.settings.layers import SettingLayer
from gatewayd.settings.model import Settings
from gatewayd.settings.origins import from_token_file
from gatewayd.settings.result import SettingsReading

NAME: Final = "scim_token"


def read_token_file(settings: Settings, reading: SettingsReading) -> SettingLayer:
    """Return the layer of the token file; it is empty where nothing asks for the file or there is none.

    The file is asked for when SCIM is on and `scim_token` is not set anywhere else.
    """
    path = settings.scim_token_path()
    if not settings.scim_enabled or settings.scim_token or _is_absent(path):
        return SettingLayer()
    entry = reading.value_file(NAME, path, from_token_file(path), NAME)
    return SettingLayer({NAME: entry} if entry else {})


def _is_absent(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        # Reading it tells what is wrong.
        return False
    return False
