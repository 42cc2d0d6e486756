"""What the tests of a bench run on: half a year of made-up prices, and the papers' tables over two months of it."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from datetime import date
from pathlib import Path

from engine.lab.published_tables import PublishedTable, published
from engine.market.trading_hours import exchange_calendar

FIRST, LAST, WARM_UP = date(2023, 7, 3), date(2023, 7, 31), date(2023, 6, 1)
"""First and last session of the test, and first of the warm-up."""


def write_folder(folder: Path) -> Path:
    """AMZN and TSLA as random walks, with a line of news of AMZN a day."""
    draw = random.Random(5)
    for symbol in ("AMZN", "TSLA"):
        rows, price = ["date,open,high,low,close,adj_close,volume"], 100.0
        for day in exchange_calendar().sessions(date(2023, 1, 3), date(2023, 8, 31)):
            opened, price = price, price * (1 + draw.gauss(0.001, 0.02))
            high, low = max(opened, price) * 1.005, min(opened, price) * 0.995
            rows.append(f"{day},{opened:.4f},{high:.4f},{low:.4f},{price:.4f},{price:.4f},{draw.randint(10**6, 10**7)}")
        path = folder / "prices" / f"{symbol}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(rows) + "\n")
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


def short_tables(name: str) -> tuple[PublishedTable, ...]:
    """The tables of a bench over the short window."""
    return tuple(replace(t, first=FIRST, last=LAST, warm_up_from=WARM_UP) for t in published(name))
