"""The symbols of a configured desk that has none: asked for in the app, and written into its configuration."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from engine.domain.market import is_crypto
from engine.errors import ConfigError
from engine.settings import places
from engine.settings.keys import write_private
from tui.set_up.first_configuration import check_configuration, filled_in, known_symbols, symbols_of
from tui.set_up.first_run import SYMBOLS
from tui.set_up.set_up import Question

if TYPE_CHECKING:
    from tui.settings.invocation import Invocation

PROPOSED = 4
"""Symbols of a data folder that are proposed."""


@dataclass(frozen=True, slots=True)
class SymbolEntry:
    """The set-up of a desk's symbols: `requested` is its question, `file` the configuration that is changed."""

    requested: Question
    file: Path
    title: str = "Symbols of this desk"
    done: str = "The desk has its symbols."
    cycle: bool = True

    @property
    def end(self) -> str:
        """Its last sentence before it begins."""
        return f"The symbols are written into {self.file}; the rest of it stays."

    def questions(self, answers: Mapping[str, str]) -> Sequence[Question]:
        """The one question."""
        return (self.requested,)

    def options(self, answers: Mapping[str, str], folder: Path) -> None:
        """Nothing is tried: the first cycle fetches prices, and says what it lacks."""

    def concerns(self, area: str) -> bool:
        """Nothing is tried."""
        return False

    def symbols(self, answers: Mapping[str, str]) -> Sequence[str]:
        """No symbol: the desk's next cycle fetches what it needs."""
        return ()

    def keep(self, answers: Mapping[str, str]) -> Iterator[Path]:
        """Write the configuration. Raises ConfigError."""
        write_private(self.file, _with_symbols(self.file, answers["desk.symbols"]))
        yield self.file


def symbol_entry(invocation: Invocation) -> SymbolEntry:
    """Ask for the symbols of a desk, from its data folder where it has one. Raises ConfigError."""
    folder = invocation.load().config.data.folder
    file = places.config_file() if invocation.config_file is None else Path(invocation.config_file).expanduser()
    asked = SYMBOLS
    if folder is not None:
        there = sorted(path.stem for path in (Path(folder).expanduser() / "prices").glob("*.csv"))
        shares = [symbol for symbol in there if not is_crypto(symbol)]  # among which crypto would move the close
        asked = replace(
            asked, proposed=",".join((shares or there)[:PROPOSED]), check=partial(known_symbols, folder=folder)
        )

    def checked(text: str) -> str:
        answer = asked.check(text)
        _with_symbols(file, answer)
        return answer

    return SymbolEntry(replace(asked, check=checked), file)


def _with_symbols(file: Path, answer: str) -> str:
    """The configuration with symbols in the place of none. Raises ConfigError where that place is not found, and for
    symbols that cannot be in one portfolio."""
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    changed = filled_in(text, {"desk.symbols": answer})
    try:
        if "symbols" not in tomllib.loads(changed).get("desk", {}):
            section, line = "[desk]\n", f"symbols = {json.dumps(symbols_of(answer))}\n"
            changed = (
                changed.replace(section, section + line, 1) if section in changed else f"{changed}\n{section}{line}"
            )
        written = tomllib.loads(changed)["desk"]["symbols"]
    except tomllib.TOMLDecodeError:
        written = None
    if written != symbols_of(answer):
        raise ConfigError(f"{file} has its symbols in a form that is not changed from here: write desk.symbols there")
    check_configuration(changed)
    return changed
