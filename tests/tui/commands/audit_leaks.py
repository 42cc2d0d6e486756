"""Strategies that open the price file themselves, as the audit's tests hand them over, and a process that cannot hide
the folder."""

from __future__ import annotations

from multiprocessing.connection import Connection

SOURCE = '''
import os
import subprocess
from pathlib import Path

FILE = {file!r}
FOLDER = {folder!r}

def ahead(view, text):
    """All in where the next close is higher."""
    rows = [row.split(",") for row in text.strip().splitlines()[1:]]
    known = [float(row[4]) for row in rows if row[0] <= str(view.session)]
    later = [float(row[4]) for row in rows if row[0] > str(view.session)]
    return {{"UP": 0.9 if later and later[0] > known[-1] else 0.0}}

class Native:
    def weights(self, view):
        import pyarrow
        with pyarrow.OSFile(FILE) as file:
            return ahead(view, file.read().decode())

class Python:
    def weights(self, view):
        try:
            return ahead(view, Path(FILE).read_text())
        except OSError:
            return {{"UP": 0.5}}

class Shell:
    def weights(self, view):
        return ahead(view, subprocess.check_output("cat prices/UP.csv", shell=True, text=True, cwd=FOLDER))
'''

AT_IMPORT = (
    SOURCE
    + """
with open(FILE) as file:
    TEXT = file.read()

class AtImport:
    def weights(self, view):
        return ahead(view, TEXT)
"""
)


def begin_without_mounts(connection: Connection) -> None:
    """The process of the audit on a system that gives it no mounts of its own."""
    from engine.app.audit.subjects import serve

    serve(connection, own_mounts=False)
