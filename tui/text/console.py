"""Standard output: its width, colours and characters, and the text that is printed there."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from engine.reports.documents.records import Records
    from engine.reports.table import Column
    from tui.text.plain_text import Line

COERCED = ("C.UTF-8", "C.utf8", "UTF-8")
"""Values that Python itself gives LC_CTYPE where it finds the C locale: nobody meant them."""
JSON = "paperdesk.json"
"""Name of the wish for JSON among what the contexts of a call share."""
NONE_FITS = "none that fits; leave out a filter"
PLAIN_WIDTH = 100
"""Columns of text that goes to a file or a pipe."""


@dataclass
class Printed:
    """Count of the JSON documents that this process has printed."""

    documents: int = 0


PRINTED = Printed()


@dataclass(frozen=True, slots=True)
class Console:
    """`width` in columns; `colour` whether escape codes are welcome; `ascii_only` whether other characters are not;
    `is_terminal` whether a person looks, and not a file or a program."""

    width: int = PLAIN_WIDTH
    colour: bool = False
    ascii_only: bool = False
    is_terminal: bool = False

    @property
    def room(self) -> int:
        """Columns that a table may take: those of a terminal, or that COLUMNS names; a file or a program takes a line
        of any length."""
        return self.width if self.is_terminal or os.environ.get("COLUMNS") else sys.maxsize

    def bold(self, text: str) -> str:
        """The text in bold where there is colour."""
        return click.style(text, bold=True) if self.colour else text

    def dim(self, text: str) -> str:
        """The text in the background where there is colour."""
        return click.style(text, dim=True) if self.colour else text

    def inked(self, line: Line) -> str:
        """A line in its ink where there is colour."""
        text, ink = line
        if ink in ("up", "down"):
            return self.rising(text, ink == "up")
        return self.bold(text) if ink in ("strong", "heading") else self.dim(text) if ink == "quiet" else text

    def rising(self, text: str, up: bool) -> str:
        """The text in green or red where there is colour; its sign says the same without."""
        return click.style(text, fg="green" if up else "red") if self.colour else text


def standard_output() -> Console:
    """Standard output as it is now: a terminal's size and colours (NO_COLOR and a dumb terminal have none); COLUMNS
    is obeyed in a pipe too."""
    terminal = sys.stdout.isatty()
    sized = terminal or os.environ.get("COLUMNS")
    width = max(40, min(160, shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns)) if sized else PLAIN_WIDTH
    colour = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Console(width, colour, not _takes("▚–┌"), terminal)


def plain_characters(environ: Mapping[str, str], encoding: str) -> bool:
    """True for a terminal that shows ASCII alone: its encoding, its locale or its kind (dumb) says so. A locale that is
    not set says nothing."""
    if not encoding.lower().startswith("utf") or environ.get("TERM") == "dumb":
        return True
    said = [environ.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG")]
    if said[1] in COERCED and not said[0]:
        said[1] = ""
    return next(filter(None, said), "") in ("C", "POSIX")


def show(text: str) -> None:
    """Print text on standard output; what its encoding does not take becomes a question mark."""
    encoding = sys.stdout.encoding or "utf-8"
    # JSON, which may be long, is not copied for what cannot be in it.
    click.echo(text if text.isascii() else text.encode(encoding, "replace").decode(encoding), color=True)


def show_json(document: Mapping[str, Any], *, indent: int | None = 2) -> None:
    """Print a document: ASCII, since a model may answer with characters that no terminal's encoding takes."""
    show_json_text([json.dumps(document, indent=indent, allow_nan=False)])


def show_json_text(pieces: Iterable[str]) -> None:
    """Print a document that is JSON already, piece by piece: it may be a tenth of a gigabyte."""
    PRINTED.documents += 1
    sys.stdout.writelines(pieces)
    show("")


def as_json() -> bool:
    """True where the call at work asked for JSON."""
    called = click.get_current_context(silent=True)
    return called is not None and called.meta.get(JSON, False)


def show_document(document: Mapping[str, Any], lines: Callable[[], Iterable[str]]) -> None:
    """Print a document as JSON where that was asked for, else as the lines of text that are made of it."""
    if as_json():
        show_json(document)
    else:
        show("\n".join(lines()))


def listing(columns: Sequence[Column], shown: Sequence[Any], count: int, none: str) -> Iterator[str]:
    """A list on standard output: a table of what is `shown` of `count`, and how many are left out; else `none`."""
    from tui.text.plain_text import table_of

    console = standard_output()
    if shown:
        yield from table_of(columns, shown, console.room, paint=console.inked)
    else:
        yield none
    if len(shown) < count:
        yield f"the last {len(shown)} of {count}; --limit 0 shows all"


def show_records(records: Records, document: Mapping[str, Any], lines: Callable[[], Iterable[str]]) -> None:
    """Print a document of a desk's records; the text of a desk that has not run says so."""
    show_document(document, lines if records.reader is not None else lambda: [records.absence])


def _takes(characters: str) -> bool:
    try:
        characters.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
