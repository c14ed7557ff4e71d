"""`python -m gatewayctl`."""

import sys

from gatewayctl.main import main

sys.exit(main())
