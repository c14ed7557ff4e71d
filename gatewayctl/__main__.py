"""`python -m gatewayctl` and the script `gatewayctl`: load the commands, and run one."""

import gc
import sys
from importlib import import_module
from typing import Final

COMMANDS: Final = "gatewayctl.main"


def main() -> int:
    """Run one command and return its exit code.

    What the imports make lives until the end: the collector would look at all of it while they go on, and
    once more at exit, which takes longer than most commands.
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
