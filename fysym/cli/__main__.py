"""`python -m fysym.cli`, the same as the command `fysym`."""

import sys

from . import main

sys.exit(main())
