"""The trail of a decision: one screen that fits, parts that open, and n and p through the decisions of the table."""

from __future__ import annotations

import asyncio
import re
import threading
from decimal import Decimal
from functools import partial, wraps
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

import tui.screens.trail as trail_module
import tui.widgets.trail_pane as pane_module
from engine.reports.documents.trail import latest
from tests.tui.commands.conftest import SESSIONS, Run
from tests.tui.conftest import cells, opened, pane_text, until
from tests.tui.test_clicks import click
from tui.desk.readings import Readings
from tui.screens.chart_image import ChartImageScreen
from tui.screens.trail import TrailScreen
from tui.text.plain_text import one_line
from tui.text.trail_summary import CARD, LABEL, NARROW
from tui.widgets.agent_panes import AgentPanes
from tui.widgets.table import Table
from tui.widgets.trail_pane import TrailPane

PARTS = ["Reason", "Memory", "Answers", "Debate", "Order", "Chart", "Prompts", "Opinions"]


def trail(pilot: Pilot[Any]) -> TrailScreen:
    screen = pilot.app.screen
    assert isinstance(screen, TrailScreen)
    return screen


def title(pilot: Pilot[Any]) -> str:
    return str(trail(pilot).page.border_title)


def parts(pilot: Pilot[Any]) -> dict[str, int]:
    """The numbers of the parts by their names."""
    return {name: number for number, name in trail(pilot).page.parts.items()}


def sections(pilot: Pilot[Any]) -> list[str]:
    """The text of the first screen, and of each part under its title."""
    return re.split(r"^\d [▸▾] .*$", pane_text(pilot, "page"), flags=re.MULTILINE)


def first_screen(pilot: Pilot[Any]) -> list[str]:
    return sections(pilot)[0].splitlines()


async def settled(pilot: Pilot[Any]) -> None:
    """Waits until everything that was asked for is read and written."""
    await until(pilot, lambda: all(worker.is_finished for worker in pilot.app.workers))
    await pilot.pause()


async def on_trail(pilot: Pilot[Any], *keys: str) -> None:
    """Goes to the decisions, and opens the first one's trail."""
    await pilot.press("2")
    await until(pilot, lambda: bool(cells(pilot, "decisions")))
    await pilot.press(*keys or ("enter",))
    await until(pilot, lambda: isinstance(pilot.app.screen, TrailScreen) and "/" in title(pilot))
    await settled(pilot)


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(params=["desk", pytest.param("debating", marks=pytest.mark.slow)])
def recorded(request: pytest.FixtureRequest) -> Path:
    """A desk of one owner, and one of three who debate."""
    home: Path = request.getfixturevalue(request.param)
    return home


def labels(lines: list[str]) -> list[str]:
    """The labels at the left of a first screen, in order."""
    return [label for line in lines[1:] if (label := line[:LABEL].strip())]


