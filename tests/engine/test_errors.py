"""Errors that hold more than a message: as another process raised them, and beside another error of one run."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime

from engine.account.disagreement import BooksDisagree, EntryAwaited
from engine.errors import NetworkError, PaperdeskError, TryAgainLater, UsageError, gravest
from engine.execution.controls import CyclePaused, Paused

NOW = datetime(2024, 3, 1, 21, 5, tzinfo=UTC)


def test_an_error_of_another_process_is_whole() -> None:
    errors: list[PaperdeskError] = [
        UsageError("nothing of this kind"),
        BooksDisagree("cash is 1 apart", []),
        EntryAwaited("cash is 1 apart", [], {"cash": "a dividend"}, NOW),
        CyclePaused(Paused(NOW)),
    ]
    for error in errors:
        arrived = pickle.loads(pickle.dumps(error))
        assert (type(arrived), str(arrived), vars(arrived)) == (type(error), str(error), vars(error))


def test_the_graver_error_names_the_other_and_keeps_what_it_holds() -> None:
    awaited = EntryAwaited("cash is 1 apart", [], {"cash": "a dividend"}, NOW)
    one = gravest(TryAgainLater("the models are out"), BooksDisagree("cash is 1 apart", []))
    assert isinstance(one, BooksDisagree) and one.differences == () and "the models are out" in str(one)
    assert gravest(NetworkError("no route"), awaited).exit_code == 74
    assert str(awaited) == "cash is 1 apart"
