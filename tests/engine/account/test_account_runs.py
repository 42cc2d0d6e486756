"""Daily runs in an account: undisturbed, killed at every request and at every commit, and answered badly."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from engine.account.booking import NEVER_ARRIVED
from engine.domain.order import OrderState
from engine.errors import NetworkError, TryAgainLater
from engine.journal.integrity import quick_check
from engine.journal.reader import JournalReader
from tests.engine.account.accounts import DAYS, Desk, LocalAccount, assert_equal
from tests.engine.session.test_daily import Killed, books, killed_before
from tests.long_cases import first_of


def lived_through(folder: Path, sessions: int, **settings: Any) -> Desk:
    """A desk after so many sessions."""
    folder.mkdir(exist_ok=True)
    desk = Desk(folder=folder, **settings)
    for number in range(sessions):
        if number:
            desk.next_close()
        desk.run()
    return desk


def copied(desk: Desk, folder: Path, **settings: Any) -> Desk:
    """The same desk and account, anew."""
    folder.mkdir()
    for path in desk.folder.iterdir():
        shutil.copy(path, folder)
    return Desk(folder=folder, **settings)


def test_twelve_sessions_over_a_split_and_a_dividend_keep_both_sides_equal(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path)
    for number, day in enumerate(DAYS[:12]):
        if number:
            desk.next_close()
        result = desk.run()
        assert (result.session, result.outcome) == (day, "done")
        assert_equal(desk)

    with JournalReader(desk.journal) as reader:
        flows, points, fills = reader.cash_flows(), reader.equity(), reader.fills()
    assert [point.session for point in points] == list(DAYS[:12])
    assert {(flow.kind, flow.symbol, flow.session) for flow in flows} == {
        ("split", "BBB", date(2024, 2, 5)),
        ("dividend", "BBB", date(2024, 2, 12)),
    }
    assert len(fills) >= 12
    for point in points:
        assert point.value == point.portfolio.value(point.prices)
    assert quick_check(desk.journal) == ()
    # Every order was posted once, and every activity is booked once.
    posts = desk.local.state()["posts"]
    assert set(posts.values()) == {1}, posts


class Cut:
    """A broker whose Nth request is cut: the process dies before it was carried out, or after."""

    def __init__(self, inner: LocalAccount, at: int, after: bool, error: Callable[[], BaseException]) -> None:
        self._inner, self._at, self._after, self._error = inner, at, after, error
        self.count = 0
        self.names: list[str] = []

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)

        async def asked(*args: Any) -> Any:
            self.count += 1
            self.names.append(name)
            if self.count == self._at and not self._after:
                raise self._error()
            answer = await method(*args)
            if self.count == self._at:
                raise self._error()
            return answer

        return asked


def requests_of(desk: Desk) -> list[str]:
    """The requests of the next run."""
    cut = Cut(desk.account, 0, False, Killed)
    desk.wrap = lambda account: cut
    desk.run()
    desk.wrap = lambda account: account
    return cut.names


def finished(desk: Desk, day: date) -> bool:
    try:
        with JournalReader(desk.journal) as reader:
            return reader.finished_run(day) is not None
    except Exception:
        return False


def followed(desk: Desk) -> tuple[dict[str, Any], Any, Any]:
    """What a desk comes to after two more sessions, and what its account has seen."""
    for _ in range(2):
        desk.next_close()
        desk.run()
    assert_equal(desk)
    state = desk.local.state()
    kept = books(desk.journal)
    kept.pop("runs")
    lives = kept.pop("lives")
    assert all(states[0] is OrderState.INTENDED for states in lives.values())
    return kept, [(o["client_order_id"], o["filled_qty"]) for o in state["orders"]], state["cash"]


@pytest.fixture
def places_for(tmp_path: Path) -> Iterator[Callable[[], Path]]:
    numbers = iter(range(10**6))
    yield lambda: tmp_path / f"copy-{next(numbers)}"


EVERY = pytest.mark.parametrize("every", [21, pytest.param(1, marks=pytest.mark.slow)], ids="each {}".format)
"""One in 21 of the moments in the usual suite, all of them in the long one."""


@EVERY
@pytest.mark.parametrize("sessions", first_of(2, [0, 3, 2]))
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_every_request_and_run_again_it_is_the_undisturbed_run(
    sessions: int, after: bool, every: int, tmp_path: Path, places_for: Callable[[], Path]
) -> None:
    base = lived_through(tmp_path / "base", sessions)
    if sessions:
        base.next_close()
    undisturbed = copied(base, places_for())
    names = requests_of(undisturbed)
    expected = followed(undisturbed)
    assert "place" in names

    moments = range(1 + (sessions + after) % every, len(names) + 1, every)
    # Around an order always.
    for at in sorted({*moments, *(n for n, name in enumerate(names, 1) if name == "place")}):
        desk = copied(base, places_for())
        day = desk.session
        cut = Cut(desk.account, at, after, Killed)
        desk.wrap = lambda account, cut=cut: cut
        with pytest.raises(Killed):
            desk.run()
        again = copied(desk, places_for())
        if not finished(again, day):
            again.run()
        assert followed(again) == expected, f"killed {'after' if after else 'before'} {names[at - 1]} ({at})"


@EVERY
@pytest.mark.parametrize("sessions", [0, 3])
def test_killed_before_every_commit_and_run_again_it_is_the_undisturbed_run(
    sessions: int, every: int, tmp_path: Path, places_for: Callable[[], Path]
) -> None:
    base = lived_through(tmp_path / "base", sessions)
    if sessions:
        base.next_close()
    undisturbed = copied(base, places_for())
    with killed_before(10**9) as count:
        undisturbed.run()
    commits = count[0]
    expected = followed(undisturbed)
    assert commits > 10

    for kill in range(1 + sessions % every, commits + 1, every):
        desk = copied(base, places_for())
        day = desk.session
        with killed_before(kill), pytest.raises(Killed):
            desk.run()
        again = copied(desk, places_for())
        if not finished(again, day):
            with killed_before(commits - kill + 1), suppress(Killed):
                again.run()
        again = copied(again, places_for())
        if not finished(again, day):
            again.run()
        assert followed(again) == expected, f"killed before commit {kill} of {commits}"


@pytest.mark.parametrize("error", [TryAgainLater, NetworkError])
@pytest.mark.parametrize("after", [False, True], ids=["lost", "arrived"])
def test_an_order_whose_answer_is_lost_is_looked_up_and_traded_once(
    after: bool, error: type[Exception], tmp_path: Path, places_for: Callable[[], Path]
) -> None:
    base = lived_through(tmp_path / "base", 2)
    base.next_close()
    undisturbed = copied(base, places_for())
    names = requests_of(undisturbed)
    expected = followed(undisturbed)
    for at in [n for n, name in enumerate(names, 1) if name == "place"]:
        desk = copied(base, places_for())
        cut = Cut(desk.account, at, after, lambda: error("no answer"))
        desk.wrap = lambda account, cut=cut: cut
        result = desk.run()
        assert result.outcome == "done"
        assert cut.names[at] == "lookup"
        assert ("place" in cut.names[at + 1 : at + 5]) or after
        desk.wrap = lambda account: account
        assert followed(desk) == expected


def test_the_sandbox_times_out_after_taking_an_order(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path)
    desk.local.fault("gateway_timeout", method="POST", path="/v2/orders", after=True)

    result = desk.run()

    assert result.outcome == "done"
    assert {order.state for order in result.orders} == {OrderState.ACKNOWLEDGED}
    desk.next_close()
    desk.run()
    assert_equal(desk)
    with JournalReader(desk.journal) as reader:
        (order,) = [o for o in result.orders if OrderState.UNKNOWN in [m.state for m in reader.order_moves(o.id)]]
        lived = [move.state for move in reader.order_moves(order.id)]
    S = OrderState
    assert lived == [S.INTENDED, S.SUBMITTING, S.UNKNOWN, S.ACKNOWLEDGED, S.FILLED]


def test_a_broker_that_takes_nothing_ends_the_run_with_try_again_and_the_next_goes_on(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path)
    rule = desk.local.fault("server_error", method="POST", path="/v2/orders", count=0)
    with pytest.raises(TryAgainLater):
        desk.run()
    with JournalReader(desk.journal) as reader:
        first = next(entry.order for entry in reader.orders())
        assert first.state is OrderState.UNKNOWN
    asked = len(desk.model.requests)

    desk.local.clear_faults(rule)
    result = desk.run()

    assert result.outcome == "done"
    assert len(desk.model.requests) == asked
    assert {order.state for order in result.orders} == {OrderState.ACKNOWLEDGED}
    orders = desk.local.state()["orders"]
    assert len({o["client_order_id"] for o in orders}) == len(orders) == len(result.orders)


def test_what_never_arrived_expires_once_its_session_has_passed(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path)
    rule = desk.local.fault("server_error", method="POST", path="/v2/orders", count=0)
    with pytest.raises(TryAgainLater):
        desk.run()
    desk.local.clear_faults(rule)
    desk.next_close()

    desk.run()

    with JournalReader(desk.journal) as reader:
        late = reader.orders(session=DAYS[0])
        details = {reader.order_moves(entry.order.id)[-1].detail for entry in late}
    assert {entry.order.state for entry in late} == {OrderState.EXPIRED}
    assert NEVER_ARRIVED in details
    assert_equal(desk)


@pytest.mark.parametrize("then", ["fill", "cancel", "expire"])
def test_partial_fills_are_booked_whatever_becomes_of_the_rest(then: str, tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path)
    desk.local.fault("partial_fill", fraction="0.4", then=then, count=0)
    for number in range(4):
        if number:
            desk.next_close()
        desk.run()
        assert_equal(desk)

    with JournalReader(desk.journal) as reader:
        orders, fills = reader.orders(), reader.fills()
    ended = {"fill": OrderState.FILLED, "cancel": OrderState.CANCELED, "expire": OrderState.EXPIRED}[then]
    done = [entry.order for entry in orders if entry.order.session < DAYS[3]]
    assert done
    assert {order.state for order in done} == {ended}
    assert all([fill for fill in fills if fill.order_id == order.id] for order in done)
    bought = [o for o in done if o.notional is not None]
    for order in bought:
        spent = sum((f.quantity * f.price for f in fills if f.order_id == order.id), Decimal(0))
        share = spent / (order.notional or 1)
        assert share > Decimal("0.99") if then == "fill" else Decimal("0.3") < share < Decimal("0.5")
