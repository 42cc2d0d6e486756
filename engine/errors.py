"""Errors that Paperdesk raises on purpose, with the exit code that each ends a command with.

    PaperdeskError
    |-- OrdersRejected        1   every order of a run was rejected as it was sent
    |-- UsageError            2   a command was called in a way that cannot mean anything
    |-- DataError            65   data is missing, stale or malformed
    |   |-- MissingData           no folder, no symbol, no session
    |   |-- MalformedData         a bad number, order, or shape; names file and line
    |   `-- StaleData             data ends before the session that it is needed for
    |-- InvariantBroken      70   a bug: the books do not add up
    |-- NetworkError         74   a service cannot be reached
    |   `-- NotificationFailed    a program or webhook could not be notified of a run; never ends one
    |-- TryAgainLater        75   a lock is held, a model cannot be had, or an outcome at the broker is unknown
    |   |-- BudgetReached         what models may cost is reached
    |   `-- WorkLost              work has ended every process that it was given to
    |-- CredentialsRefused   77   a key is missing or was refused
    |-- ConfigError          78   config, preset or environment says something impossible
    |-- DeskHalted           79   broker and journal disagree
    `-- Interrupted         130   stopped by the user; what was done is kept

Where several meet, `gravest` names the one that counts.

A message is one line: what is wrong, where, and what to do. A model's bad answer is never an error: it is an
abstention, a value that is shown and counted. A model that gives no answer at all is one: an outage is no decision.
"""

from __future__ import annotations

from copy import copy
from copyreg import __newobj__  # type: ignore[attr-defined]
from typing import ClassVar

MENDED = (75, 77, 78)
"""Exit codes of errors that a stopped run can go on after, once they are mended or have passed."""


NO_DESK_SYMBOLS = "the desk has no symbols; set desk.symbols in the configuration"
"""The error of a desk without symbols, wherever it is opened or run."""

NO = 1
"""Exit code of a command whose answer is no."""


class PaperdeskError(Exception):
    """Base of all errors; `exit_code` is that of the command."""

    exit_code: ClassVar[int] = 70

    def __reduce__(self) -> tuple[object, ...]:
        # An error whose constructor takes more than its message comes out of another process as it is.
        return __newobj__, (type(self), *self.args), vars(self)


class UsageError(PaperdeskError):
    """Unknown option value, preset or strategy; from after to; an empty window; a session in the future."""

    exit_code = 2


class DataError(PaperdeskError):
    """Data is missing, stale or malformed."""

    exit_code = 65


class MissingData(DataError):
    """A folder, symbol or session that does not exist."""


class MalformedData(DataError):
    """A row that cannot be read; the message names file and line."""


class StaleData(DataError):
    """Data ends before the session that it is needed for."""


class OrdersRejected(PaperdeskError):
    """Every order of a run was rejected as it was sent."""

    exit_code = NO


class InvariantBroken(PaperdeskError):
    """A bug of ours: the books do not add up."""

    exit_code = 70


class NetworkError(PaperdeskError):
    """A service could not be reached."""

    exit_code = 74


class NotificationFailed(NetworkError):
    """A program or webhook that could not be notified of a run."""


class TryAgainLater(PaperdeskError):
    """A lock is held by another process, a model cannot be had now, or an outcome at the broker is unknown."""

    exit_code = 75


class BudgetReached(TryAgainLater):
    """The models' calls have reached what they may cost."""


class WorkLost(TryAgainLater):
    """Work of many has ended every process that it was given to; the others go on."""


class CredentialsRefused(PaperdeskError):
    """A key is missing, unreadable or was refused by the service."""

    exit_code = 77


class ConfigError(PaperdeskError):
    """The configuration, a preset or the environment asks for something impossible."""

    exit_code = 78


class DeskHalted(PaperdeskError):
    """A disagreement of broker and journal, which a person has to resolve."""

    exit_code = 79


class Interrupted(PaperdeskError):
    """Stopped by the user; the part that was done is kept."""

    exit_code = 130


GRAVEST_FIRST = (79, 77, 78, 65, 74, 75)
"""Exit codes of hindrances that can meet in one run, the one that takes most to mend first."""


def gravest(first: PaperdeskError, other: PaperdeskError) -> PaperdeskError:
    """The graver of two errors of one run; where that is the other, it tells of the first too. An error of another
    kind (a bug, an interruption) is graver than both."""
    codes = first.exit_code, other.exit_code
    if codes[0] not in GRAVEST_FIRST or GRAVEST_FIRST.index(codes[0]) <= GRAVEST_FIRST.index(codes[1]):
        return first
    graver = copy(other)
    graver.args = (f"{other}; and {first}",)
    return graver
