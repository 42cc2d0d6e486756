"""The certificate of a look-ahead audit: what was compared, what differs, and what surfaced that should not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from engine.lab.watched_market import Inputs


@dataclass(frozen=True, slots=True)
class Planted:
    """A source's planted future: `where` it surfaced first."""

    source: str
    surfaced: bool
    where: str = ""


@dataclass(frozen=True, slots=True)
class Copies:
    """Legs on copies of the data folder: decisions that were compared with the whole run's, those that differ, and True
    where nothing could open the original, False where only Python could not."""

    compared: int
    differing: int
    hidden: bool


@dataclass(frozen=True, slots=True)
class Training:
    """Sessions of the warm-up that were played again with another future, and the texts of theirs that came out
    otherwise without saying that they rest on what followed."""

    sessions: tuple[date, ...]
    unmarked: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The run that a certificate is of.

    run: the recorded run that it was held against; None where none was named.
    version, data_fingerprint: of the program, and of the data through the window.
    code: hash of the user's code, None without any.
    fingerprint: of the decisions, trades and equity of the uncut leg.
    same: True where the recorded run is of the same settings, program, data and code and came out alike; None where one
        of these was not recorded.
    differs: what it differs in.
    """

    run: str | None = None
    version: str = ""
    data_fingerprint: str = ""
    code: str | None = None
    fingerprint: str = ""
    same: bool | None = None
    differs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """The result of an audit.

    subject: the preset or strategy.
    first, last: the first and the last session that decisions read.
    inputs: what the whole run read, by source.
    cuts: how often the data was cut.
    compared, differing: decisions taken again on cut data, and those of them that came out differently.
    access_sessions, access_differing: sessions in which the data access was compared, and those in which it showed
        something that a cut removes.
    planted: the sources into which a future was planted.
    findings: the first MOST_FINDINGS in words.
    opened: files of the data folder that the run opened itself, each with the line of the user's code that did it
        (empty where none was at work): what it reads of them no cut removes.
    copies: the legs on copies of the data folder; None on the demo market.
    training: the marks of hindsight; None without a warm-up of agents.
    hindsight: memories of the warm-up that rest on what followed, which is allowed: each is recalled only once that is
        known. None without a memory.
    leaked_prices: texts that quote a future close, possibly by chance.
    early: texts that are stamped before their release; each counts from its release on.
    undated: texts of the user's own that the agents read: nobody can tell of when they are.
    notes: what bars, actions and adj_close say of each other.
    bound: what the certificate is of.
    not_audited: what code of the user's read outside of the program and the data folder, and where it reads how it was
        called: no cut changes that.
    unmasked: what the run's questions name though its mask hides it; None without a mask.
    """

    subject: str
    first: date
    last: date
    inputs: Mapping[str, Inputs]
    cuts: int
    compared: int
    differing: int
    access_sessions: int
    access_differing: int
    planted: tuple[Planted, ...]
    findings: tuple[str, ...] = ()
    hindsight: int | None = None
    undated: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    leaked_prices: tuple[str, ...] = ()
    early: tuple[str, ...] = ()
    opened: Mapping[str, str] = field(default_factory=dict)
    copies: Copies | None = None
    training: Training | None = None
    bound: Bound = Bound()
    not_audited: tuple[str, ...] = ()
    unmasked: tuple[str, ...] | None = None

    @property
    def outcome(self) -> Literal["clean", "leak"]:
        """`leak` where any of it saw the future."""
        differing = self.differing or self.access_differing or (self.copies is not None and self.copies.differing)
        unmarked = self.training is not None and self.training.unmarked
        leaks = differing or unmarked or self.unmasked or self.opened or any(p.surfaced for p in self.planted)
        return "leak" if leaks or any(i.from_the_future for i in self.inputs.values()) else "clean"
