"""Where compiled kernels are kept between processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_dir() -> Path:
    """The directory of compiled kernels: FYSYM_CACHE_DIR, or `fysym` in the user's cache directory.

    >>> import os, fysym
    >>> from unittest import mock
    >>> with mock.patch.dict(os.environ, FYSYM_CACHE_DIR="kernels"):
    ...     print(fysym.cache_dir())
    kernels
    """
    chosen = os.environ.get("FYSYM_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "fysym"


def clear_cache() -> int:
    """Delete the compiled kernels and return how many there were; those already loaded keep working.

    >>> import os, tempfile, fysym
    >>> from unittest import mock
    >>> with mock.patch.dict(os.environ, FYSYM_CACHE_DIR=tempfile.mkdtemp()):
    ...     fysym.clear_cache()
    0
    """
    count = 0
    for path in cache_dir().glob("*.kernel"):
        try:
            path.unlink()
            count += 1
        except OSError:
            continue
    return count


def read(name: str) -> bytes | None:
    """What is stored under that name, or None."""
    try:
        return (cache_dir() / f"{name}.kernel").read_bytes()
    except (OSError, RuntimeError):
        return None


def write(name: str, data: bytes) -> None:
    """Store under that name, all or nothing; a directory that cannot be written is not an error."""
    try:
        folder = cache_dir()
        folder.mkdir(parents=True, exist_ok=True)
        temporary = folder / f"{name}.{os.getpid()}.{os.urandom(4).hex()}"
        try:
            temporary.write_bytes(data)
            os.replace(temporary, folder / f"{name}.kernel")
        finally:
            temporary.unlink(missing_ok=True)
    except (OSError, RuntimeError):
        return
