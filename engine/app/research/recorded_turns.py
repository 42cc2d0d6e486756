"""The inputs of recorded decisions, read again: the turn, the data and the preset that they were taken with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date

from engine.app.research.market_data import load_macro, load_run
from engine.app.research.run_spec import preset_of, with_costs
from engine.domain.briefing import Briefing
from engine.domain.decision import DecisionKey
from engine.domain.market import Symbol
from engine.domain.portfolio import Portfolio
from engine.domain.run import RunSpec
from engine.errors import MissingData, StaleData
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.lab.recorded_turn import RecordedTurn, backtest_turn, desk_turn
from engine.lab.window import on_convention
from engine.market.as_of import Market, load_market
from engine.preset import Preset, briefed, load_preset
from engine.services import Services
from engine.session.recorded_inputs import Inputs, read_inputs


def original_preset(services: Services, run: RunEntry, briefing: Briefing | None = None) -> Preset:
    """The preset that a run decided by; a desk's is the configured one, unless that has another name by now, with the
    briefing of the run."""
    if run.spec is not None:
        kept = preset_of(run.spec)
        assert kept is not None  # a rule strategy decides nothing again
        return kept
    configured = load_preset(services.config.desk.preset)
    return briefed(configured if configured.name == run.name else load_preset(run.name), briefing)


@dataclass(frozen=True, slots=True)
class RecordedTurns:
    """The turns of a journal's decisions, each on its run's own data; a backtest's market is loaded once."""

    services: Services
    reader: JournalReader
    _markets: dict[str, Market] = field(default_factory=dict)

    async def of(self, key: DecisionKey) -> RecordedTurn:
        """The turn of a decision. Raises MissingData where the journal lacks its books or inputs, and what the source
        raises."""
        services, reader = self.services, self.reader
        run, session = reader.run(key.run), key.session
        if run.spec is not None:
            calendar, (rules, _) = services.desk_calendar(run.spec.symbols), with_costs(run.spec, services.config)
            return backtest_turn(
                reader,
                run,
                run.spec,
                session,
                market=await self._market(run.id, run.spec),
                calendar=calendar,
                rules=rules,
                desk=services.desk,
            )
        calendar = services.desk_calendar(run.symbols)
        inputs = read_inputs(recorded_inputs(reader, run.id, key.cycle), services.calendar_for)
        return desk_turn(reader, run, session, cycle=key.cycle, desk=services.desk, inputs=inputs, calendar=calendar)

    async def _market(self, run: str, spec: RunSpec) -> Market:
        if run not in self._markets:
            self._markets[run] = on_convention(spec, await load_run(self.services, spec))
        return self._markets[run]


def recorded_inputs(reader: JournalReader, run: str, cycle: int) -> Inputs:
    """The inputs of a desk's run in a cycle, as its journal has them. Raises MissingData where it has none."""
    inputs = reader.inputs(run, cycle)
    if not inputs:
        raise MissingData(f"{run} kept no inputs of cycle {cycle}: nothing can be decided again")
    return inputs


async def present_data(services: Services, symbols: Sequence[Symbol], portfolio: Portfolio, session: date) -> Market:
    """The present data of the symbols that were decided or held. Raises what the source raises, and StaleData where
    bars do not reach the session."""
    source = services.open_source(services.data, session)
    macro = await load_macro(services, services.data, session)
    together = tuple(dict.fromkeys((*symbols, *portfolio.positions)))
    market = await load_market(
        source, source, source, together, services.calendar_for, macro=macro, commentary=await source.commentary()
    )
    for symbol in symbols:
        history = market.histories[symbol]
        if not len(history) or history.session(-1) < session:
            raise StaleData(f"{symbol}: its bars do not reach {session}, when it was decided: fetch them again")
    return market
