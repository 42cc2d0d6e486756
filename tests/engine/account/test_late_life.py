"""Late entries, partial fills, adoptions, restores and kills in any order end in the books, returns and trades of the
same days without a fault: 6 lives in `make test`, 2,000 in `make test-long`."""

from __future__ import annotations

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from tests.engine.account.late_life import LATER, TALLY, Evening, both

EVENINGS = st.builds(
    Evening,
    transfer=st.sampled_from((0, 0, 0, 250, -400, 1000)),
    shares=st.sampled_from((0, 0, 0, 0, 7)),
    partial=st.sampled_from(("", "", "fill", "cancel")),
    late=st.lists(st.integers(0, LATER), min_size=1, max_size=4).map(tuple),
    kills=st.lists(st.integers(0, 40), max_size=3).map(tuple),
    waits=st.booleans(),
    restored=st.sampled_from((None, None, None, -1, 0, 1, 2)),
)
USUAL = (0, 6)
LONG = [(number, 200) for number in range(1, 11)]
"""Seeds, each with the number of its lives: several processes share them."""


@pytest.mark.parametrize(("number", "lives"), [USUAL, *(pytest.param(*each, marks=pytest.mark.slow) for each in LONG)])
def test_late_entries_and_lost_journals_end_in_the_books_of_the_same_days(number: int, lives: int) -> None:
    TALLY.clear()

    @seed(number)
    @settings(max_examples=lives, deadline=None, derandomize=False, database=None)
    @given(st.lists(EVENINGS, min_size=2, max_size=6))
    def the_same_in_the_end(evenings: list[Evening]) -> None:
        sound, late = both(evenings)
        assert (late.trades, late.closes) == (sound.trades, sound.closes)
        assert late.growth == pytest.approx(sound.growth, abs=5e-7), "a cent that rounding left may be of another day"

    the_same_in_the_end()
    # They would hold as well where nothing is ever tried.
    for what in ("adopted", "waited", "killed", "lost", "put back", "recovered"):
        assert TALLY[what] > lives / 5, what
