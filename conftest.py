"""What the tests leave out where an extra is not installed."""

import importlib.util

collect_ignore = [] if importlib.util.find_spec("marimo") else ["fysym/studio.py"]