async def test_each_key_of_a_burst_goes_on_by_one_decision(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, goes_on = Readings.read, asyncio.Event()

    async def later(self: Readings, source: Any, document: Any) -> Any:
        await goes_on.wait()
        return await read(self, source, document)

    async with opened() as pilot:
        await on_trail(pilot)
        monkeypatch.setattr(Readings, "read", later)
        await pilot.press("n", "n", "p", "n")
        goes_on.set()
        await settled(pilot)
        assert " 3/" in title(pilot)


async def test_every_decision_begins_with_one_screen_that_fits_and_nothing_is_said_three_times(
    run: Run, recorded: Path
) -> None:
    """A part that a key opens comes to the top."""
    seen: dict[str, list[str]] = {}
    async with opened((80, 24)) as pilot:
        await on_trail(pilot)
        page, number = trail(pilot).page, parts(pilot)["Answers"]
        await pilot.press(str(number))
        await until(pilot, lambda: page.render_line(0).text.strip().startswith(f"{number} ▾ Answers"))
        await pilot.press(str(number))
        await until(pilot, lambda: page.scroll_y == 0)
        count = int(title(pilot).rpartition("/")[2])
        for number in range(1, count + 1):
            await until(pilot, lambda wanted=f" {number}/{count}": title(pilot).endswith(wanted))  # type: ignore[misc]
            await settled(pilot)
            assert page.max_scroll_y == 0 and parts(pilot), title(pilot)
            lines = first_screen(pilot)
            seen[" ".join(lines[0].split()[:2])] = lines
            await pilot.press("n")
        await pilot.resize_terminal(120, 40)
        await settled(pilot)
        assert page.max_scroll_y == 0
        await pilot.press("escape", "home")
        await on_trail(pilot)
        symbol = title(pilot).split()[1]
        await pilot.press("o")
        await settled(pilot)
        pages = [flat(text) for text in sections(pilot)[:-1]]
        assert list(parts(pilot))[-1] == "Prompts"
    await asyncio.to_thread(assert_nothing_thrice, run, symbol, pages)
    said = await asyncio.to_thread(run, "decisions", "--json", "--limit", "0")
    assert set(seen) == {f"{one['symbol']} {one['session']}" for one in said.json["decisions"]}
    for one in said.json["decisions"]:
        lines = seen[f"{one['symbol']} {one['session']}"]
        card = [line.split("  ")[0] for line in lines[1:6] if line[:1].strip()]
        reasons = [label for label in card if label.startswith(("For", "Against"))]
        assert card == ["Why", *reasons, "Dissent", "Limits"] and len(reasons) <= 2, "all in the first six rows"
        (made,) = (await asyncio.to_thread(run, "why", one["symbol"], one["session"], "--json")).json["decisions"]
        after = ["After"] if made["closes_since"] else []
        wanted = ["Order", *after, "Asked for", "Decided by"]
        assert [label for label in labels(lines) if label in ("After", *wanted)] == wanted
        told = {n for n in (1, 5, 20) if f"+{n} session" in "\n".join(lines)}
        assert told == {close["sessions"] for close in made["closes_since"]}
        assert "Reason" not in labels(lines), "the reason stands once"
    last = said.json["decisions"][-1]
    printed = (await asyncio.to_thread(run, "why", last["symbol"], last["session"])).out.splitlines()
    shown = seen[f"{last['symbol']} {last['session']}"]
    cards = [labels(lines)[: labels(lines).index("Order") + 1] for lines in (printed, shown)]
    assert printed[0] == shown[0] and cards[0] == cards[1]


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (120, 40), (200, 60)])
async def test_a_card_has_six_rows_on_a_small_screen_and_whole_sentences_where_its_pane_has_room(
    recorded: Path, size: tuple[int, int]
) -> None:
    async with opened(size) as pilot:
        await until(pilot, lambda: "Limits" in pane_text(pilot, "agents"))
        pane = pilot.app.screen.query_one("#agents", TrailPane)
        await settled(pilot)
        lines, width, height = pane.as_text().splitlines(), pane.text_width, pane.size.height
    card = lines[: next(n for n, line in enumerate(lines) if line.startswith("Order"))]
    starts = [n for n, line in enumerate(card) if line.startswith(("Why", "Dissent", "Limits"))]
    assert len(starts) == 3 and starts[-1] < max(CARD, height)
    if size == (80, 24):
        assert starts[-1] < CARD and width < NARROW
    elif size >= (120, 40):
        assert not any(line.endswith("...") for line in card), card


