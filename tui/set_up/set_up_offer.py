"""The set-ups that the palette offers: of a new account, or of what a configured desk lacks, API keys or symbols."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from engine.errors import NO_DESK_SYMBOLS
from engine.settings import places
from engine.settings.config_sources import read_sources

if TYPE_CHECKING:
    from tui.set_up.set_up import SetUp
    from tui.settings.invocation import Invocation


SIMULATED = "simulated"


@dataclass(frozen=True, slots=True)
class SetUpOffer:
    """A set-up that the palette offers.

    name: of the entry.
    meaning: what it is for.
    begin: prepares it, outside of the screen's loop, for much may be loaded. Raises PaperdeskError.
    error: words of the errors that it mends, empty for none.
    hint: the way to it in a few words, beside such an error.
    others: those in its place beside the errors that they mend.
    """

    name: str
    meaning: str
    begin: Callable[[], SetUp]
    error: str = ""
    hint: str = ""
    others: tuple[SetUpOffer, ...] = ()

    def mends(self, error: str) -> bool:
        """True for an error that it is about."""
        return bool(self.error) and self.error in error

    def after(self, error: str) -> SetUpOffer:
        """The set-up that is offered beside an error."""
        return next((one for one in self.others if one.mends(error)), self)


def offered(invocation: Invocation) -> SetUpOffer:
    """The set-up that fits the call's configuration: of a paper account while the desk trades none. The file is read
    alone, for to check it takes a tenth of a second. Raises ConfigError for one that cannot be read."""
    symbols = SetUpOffer(
        "Choose the symbols of this desk",
        "which it trades, kept in the configuration",
        partial(_begin, "desk_entries:symbol_entry", invocation),
        error=NO_DESK_SYMBOLS,
        hint="choose symbols",
    )
    keys = SetUpOffer(
        "Enter the API keys of this desk",
        "of the account and the models, in a file only you can read",
        partial(_begin, "desk_entries:key_entry", invocation),
        error=str(places.keys_file()),
        hint="enter API keys",
        others=(symbols,),
    )
    if read_sources(invocation.file).values.get("broker", {}).get("kind", SIMULATED) != SIMULATED:
        return keys
    account = partial(_begin, "first_configuration:new_account", invocation)
    return SetUpOffer("Set up a paper account", "keys, symbols, budget, first cycle", account, others=(symbols, keys))


def _begin(entry: str, invocation: Invocation) -> SetUp:
    """Prepare a set-up, whose module comes with much of the engine."""
    module, _, name = entry.partition(":")
    set_up: SetUp = getattr(import_module(f"tui.set_up.{module}"), name)(invocation)
    return set_up
