"""The books of what is shown, read beside the screen, and their curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.charts.plotting import PlotData

if TYPE_CHECKING:
    from engine.reports.documents.book import Book
    from engine.reports.documents.decisions import ClosesOf
    from engine.reports.documents.records import Records
    from tui.view.market_view import MarketView
    from tui.view.snapshot import Snapshot

START = 100.0
"""The beginning of every curve of growth."""
BARS, CURVES = 60, 6
"""Sessions, and symbols, whose prices are drawn at most before there are books."""


async def read_book(view: Snapshot) -> Book:
    """The books, beside buy and hold of the symbols and the index fund of the data. Raises what JournalReader
    raises."""
    from engine.reports.documents.book import book_of
    from engine.reports.performance import BENCHMARK
    from engine.reports.stored import stored_growth

    def read(records: Records, _: ClosesOf) -> Book:
        run, reader = records.world, records.reader
        held = None if run is None or reader is None else stored_growth(reader, run, BENCHMARK)
        return book_of(records, market, symbols, fund, held)

    market = None if view.market is None else view.market.as_of
    symbols = () if view.market is None else tuple(quote.symbol for quote in view.market.quotes)
    assert view.opened is not None  # its journal is read
    ask, benchmark, fund = view.opened.ask, view.opened.benchmark, None
    if benchmark is not None and benchmark not in symbols and view.now is not None:
        prices = await ask.prices([benchmark], view.now)
        fund = None if prices is None or prices.as_of is None else (benchmark, prices.as_of)
    return await ask.read(view.sources[0], read)


def seen(view: Snapshot) -> tuple[object, ...]:
    """The part of a snapshot that the books depend on: they are read again where it changes."""
    books = view.desk.books
    return (
        view.sources[:1],
        None if books is None else (books.session, books.point.portfolio.cash),
        view.desk.logged,
    )


def growth(book: Book) -> PlotData:
    """The growth of START by name."""
    from engine.reports.performance import BENCHMARK

    curves = {name: [None if one is None else START * one for one in curve] for name, curve in book.curves.items()}
    return PlotData(curves, _labels(book), beside=BENCHMARK)


def growth_title(book: Book) -> str:
    """The title of a curve of growth, with its last session: it is read after all else that a screen shows."""
    return f"Growth of {START:g} to {book.sessions[-1]}"


def symbols_growth(market: MarketView) -> PlotData:
    """The growth of START of every symbol over the sessions of the first one's chart; of its last BARS bars."""
    charts = [(symbol, chart) for symbol, chart in market.charts.items() if len(chart)]
    if not charts:
        return PlotData()
    days = charts[0][1].days[-BARS:]
    curves: dict[str, list[float | None]] = {}
    for symbol, chart in charts[:CURVES]:
        closes = dict(zip(chart.days, chart.close, strict=True))
        start = next((closes[day] for day in days if closes.get(day)), None)
        if start is not None:
            curves[symbol] = [START * closes[day] / start if day in closes else None for day in days]
    return PlotData(curves, [str(day) for day in days])


def drawdown(book: Book) -> PlotData:
    """The percent below the highest close."""
    return PlotData({"% below the highest": [100 * fall for fall in book.falls]}, _labels(book), shaded=True)


def exposure(book: Book) -> PlotData:
    """The percent of the value that is in positions."""
    return PlotData({"% invested": [100 * part for part in book.invested]}, _labels(book))


def _labels(book: Book) -> list[str]:
    return [str(session) for session in book.sessions]