class Late:
    """A function that ends only once it may."""

    def __init__(self, owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.may_end, function = threading.Event(), threading.Event(), getattr(owner, name)
        self.may_end.set()

        @wraps(function)
        def late(*given: Any, **more: Any) -> Any:
            found = function(*given, **more)
            self.begun.set()
            assert self.may_end.wait(60)
            return found

        monkeypatch.setattr(owner, name, late)

    def hold(self) -> None:
        self.begun.clear()
        self.may_end.clear()


async def test_what_is_asked_for_while_a_trail_is_read_or_laid_out_is_what_is_shown(
    debating: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawing, reading = Late(TrailPane, "_drawn", monkeypatch), Late(trail_module, "trail_of", monkeypatch)
    async with opened((80, 24)) as pilot:
        await on_trail(pilot)
        page, number = trail(pilot).page, parts(pilot)["Answers"]
        drawing.hold()
        await pilot.resize_terminal(120, 40)
        await until(pilot, drawing.begun.is_set)
        await pilot.press(str(number))
        await pilot.resize_terminal(100, 30)
        drawing.may_end.set()
        await until(pilot, lambda: page.render_line(0).text.strip().startswith(f"{number} ▾ Answers"))
        await pilot.press(str(number))
        await settled(pilot)
        drawing.hold()
        reading.hold()
        await pilot.press(str(number), "n", "n")
        await until(pilot, lambda: drawing.begun.is_set() and reading.begun.is_set())
        reading.may_end.set()
        drawing.may_end.set()
        await until(pilot, lambda: " 3/" in title(pilot))
        await settled(pilot)
        decision = trail(pilot)._decision
        assert decision is not None and page.open == {"Answers"} and page.scroll_y == 0
        assert page.render_line(0).text.split()[:2] == [decision.key.symbol, str(decision.key.session)]


async def test_a_decision_that_is_read_too_late_is_not_shown_over_the_agents_at_work(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened((120, 40)) as pilot:
        pane = pilot.app.screen.query_one(AgentPanes)
        await until(pilot, lambda: "Limits" in pane_text(pilot, "agents"))
        reading = Late(pane_module, "trail_of", monkeypatch)
        reading.hold()
        view = pilot.app.snapshot()  # type: ignore[attr-defined]
        made = list(view.desk.decisions["ORVL"].values())
        pane.read(view.sources[0], lambda *what: pane_module.trail_of(*what, decisions=made))
        await until(pilot, reading.begun.is_set)
        pane.show_steps(view.desk, "none")
        reading.may_end.set()
        await settled(pilot)
        assert pane.trail is None and "Limits" not in pane.as_text()


def test_a_move_after_a_decision_is_counted_from_the_close_that_is_named(run: Run, desk: Path) -> None:
    """The closes of a coin are those of its own days, and its price at the decision is another one."""
    named = set[bool]()
    for one in run("decisions", "--json", "--limit", "0").json["decisions"]:
        (made,) = run("why", one["symbol"], one["session"], "--json").json["decisions"]
        known = {close["sessions"]: close for close in made["closes_since"]}
        text = " ".join(run("why", one["symbol"], one["session"]).out.split())
        words = f"from {Decimal(str(made['close'])):,.2f} at the close of {one['session']}"
        assert (words in text) is (1 in known)
        if 1 in known:
            assert known[1]["change"] == pytest.approx(known[1]["close"] / made["close"] - 1)
        named.add(1 in known)
    assert named == {True, False}


async def test_trails_open_from_every_screen_with_decisions_and_n_and_p_follow_the_table_with_its_filter(
    desk: Path,
) -> None:
    async with opened() as pilot:
        for key, name in (("1", "watchlist"), ("2", "decisions"), ("3", "book-positions"), ("5", "runs")):
            await pilot.press(key)
            await until(pilot, lambda wanted=name: bool(pilot.app.screen.query_one(f"#{wanted}", Table).rows))  # type: ignore[misc]
            await settled(pilot)
            await pilot.press("d")
            await until(pilot, lambda: isinstance(pilot.app.screen, TrailScreen) and "/" in title(pilot))
            assert title(pilot).endswith("/12"), "all decisions of the record"
            await pilot.press("q")
            assert pilot.app.is_running and not isinstance(pilot.app.screen, TrailScreen)
        await on_trail(pilot)
        await pilot.press("v")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChartImageScreen))
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, TrailScreen)
        await pilot.press("escape", "2")
        await until(pilot, lambda: bool(cells(pilot, "decisions")))
        table = pilot.app.screen.query_one("#decisions", Table)
        table.set_filter("action:BUY")
        rows = [row.key for row in table.rows]
        assert 1 < len(rows) < 12
        await pilot.press("enter")
        walked = []
        for number, key in enumerate(rows, 1):
            await until(pilot, lambda at=number: title(pilot).endswith(f" {at}/{len(rows)}"))  # type: ignore[misc]
            assert table.cursor_key == key
            await until(pilot, lambda: "BUY" in first_screen(pilot)[0] and first_screen(pilot)[0] not in walked)
            walked.append(first_screen(pilot)[0])
            await pilot.press("n")
        await settled(pilot)
        assert title(pilot).endswith(f" {len(rows)}/{len(rows)}"), "the last one stays"
        await pilot.press("p")
        await until(pilot, lambda: title(pilot).endswith(f" {len(rows) - 1}/{len(rows)}"))
        await pilot.press("escape")
        assert table.cursor_key == rows[-2] and len(set(walked)) == len(rows)
        pilot.app.screen.open_trail(partial(latest, symbol="NOPE"))  # type: ignore[attr-defined]

        def named() -> str:
            strips = pilot.app.screen._compositor.render_strips()
            return flat("\n".join(strip.text.strip("│ ") for strip in strips))

        await until(pilot, lambda: "NOPE is not one of the desk's symbols: ORVL, " in named())


