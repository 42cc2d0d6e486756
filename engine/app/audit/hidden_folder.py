"""A folder that shows a copy in its own place to one process: Linux lets a process have mounts of its own."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

_NEW_MOUNTS, _NEW_USERS = 0x00020000, 0x10000000
"""Flags of unshare(2): namespaces of mounts, and of users, in which whoever is not root may mount."""
_BIND, _ALL_BELOW, _PRIVATE = 0x1000, 0x4000, 0x40000
"""Flags of mount(2)."""


def own_mounts() -> bool:
    """Give this process mounts of its own, before it has other threads; False where the system does not allow it."""
    if not sys.platform.startswith("linux"):
        return False
    user, group = os.getuid(), os.getgid()
    unshare = ctypes.CDLL(None, use_errno=True).unshare
    if unshare(_NEW_MOUNTS) != 0:
        if unshare(_NEW_MOUNTS | _NEW_USERS) != 0:
            return False
        try:
            Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
            Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
            Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
        except OSError:
            return False
    return _mount(b"none", b"/", _ALL_BELOW | _PRIVATE)


def show_instead(folder: Path, copy: Path) -> bool:
    """Show a copy in the place of a folder, to this process and those that it starts; False where that fails."""
    return _mount(os.fsencode(copy), os.fsencode(folder), _BIND) and folder.samefile(copy)


def _mount(source: bytes, target: bytes, flags: int) -> bool:
    mount = ctypes.CDLL(None, use_errno=True).mount
    return bool(mount(source, target, None, ctypes.c_ulong(flags), None) == 0)
