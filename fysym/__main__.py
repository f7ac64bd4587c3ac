"""`python -m fysym`, the same as the command `fysym`."""

import sys

from .cli import main

sys.exit(main())