@pytest.mark.slow
async def test_parts_open_by_number_by_enter_by_click_and_all_at_once(run: Run, debating: Path) -> None:
    async with opened() as pilot:
        await on_trail(pilot)
        page, numbers = trail(pilot).page, parts(pilot)
        assert list(numbers.values()) == list(range(1, len(numbers) + 1)) and set(numbers) <= set(PARTS)
        assert not page.open
        for name, number in numbers.items():
            await pilot.press(str(number))
            assert page.open == {name}
            await pilot.press("enter")
            assert not page.open, "enter is for the part that was opened last"
        await settled(pilot)
        await click(pilot, "▸ Memory")
        assert page.open == {"Memory"}
        await pilot.press("o")
        assert page.open == set(numbers)
        await settled(pilot)
        opened_texts = dict(zip(numbers, map(flat, sections(pilot)[1:]), strict=True))
        symbol = title(pilot).split()[1]
        await pilot.press("o")
        assert not page.open
    (made,) = (await asyncio.to_thread(run, "why", symbol, str(SESSIONS[-1]), "--json")).json["decisions"]
    full = flat((await asyncio.to_thread(run, "why", symbol, str(SESSIONS[-1]), "--prompts")).out)
    for answer in made["answers"]:
        assert answer["agent"] in opened_texts["Answers"] and one_line(answer["system"])[:60] in opened_texts["Prompts"]
    for memory in made["recollections"]:
        assert f"score {memory['score']:.3f}" in opened_texts["Memory"]
    for opinion in made["opinions"]:
        assert flat(opinion["reason"]) in opened_texts["Opinions"] and flat(opinion["reason"]) in full
    for comment in made["debate"]["comments"]:
        assert flat(comment["text"]) in opened_texts["Debate"]


def assert_nothing_thrice(run: Run, symbol: str, pages: list[str]) -> None:
    (made,) = run("why", symbol, str(SESSIONS[-1]), "--json").json["decisions"]
    # Texts quote each other within the record itself: each may stand once more, on the first screen, whose card and
    # table of agents count as one.
    first: dict[str, str] = {}
    for one in made["answers"]:
        first.setdefault(f"{one['agent']} {one['answer']}", one["owner"])
    own = [one for one in made["answers"] if first[f"{one['agent']} {one['answer']}"] == one["owner"]]
    record = [text for one in own for text in texts_in(one["answer"] or {})]
    record += [made["reason"], *(one["reason"] for one in made["opinions"] if one["owner"] != made["owner"])]
    record += {one["id"]: one["text"] for one in made["recollections"]}.values()
    record = [one_line(text) for text in record]
    texts = {text for text in record if len(text) > 40}
    assert len(texts) > 6
    for text in texts:
        first_screen, *others = pages
        said = int(text in first_screen) + sum(one.count(text) for one in others)
        assert said <= sum(one.count(text) for one in record) + 1, text


def texts_in(value: Any) -> list[str]:
    """Every text of an answer."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in inner for text in texts_in(one)]
