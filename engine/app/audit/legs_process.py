"""The process in which legs of an audited run are played on copies of the data folder.

Nothing that takes long to load is imported here: a process can have mounts of its own before it has other threads.
"""

from __future__ import annotations

from multiprocessing.connection import Connection

from engine.app.audit.hidden_folder import own_mounts


def begin(connection: Connection) -> None:
    """Get mounts of this process's own where the system allows them, then play what comes over the connection."""
    own = own_mounts()
    from engine.app.audit.subjects import serve

    serve(connection, own)
