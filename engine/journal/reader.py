"""Those who look: read-only, in any process, while the writer writes.

Importing this module loads nothing but sqlite3; the domain comes with the first value that is read. The check for a
finished run never needs it.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from engine.errors import MalformedData, MissingData
from engine.journal.database import WAIT, in_words, open_read_only

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from datetime import date, datetime
    from decimal import Decimal
    from pathlib import Path
    from types import TracebackType
    from typing import Self, TypeVar

    from engine.domain.chart import ChartSpec
    from engine.domain.decision import Decision, DecisionKey, Outcome
    from engine.domain.market import Dropped
    from engine.domain.order import Fill
    from engine.domain.run import Adoption, CashFlow, EquityPoint, RunKind
    from engine.journal.entries import (
        AnswerEntry,
        BoundAccount,
        CallCost,
        Holding,
        Note,
        OrderEntry,
        OrderMove,
        Recalled,
        RunEntry,
    )
    from engine.messages.commands import Command
    from engine.messages.events import Event

    T = TypeVar("T")

COUNTED = ("events", "answers", "decisions", "orders", "fills", "cash_flows", "equity", "notes")


class JournalReader:
    """Reads one journal; a context manager that closes. `run` narrows to a run's id, None means every run of the
    file; sessions are ISO dates of the market's calendar, `first` and `last` both included; rows come in the order in
    which they were written.

    Every method raises MalformedData for a file that turns out to be damaged and TryAgainLater for a locked one.
    """

    def __init__(self, path: Path, wait: float = WAIT) -> None:
        """Opens a journal. Raises MissingData (no file, an empty one), MalformedData (damaged, or no journal),
        ConfigError (written by a newer program), DataError (by an older one), TryAgainLater (locked)."""
        self.path = path
        self._connection = open_read_only(path, wait)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the file."""
        self._connection.close()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """A block in which all reads see the journal as it is at its first one, whatever is written meanwhile."""
        self._rows("BEGIN")
        try:
            yield
        finally:
            self._rows("COMMIT")

    # Runs

    def finished_run(self, session: date) -> str | None:
        """The id of the daily run of a session that was done, or None: the check that makes a second run a no-op."""
        found = self._rows(
            "SELECT id FROM runs WHERE kind = 'daily' AND session = ? AND outcome = 'done' ORDER BY cycle DESC LIMIT 1",
            session.isoformat(),
        )
        return found[0]["id"] if found else None

    def runs(self, kind: RunKind | None = None) -> tuple[RunEntry, ...]:
        """Every run, the latest last."""
        from engine.journal.decision_rows import run_of

        where, values = _where({"kind": kind})
        return self._all(run_of, f"SELECT * FROM runs{where} ORDER BY rowid", *values)

    def latest_run(self, kind: RunKind | None = None) -> RunEntry | None:
        """The run that was started last, or None."""
        from engine.journal.decision_rows import run_of

        where, values = _where({"kind": kind})
        found = self._all(run_of, f"SELECT * FROM runs{where} ORDER BY rowid DESC LIMIT 1", *values)
        return found[0] if found else None

    def run(self, run: str) -> RunEntry:
        """A run by its id. Raises MissingData that names the latest ones."""
        from engine.journal.decision_rows import run_of

        found = self._all(run_of, "SELECT * FROM runs WHERE id = ?", run)
        if not found:
            known = [row["id"] for row in self._rows("SELECT id FROM runs ORDER BY rowid DESC LIMIT 5")]
            raise MissingData(f"no run {run} in {self.path}: the latest are {', '.join(known) or '(none)'}")
        return found[0]

    def counts(self, run: str | None = None) -> dict[str, int]:
        """How many rows there are of each kind."""
        where, values = _where({"run": run})
        return {table: self._rows(f"SELECT count(*) AS n FROM {table}{where}", *values)[0]["n"] for table in COUNTED}

    def stretches(self, run: str) -> dict[str, Decimal]:
        """The parts of a backtest in order, with the money that each began with."""
        from decimal import Decimal

        rows = self._rows("SELECT part, initial_value FROM stretches WHERE run = ? ORDER BY rowid", run)
        return {row["part"]: Decimal(row["initial_value"]) for row in rows}

    def calls(self, run: str | None = None, session: date | None = None) -> tuple[CallCost, ...]:
        """Every call of a model by what it cost, without its texts."""
        from engine.journal.decision_rows import call_of

        where, values = _where({"run": run, "session": session})
        columns = "agent, model, outcome, cached, input_tokens, cached_input_tokens, output_tokens, cost, latency"
        return self._all(call_of, f"SELECT {columns} FROM answers{where} ORDER BY seq", *values)

    def dropped(self, run: str | None = None) -> tuple[Dropped, ...]:
        """Items of sources that could not be used."""
        from engine.domain.market import Dropped

        where, values = _where({"run": run})
        rows = self._rows(f"SELECT * FROM dropped{where} ORDER BY seq", *values)
        return tuple(Dropped(row["source"], row["reason"], row["count"]) for row in rows)

    def notes(self, run: str | None = None) -> tuple[Note, ...]:
        """What a reader of a run has to know."""
        from engine.journal.decision_rows import note_of

        where, values = _where({"run": run})
        return self._all(note_of, f"SELECT * FROM notes{where} ORDER BY seq", *values)

    def document(self, run: str, kind: str) -> str | None:
        """A run as one JSON document, as it was written; None where none of that kind was."""
        found = self._rows("SELECT json FROM documents WHERE run = ? AND kind = ?", run, kind)
        return found[0]["json"] if found else None

    # Where processes meet

    def events_after(self, seq: int = 0, run: str | None = None, limit: int = 1000) -> tuple[tuple[int, Event], ...]:
        """The events after a number, at most `limit`, each with its own number: ask again from the last one."""
        import json

        from engine.messages.events import from_plain

        where, values = _where({"run": run}, "seq > ?")
        rows = self._rows(f"SELECT seq, json FROM events{where} ORDER BY seq LIMIT ?", *values, seq, limit)
        return tuple((row["seq"], from_plain(json.loads(row["json"]))) for row in rows)

    def commands_waiting(self) -> tuple[tuple[int, datetime, Command], ...]:
        """Commands that nobody has carried out: number, time, command."""
        from engine.journal.decision_rows import command_of

        rows = self._rows("SELECT * FROM commands WHERE done IS NULL ORDER BY seq")
        return tuple(command_of(row) for row in rows)

    def commands(
        self, *kinds: type[Command], about: Collection[str] | None = None
    ) -> tuple[tuple[datetime, Command], ...]:
        """Every command of the kinds, in order, each with its time; carried out or not. `about` narrows to the orders
        of these ids."""
        from engine.journal.decision_rows import command_of

        narrow = "" if about is None else f" AND json_extract(json, '$.order_id') IN ({', '.join('?' * len(about))})"
        sql = f"SELECT * FROM commands WHERE {_of_kinds(kinds)}{narrow} ORDER BY seq"
        return tuple(command_of(row)[1:] for row in self._rows(sql, *_names(kinds), *(about or ())))

    def last_command(self, *kinds: type[Command]) -> tuple[datetime, Command] | None:
        """The last command of the kinds with its time, or None: one quick look, whoever has written it."""
        from engine.journal.decision_rows import command_of

        last = f"SELECT * FROM commands WHERE {_of_kinds(kinds)} ORDER BY seq DESC LIMIT 1"
        found = self._rows(last, *_names(kinds))
        return command_of(found[0])[1:] if found else None

    # Decisions

    def decisions(
        self,
        run: str | None = None,
        symbol: str | None = None,
        first: date | None = None,
        last: date | None = None,
        part: str | None = None,
    ) -> tuple[Decision, ...]:
        """Decisions by symbol and range of decision sessions."""
        from engine.journal.decision_rows import decision_of

        where, values = _where({"run": run, "symbol": symbol, "part": part, "session >=": first, "session <=": last})
        return self._all(decision_of, f"SELECT * FROM decisions{where} ORDER BY rowid", *values)

    def answers(self, key: DecisionKey) -> tuple[AnswerEntry, ...]:
        """Every call of a model for one decision, with its prompts and charts."""
        from engine.journal.decision_rows import answer_of, key_row

        where, values = _where(key_row(key))
        rows = self._rows(
            "SELECT answers.*, prompts.text AS system_text FROM answers JOIN prompts ON prompts.hash = answers.system"
            f"{where} ORDER BY seq",
            *values,
        )
        return tuple(answer_of(row, row["system_text"], self._chart) for row in rows)

    def recalled(self, key: DecisionKey) -> tuple[Recalled, ...]:
        """What memory brought up for one decision, layer by layer, best first."""
        from engine.journal.decision_rows import key_row, recalled_of

        where, values = _where(key_row(key))
        sql = "SELECT * FROM recollections JOIN memories ON memories.id = recollections.memory"
        return self._all(recalled_of, f"{sql}{where} ORDER BY recollections.rowid", *values)

    def inputs(self, run: str, cycle: int = 1) -> dict[str, tuple[bytes, ...]]:
        """What a run could read in a cycle, by name, in parts; empty for a run of before that was kept. Raises
        MalformedData where a part is gone."""
        import json
        import zlib

        found: dict[str, tuple[bytes, ...]] = {}
        for row in self._rows("SELECT name, chunks FROM inputs WHERE run = ? AND cycle = ? ORDER BY rowid", run, cycle):
            parts = []
            for name in json.loads(row["chunks"]):
                kept = self._rows("SELECT data FROM chunks WHERE hash = ?", name)
                if not kept:
                    raise MalformedData(f"the journal {self.path} lacks a part of {row['name']}: restore a backup")
                parts.append(zlib.decompress(kept[0]["data"]))
            found[row["name"]] = tuple(parts)
        return found

    def outcomes(
        self, run: str | None = None, symbol: str | None = None, owner: str | None = None, last: date | None = None
    ) -> tuple[Outcome, ...]:
        """What decisions earned, as far as it was known at the close of `last`."""
        from engine.journal.decision_rows import outcome_of

        where, values = _where({"run": run, "symbol": symbol, "owner": owner, "session <=": last})
        return self._all(outcome_of, f"SELECT * FROM outcomes{where} ORDER BY rowid", *values)

    # Orders and books

    def orders(
        self, run: str | None = None, symbol: str | None = None, session: date | None = None, open_only: bool = False
    ) -> tuple[OrderEntry, ...]:
        """Orders as they stand, by decision session; `open_only` leaves out those that nothing can follow."""
        from engine.domain.order import OrderState, is_final
        from engine.journal.book_rows import order_of

        final = [state.value for state in OrderState if is_final(state)] if open_only else []
        still = [f"state NOT IN ({', '.join('?' * len(final))})"] if open_only else []
        where, values = _where({"run": run, "symbol": symbol, "session": session}, *still)
        return self._all(order_of, f"SELECT * FROM orders{where} ORDER BY rowid", *values, *final)

    def order_moves(self, order_id: str) -> tuple[OrderMove, ...]:
        """The life of an order."""
        from engine.journal.book_rows import move_of

        return self._all(move_of, "SELECT * FROM order_moves WHERE order_id = ? ORDER BY seq", order_id)

    def fills(self, run: str | None = None, order_id: str | None = None, part: str | None = None) -> tuple[Fill, ...]:
        """Trades."""
        from engine.journal.book_rows import fill_of

        where, values = _where({"run": run, "order_id": order_id, "part": part})
        return self._all(fill_of, f"SELECT * FROM fills{where} ORDER BY seq", *values)

    def cash_flows(self, run: str | None = None, part: str | None = None) -> tuple[CashFlow, ...]:
        """Cash that moved without a trade."""
        from engine.journal.book_rows import cash_flow_of

        where, values = _where({"run": run, "part": part})
        return self._all(cash_flow_of, f"SELECT * FROM cash_flows{where} ORDER BY seq", *values)

    def equity(self, run: str | None = None, part: str | None = None) -> tuple[EquityPoint, ...]:
        """The books at each close, positions and prices included."""
        from engine.journal.book_rows import equity_of, holding_of

        where, values = _where({"run": run, "part": part})
        points = self._rows(f"SELECT * FROM equity{where} ORDER BY rowid", *values)
        where, values = _where({"run": run})
        held: dict[tuple[str, str], list[Holding]] = {}
        for row in self._rows(f"SELECT * FROM positions{where} ORDER BY rowid", *values):
            held.setdefault((row["run"], row["session"]), []).append(holding_of(row))
        return tuple(equity_of(row, held.get((row["run"], row["session"]), ())) for row in points)

    def holdings(
        self, run: str | None = None, symbol: str | None = None, first: date | None = None, last: date | None = None
    ) -> tuple[Holding, ...]:
        """Every price that the books knew at closes, with what was held (0 where flat)."""
        from engine.journal.book_rows import holding_of

        where, values = _where({"run": run, "symbol": symbol, "session >=": first, "session <=": last})
        return self._all(holding_of, f"SELECT * FROM positions{where} ORDER BY rowid", *values)

    def positions(self, run: str | None = None) -> tuple[Holding, ...]:
        """What was held at the last close."""
        where, values = _where({"run": run})
        found = self._rows(f"SELECT run, session FROM equity{where} ORDER BY session DESC, rowid DESC LIMIT 1", *values)
        if not found:
            return ()
        from datetime import date

        session = date.fromisoformat(found[0]["session"])
        held = self.holdings(found[0]["run"], first=session, last=session)
        return tuple(holding for holding in held if holding.quantity)

    # A broker's account

    def account(self) -> BoundAccount | None:
        """The account that the desk trades in, or None for one that never had any."""
        from engine.journal.account_rows import bound_of

        found = self._all(bound_of, "SELECT * FROM accounts ORDER BY seq DESC LIMIT 1")
        return found[0] if found else None

    def broker_orders(self) -> dict[str, str]:
        """Our ids of orders by the broker's."""
        return {row["broker_id"]: row["order_id"] for row in self._rows("SELECT * FROM broker_orders")}

    def orders_sent(self) -> frozenset[str]:
        """The ids of orders that were ever handed over, or were about to be."""
        return frozenset(
            r["order_id"] for r in self._rows("SELECT order_id FROM order_moves WHERE state = 'submitting'")
        )

    def activities(self) -> dict[str, datetime]:
        """The lines of the account's history that are known: time by id."""
        from datetime import datetime

        return {row["id"]: datetime.fromisoformat(row["time"]) for row in self._rows("SELECT id, time FROM activities")}

    def adoptions(self) -> tuple[Adoption, ...]:
        """Differences in which a person took the broker's side."""
        from engine.journal.account_rows import adoption_of

        return self._all(adoption_of, "SELECT * FROM adoptions ORDER BY seq")

    # How rows come from the file

    def _chart(self, fingerprint: str) -> ChartSpec:
        from engine.journal.decision_rows import chart_of

        found = self._rows("SELECT json, packed FROM charts WHERE fingerprint = ?", fingerprint)
        if not found:
            raise MalformedData(f"the journal {self.path} lacks the chart {fingerprint}: restore a backup")
        return chart_of(found[0])

    def _all(self, build: Callable[[Any], T], sql: str, *values: Any) -> tuple[T, ...]:
        return tuple(build(row) for row in self._rows(sql, *values))

    def _rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        try:
            found: list[dict[str, Any]] = self._connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise in_words(error, self.path) from error
        return found


def _of_kinds(kinds: tuple[type[Command], ...]) -> str:
    return f"type IN ({', '.join('?' * len(kinds))})"


def _names(kinds: tuple[type[Command], ...]) -> tuple[str, ...]:
    return tuple(kind.__name__ for kind in kinds)


def _where(narrow: Mapping[str, Any], *more: str) -> tuple[str, list[Any]]:
    """A WHERE clause over the conditions that are not None (`column` or `column operator` to value), and its values;
    what `more` says comes last and brings its values itself."""
    given = {column: value for column, value in narrow.items() if value is not None}
    terms = [f"{column} ?" if " " in column else f"{column} = ?" for column in given] + list(more)
    values = [value if isinstance(value, (str, int)) else str(value) for value in given.values()]
    return (f" WHERE {' AND '.join(terms)}" if terms else ""), values
