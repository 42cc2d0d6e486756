"""Late entries, partial fills, adoptions, restores and kills in any order end in the books, returns and trades of the
same days without a fault: 60 lives in `make test`, 2,000 in `make test-long`."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.engine.account.late_life import LATER, Evening, both
from tests.examples import examples

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


@given(st.lists(EVENINGS, min_size=2, max_size=6))
@examples(2000)
def test_late_entries_and_lost_journals_end_in_the_books_of_the_same_days(evenings: list[Evening]) -> None:
    sound, late = both(evenings)
    assert late == sound
