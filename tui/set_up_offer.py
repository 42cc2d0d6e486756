"""The set-up that the palette offers: of a new account, or of the API keys of a configured desk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from engine import places

if TYPE_CHECKING:
    from tui.invocation import Invocation
    from tui.set_up import SetUp


@dataclass(frozen=True, slots=True)
class SetUpOffer:
    """A set-up that the palette offers.

    name: of the entry.
    meaning: what it is for.
    begin: prepares it, outside of the screen's loop, for much may be loaded. Raises PaperdeskError.
    file: the name of the file that it writes keys into, where it is for that alone.
    """

    name: str
    meaning: str
    begin: Callable[[], SetUp]
    file: str = ""

    def mends(self, error: str) -> bool:
        """True for an error that names the file."""
        return bool(self.file) and self.file in error


def offered(invocation: Invocation) -> SetUpOffer:
    """The set-up that fits the call's configuration."""
    if invocation.configured:
        meaning = "of the account and the models, kept in a file for you alone"
        name, file = "Enter the API keys of this desk", str(places.keys_file())
        return SetUpOffer(name, meaning, partial(_keys, invocation), file)
    return SetUpOffer("Set up a paper account", "keys, symbols, budget, first cycle", _new_account)


def _keys(invocation: Invocation) -> SetUp:
    from tui.key_entry import key_entry

    return key_entry(invocation)


def _new_account() -> SetUp:
    from tui.first_run import NewAccount

    return NewAccount(places.config_file())
