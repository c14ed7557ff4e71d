"""Entry point of `python -m gatewayctl` and of the script `gatewayctl`."""

import gc
import sys
from importlib import import_module
from typing import Final

COMMANDS: Final = "gatewayctl.main"


def main() -> int:
    """Run one command and return its exit code.

    Objects that are created at import live until the end: the garbage collector would scan them during the
    imports and at exit, which takes longer than most commands.
    """
    gc.disable()
    try:
        commands = import_module(COMMANDS)
    finally:
        gc.freeze()
        gc.enable()
    code: int = commands.main()
    return code


if __name__ == "__main__":
    sys.exit(main())
