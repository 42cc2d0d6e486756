"""Checks of a run, and of every row once its fault is over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

from engine.app.upkeep.drill.fault_table import Step
from engine.app.upkeep.drill.practice import DESK, Ended, LocalAccount, Practice
from engine.domain.order import Order, OrderState, is_final
from engine.domain.run import RunKind
from engine.domain.text import counted
from engine.journal.entries import OrderEntry, RunEntry
from engine.journal.reader import JournalReader
from engine.settings import places


class DoesNotHold(Exception):
    """Something that had to hold does not."""


def held(holds: bool, otherwise: str) -> None:
    """Raise DoesNotHold where something does not hold."""
    if not holds:
        raise DoesNotHold(otherwise)


def check_run(step: Step, ended: Ended, account: LocalAccount) -> None:
    """Check a run against what its step says of it. Raises DoesNotHold."""
    held(ended.code == step["run"], f"a run ended with {ended.code}, not with {step['run']}: {ended.line}")
    said = " ".join((ended.line, *ended.warnings))
    for word in step.get("says", ()):
        held(word in said, f"a run did not say {word!r}: {said}")
    if "warns" in step:
        count = sum(step["warns"] in text for text in ended.warnings)
        held(count == 1, f"{count} warnings say {step['warns']!r}: {'; '.join(ended.warnings)}")
    if "placed" in step:
        placed = len(_of_latest_run(account))
        held(
            placed == step["placed"],
            f"the broker has {counted(placed, 'order')} of the run, not {step['placed']}: {ended.line}",
        )
    if any(name in step for name in ("session", "flows", "rejected", "canceled", "whole", "waiting")):
        with JournalReader(places.desk_journal(DESK)) as reader:
            _check_books(step, reader, account)


def _of_latest_run(account: LocalAccount) -> Sequence[str]:
    """The ids of the latest run's orders that the broker has; of all orders where no run has begun."""
    there = [one["client_order_id"] for one in account.state()["orders"]]
    if not places.desk_journal(DESK).exists():
        return there
    with JournalReader(places.desk_journal(DESK)) as reader:
        run = reader.latest_run(RunKind.DAILY)
        ours = {entry.order.id for entry in reader.orders(run=None if run is None else run.id)}
    return [name for name in there if name in ours]


def _check_books(step: Step, reader: JournalReader, account: LocalAccount) -> None:
    run = reader.latest_run(RunKind.DAILY)
    held(run is not None, "the journal has no run")
    assert run is not None
    if "session" in step:
        held(run.session == step["session"], f"the run was for {run.session}, not for {step['session']}")
    for kind in step.get("flows", ()):
        kinds = [flow.kind for flow in reader.cash_flows()]
        held(kind in kinds, f"no {kind} was booked, but {', '.join(kinds) or 'nothing'}")
    for state in ("rejected", "canceled"):
        if state in step:
            _check_ended(reader, run, step[state], OrderState(state))
    if "whole" in step:
        quantity = _order(reader, run, step["whole"]).quantity
        held(quantity is not None and quantity == quantity.to_integral_value(), f"{quantity} shares were ordered")
    if "waiting" in step:
        order = _order(reader, run, step["waiting"])
        there = [one for one in account.state()["orders"] if one["client_order_id"] == order.id]
        held(len(there) == 1 and Decimal(there[0]["filled_qty"]) == 0, f"the order {order.id} is not waiting")


def _check_ended(reader: JournalReader, run: RunEntry, symbol: str, state: OrderState) -> None:
    order = _order(reader, run, symbol)
    reason = reader.order_moves(order.id)[-1].detail
    held(order.state is state and bool(reason), f"the order {order.id} is {order.state} ({reason or 'no reason'})")


def _order(reader: JournalReader, run: RunEntry, symbol: str) -> Order:
    found = [entry.order for entry in reader.orders(run=run.id, symbol=symbol)]
    held(len(found) == 1, f"{counted(len(found), 'order')} of {symbol} in {run.id}")
    return found[0]


def check_end(practice: Practice) -> None:
    """No order doubled or lost, both books equal. Raises DoesNotHold."""
    there = [one["client_order_id"] for one in practice.account.state()["orders"]]
    ours = [name for name in there if name.startswith(f"{DESK}-")]
    with JournalReader(places.desk_journal(DESK)) as reader:
        sent, entries = reader.orders_sent(), reader.orders()
    doubled = [name for name, count in Counter(map(_without_attempt, ours)).items() if count > 1]
    held(not doubled, f"orders doubled: {', '.join(doubled)}")
    unknown = sorted(set(ours) - sent)
    held(not unknown, f"orders at the broker that the journal did not send: {', '.join(unknown)}")
    lost = [entry.order.id for entry in entries if entry.order.id not in there and _counts(entry, sent)]
    held(not lost, f"orders lost: {', '.join(lost)}")
    differences = practice.reconcile().report.differences
    held(not differences, f"the books differ in {', '.join(one.what for one in differences)}")


def _counts(entry: OrderEntry, sent: frozenset[str]) -> bool:
    """True for an order that the broker has to have: it was sent, and nothing kept it from being placed."""
    state = entry.order.state
    return not is_final(state) or (entry.order.id in sent and state not in (OrderState.REJECTED, OrderState.CANCELED))


def _without_attempt(order_id: str) -> str:
    return order_id.rpartition("-")[0]
