"""The bench of memory: the same window without memory, with recall, with an oracle, with each layer switched off and
with false memories; every arm is paired with another over the same sessions."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from engine.app.bench.jobs import Job, agents_of, job_market
from engine.app.memory import memory_errors, remembers
from engine.app.models.models import build_models
from engine.app.records.trial_index import check_trial_index, count_result
from engine.app.research.agent_run import AgentRun
from engine.app.research.run_spec import Stop, check_spec, new_run_id, settled
from engine.conventions.catalog import convention
from engine.domain.decision import Action
from engine.domain.model_call import AnswerRecord
from engine.domain.run import Result, RunSpec, TrialKind
from engine.errors import UsageError
from engine.lab.backtest import run_agents
from engine.lab.memory_arms import WITHOUT, Arm, Citations, StudiedMemory, arms, changed, poison_of, unresolved
from engine.lab.window import desk_calendar_of, windows
from engine.market.as_of import Market
from engine.ports import Calendar
from engine.reports.documents import row_json
from engine.reports.documents.row_json import Row
from engine.reports.performance import Measure
from engine.services import Services
from engine.session.cost_meter import CostMeter
from memory.in_memory_store import InMemoryStore
from memory.recall import LayeredMemory

SCHEMA = 1
SHARE = 0.2
"""The share of the news beside which a false memory is written, in the first half of the window."""

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Played:
    """An arm that was played."""

    arm: Arm
    result: Result
    memory: StudiedMemory | None
    citations: Citations


def studied_specs(services: Services, spec: RunSpec, presets: Sequence[str]) -> tuple[RunSpec, ...]:
    """The run of each preset, completed and checked. Raises UsageError for one without memory and what `check_spec`
    and `settled` raise."""
    check_trial_index()
    specs = tuple(settled(services, replace(spec, preset=name)) for name in presets)
    for one in specs:
        check_spec(one, services.clock.now())
        if not remembers(agents_of(one)):
            raise UsageError(f"bench memory: preset {one.preset} has no memory to be studied")
    return specs


def jobs_of(specs: Sequence[RunSpec]) -> Sequence[Job]:
    """The runs as a forecast counts them."""
    return [
        Job(_without_memory(spec) if arm.name == WITHOUT else spec, None, f"{spec.preset}, {arm.name}")
        for spec in specs
        for arm in (*_arms(spec, (0.0, 0.0)), Arm(name="oracle"))
    ]


def run_memory_bench(
    services: Services, specs: Sequence[RunSpec], report: Report = lambda text: None, stop: Stop = lambda: False
) -> Row:
    """Play all arms of every preset; the document of what came of them. After `stop` the presets that are done stay.
    Raises what a run raises."""
    done: list[Row] = []
    market = job_market(services, Job(specs[0], None, "memory"))
    for spec in specs:
        played = _study(services, spec, market, report, stop)
        if played is None:
            break
        done.append(played)
    spec = specs[0]
    return {
        "schema": SCHEMA,
        "bench": "memory",
        "symbols": list(spec.symbols),
        "first_session": spec.first.isoformat(),
        "last_session": spec.last.isoformat(),
        "warm_up_from": None if spec.warm_up_from is None else spec.warm_up_from.isoformat(),
        "seed": spec.seed,
        "presets": done,
        "interrupted": f"interrupted: {len(done)} of {len(specs)} presets are done" if len(done) < len(specs) else "",
    }


def _study(services: Services, spec: RunSpec, market: Market, report: Report, stop: Stop) -> Row | None:
    calendar = desk_calendar_of(market, spec.symbols)
    _, sessions = windows(spec, calendar)
    first = calendar.number(sessions[0]) - 1
    half = (float(first), float(first + len(sessions) // 2))
    played: dict[str, _Played] = {}
    meter = CostMeter(spec.model or services.config.models.default)
    for arm in _in_turn(_arms(spec, half), played):
        report(f"{spec.preset}: {arm.name}")
        one = _play(services, spec, market, arm, stop)
        if one.result.interrupted:
            return None
        count_result(TrialKind.BENCH, one.result, services.clock.now())
        if one.result.model is not None:
            meter.add(one.result.model)
        played[arm.name] = one
    return _studied(services, spec, played, calendar, meter)


def _arms(spec: RunSpec, poisoned: tuple[float, float]) -> Iterator[Arm]:
    return arms((layer.value for layer in agents_of(spec).memory.constants.layers), SHARE, poisoned)


def _in_turn(planned: Iterator[Arm], played: dict[str, _Played]) -> Iterator[Arm]:
    """The arms in order; the oracle's goes after the run with recall, which tells what proves pivotal."""
    for arm in planned:
        yield arm
        if arm.name == "recall":
            memory = played["recall"].memory
            assert memory is not None
            yield Arm(name="oracle", against=WITHOUT, pivotal=memory.paid())


