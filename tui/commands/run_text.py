"""Runs, orders and trades in words, the same in every command that prints them."""

from __future__ import annotations

from engine.domain.order import Fill, Order
from engine.domain.run import CashFlow, ModelUse
from engine.journal.entries import RunEntry
from tui import amounts
from tui.plain_text import one_line


def decided_by(run: RunEntry) -> str:
    """Who decided, so that rules are never taken for a model."""
    kind = "strategy" if run.spec is not None and run.spec.strategy is not None else "preset"
    return f"{run.label} ({kind} {run.name})"


def order_words(order: Order, detail: str | None = None) -> str:
    """An order on one line, with the `detail` of how it came to stand so."""
    if order.notional is not None:
        much = f"{order.side.value} {order.symbol} for {amounts.money(order.notional)}"
    else:
        assert order.quantity is not None  # an order has one of the two
        much = f"{order.side.value} {amounts.quantity(order.quantity)} {order.symbol}"
    return f"{much}: {order.state.value}" + (f" ({one_line(detail)})" if detail else "")


def trade_words(fill: Fill) -> str:
    """A trade on one line."""
    fee = f", fee {amounts.money(fill.fee)}" if fill.fee else ""
    shares = f"{fill.side.value} {amounts.quantity(fill.quantity)} {fill.symbol}"
    return f"{fill.session} {shares} at {amounts.price(fill.price)}{fee}"


def cash_flow_words(flow: CashFlow) -> str:
    """Cash that moved without a trade, on one line."""
    return f"{flow.session} {flow.symbol}: {flow.kind} {amounts.gain(flow.amount)}"


def model_words(use: ModelUse | None) -> str:
    """What models were asked and what it cost; empty where nobody was asked."""
    if use is None or not use.calls:
        return ""
    calls = f"{use.spec}: {use.calls:,} call{'s' if use.calls > 1 else ''}"
    cached = f" ({use.cached_calls:,} recorded)" if use.cached_calls else ""
    silent = f", {use.abstentions:,} without an answer" if use.abstentions else ""
    tokens = f", {use.input_tokens:,} tokens in, {use.output_tokens:,} out" if use.input_tokens else ""
    return f"{calls}{cached}{silent}{tokens}, {amounts.cost(use.cost)}"


def first_line(text: str, width: int) -> str:
    """The first line of a text that a model wrote, safe to show, cut to a width."""
    line = one_line(text.strip().split("\n", 1)[0])
    return line if len(line) <= width else f"{line[: max(0, width - 3)].rstrip()}..."
