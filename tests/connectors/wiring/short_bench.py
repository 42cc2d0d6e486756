"""What the tests of a bench run on: half a year of made-up prices, and the papers' tables over six weeks of it."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path

from engine.lab.published_tables import PublishedTable, published
from engine.market.trading_hours import exchange_calendar

FIRST, LAST, WARM_UP = date(2023, 7, 3), date(2023, 7, 25), date(2023, 6, 14)
"""First and last session of the test, and first of the warm-up."""


@cache
def _price_files() -> dict[str, str]:
    draw = random.Random(5)
    files = {}
    for symbol in ("AMZN", "TSLA"):
        rows, price = ["date,open,high,low,close,adj_close,volume"], 100.0
        for day in exchange_calendar().sessions(date(2023, 1, 3), date(2023, 8, 31)):
            opened, price = price, price * (1 + draw.gauss(0.001, 0.02))
            high, low = max(opened, price) * 1.005, min(opened, price) * 0.995
            rows.append(f"{day},{opened:.4f},{high:.4f},{low:.4f},{price:.4f},{price:.4f},{draw.randint(10**6, 10**7)}")
        files[symbol] = "\n".join(rows) + "\n"
    return files


def write_folder(folder: Path) -> Path:
    """AMZN and TSLA as random walks, with a line of news of AMZN a day."""
    (folder / "prices").mkdir(parents=True)
    for symbol, text in _price_files().items():
        (folder / "prices" / f"{symbol}.csv").write_text(text)
    texts = ("Amazon beats estimates and raises its outlook", "Regulators sue Amazon over its fees")
    days = exchange_calendar().sessions(date(2023, 6, 1), date(2023, 7, 28))
    write_news(folder, [(day, texts[n % 2]) for n, day in enumerate(days)])
    return folder


def write_news(folder: Path, items: list[tuple[date, str]]) -> None:
    """The news of AMZN, in place of what there was."""
    file = folder / "news" / "AMZN.jsonl"
    file.parent.mkdir(exist_ok=True)
    plain = ({"date": str(d), "time": None, "headline": None, "summary": text, "source": None} for d, text in items)
    file.write_text("".join(f"{json.dumps(item)}\n" for item in plain))


def short_tables(name: str, last: date = LAST, warm_up_from: date = WARM_UP) -> tuple[PublishedTable, ...]:
    """The tables of a bench over the short window."""
    return tuple(replace(table, first=FIRST, last=last, warm_up_from=warm_up_from) for table in published(name))