def _without_memory(spec: RunSpec) -> RunSpec:
    return replace(spec, without=(*spec.without, "memory"))


def _play(services: Services, spec: RunSpec, market: Market, arm: Arm, stop: Stop) -> _Played:
    if arm.name == WITHOUT:
        spec = _without_memory(spec)
    spec = replace(spec, run=new_run_id("bench", services.clock.now()))
    preset = agents_of(spec)
    run = AgentRun(
        services=services,
        spec=spec,
        preset=preset,
        models=build_models(services, preset, spec.model, recorded=spec.models),
        market=market,
        stop=stop,
    )
    return asyncio.run(_played(run, arm))


async def _played(run: AgentRun, arm: Arm) -> _Played:
    meter, citations = CostMeter(run.models.spec), Citations(run.preset.decider.name)
    async with aclosing(run.models):
        with (
            memory_errors(),
            run.services.open_embedder(run.spec.embedder, meter.add, limit=run.services.limit) as embedder,
        ):
            memory = None
            if remembers(run.preset):
                layered = LayeredMemory(InMemoryStore(embedder.dimension), embedder, run.preset.memory.constants)
                memory = StudiedMemory(layered, run.calendar, arm)

            def noted(record: AnswerRecord) -> None:
                meter.count(record)
                citations.note(record)

            result = await run_agents(run.context(memory, noted))
    citations.settle(memory)
    return _Played(arm, replace(result, model=meter.use), memory, citations)


def _studied(
    services: Services, spec: RunSpec, played: dict[str, _Played], calendar: Calendar, meter: CostMeter
) -> Row:
    """One preset: its arms in the order in which they were played, the memories that were paid for in the run with
    recall, the course of false memories, citations of memories that were not given, figures that the inputs do not
    hold, and recollections that stem from after their decision."""
    exchange = services.config.exchanges.of_portfolio(spec.symbols)
    measure = Measure(convention("desk"), spec.symbols, exchange, services.config.metrics.risk_free)
    recall, poisoned, use = played["recall"], played["poisoned"], meter.use
    assert recall.memory is not None and poisoned.memory is not None
    poison = poison_of(poisoned.memory, poisoned.result.test, recall.result.test, calendar)
    quoted, voiced = unresolved(recall.result.test.opinions)
    later = sum(one.memory.later for one in played.values() if one.memory is not None)
    cited = {"cited": recall.citations.cited, "not_held": recall.citations.not_held}
    return {
        "preset": spec.preset or "",
        "sessions": len(recall.result.test.equity),
        "pivotal": len(played["oracle"].arm.pivotal or {}),
        "model": use.spec,
        **row_json.fields(use, "calls", "abstentions", "refusals"),
        **row_json.fields(use.usage, "input_tokens", "output_tokens"),
        "cost": None if use.cost is None else str(use.cost),
        "arms": [_arm(one, played, measure) for one in played.values()],
        "poison": row_json.fields(poison),
        "confabulation": {**cited, "opinions": voiced, "unresolved": quoted},
        "point_in_time": {"recalled": recall.memory.recalled, "later": later},
    }


def _arm(one: _Played, played: dict[str, _Played], measure: Measure) -> Row:
    """One arm: figures of its book over the test, the difference of its total return to that of the arm that it is
    paired with (95 % interval over the same sessions), the actions that were advised, before limits, the opinions that
    differ between the two, and the mean number of memories that an analysis was given."""
    other = played.get(one.arm.against)
    test = one.result.test
    figures = measure.of_run(test, None if other is None else other.result.test)
    given = () if one.memory is None else tuple(one.memory.given.values())
    counted = Counter(opinion.action for opinion in test.opinions)
    return {
        "name": one.arm.name,
        "against": one.arm.against,
        "total_return": figures["total_return"],
        "sharpe": figures["sharpe"],
        "difference": figures["excess_return"],
        "low": figures["excess_low"],
        "high": figures["excess_high"],
        "opinions": {action.value: counted[action] for action in Action},
        "changed": 0 if other is None else changed(test, other.result.test)[0],
        "memories": sum(map(len, given)) / len(given) if given else 0.0,
    }
