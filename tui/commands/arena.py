"""`paperdesk arena` (research): play a closed market made of agents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from tui.commands.options import json_option
from tui.console import show_document, standard_output
from tui.invocation import Invocation, desk_options
from tui.plain_text import table

if TYPE_CHECKING:
    from engine.app.arena import ArenaSpec
    from engine.services import Services


@click.command("arena")
@click.option("--preset", metavar="NAME|FILE", help="Market: paper (default), paper-program, ssw, constant, or a file.")
@click.option(
    "--agents", metavar="NAME|FILE", help="Table: nine (default), controls, duel, or a TOML file of [[agents]]."
)
@click.option("--days", type=click.IntRange(1, 10_000), metavar="N", help="Days (default: the preset's).")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed of everything that is drawn (default: 0).")
@click.option("--model", metavar="SPEC", help="Model of every persona; replay: recorded answers alone.")
@click.option("--baseline", metavar="SPEC", help="Model of a duel's other agents, whose scores are 100.")
@click.option("--repeats", type=click.IntRange(1, 999), metavar="N", help="Arenas with the next seeds, seats rotated.")
@click.option("--jobs", type=click.IntRange(1, 64), default=1, metavar="N", help="Repeats at a time (default: 1).")
@click.option("--budget", type=click.FloatRange(0), metavar="USD", help="Most that this call may cost.")
@click.option("--resume", metavar="RUN", help="Goes on with an arena that was stopped: nothing is asked twice.")
@click.option("--without-rumour", "unsaid", multiple=True, metavar="ID", help="Message that nobody reads (repeatable).")
@click.option("--swap-seats", is_flag=True, help="The seats in reverse order.")
@click.option("--yes", is_flag=True, help="Do not ask where the models' forecast is above budget.ask_above.")
@json_option
@desk_options
def arena_command(
    *,
    invocation: Invocation,
    preset: str | None,
    agents: str | None,
    days: int | None,
    seed: int | None,
    model: str | None,
    baseline: str | None,
    repeats: int | None,
    jobs: int,
    budget: float | None,
    resume: str | None,
    unsaid: tuple[str, ...],
    swap_seats: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Plays a closed market whose prices the agents make: personas that ask a model, and rules beside them.

    Every day they chat, analyse, send orders in several rounds and write their next strategy. Equal seeds and answers
    give the same tape: the same arena without one rumour, or with the seats swapped, shows what that was worth. It is
    play money, not investment advice. --run names the new arena.

    \b
    Examples:
      paperdesk arena --days 5
      paperdesk arena --preset constant --agents controls --seed 3 --json
      paperdesk arena --agents controls --repeats 20 --jobs 2
      paperdesk arena --agents duel --model openai:gpt-4o --baseline groq:llama-3 --days 10 --repeats 5
      paperdesk arena --resume arena-20261120-120000-ab12 --model replay
    """
    from engine.app.arena import arena_forecast, run_arena
    from engine.app.arena_repeats import run_repeats
    from engine.errors import Interrupted
    from tui.agreement import agreed_to
    from tui.interruption import interruptible

    services = invocation.services()
    given: dict[str, Any] = {"preset": preset, "agents": agents, "days": days, "seed": seed, "model": model}
    given |= {"unsaid": unsaid or None, "swapped": swap_seats or None, "baseline": baseline, "repeats": repeats}
    changes = {name: value for name, value in given.items() if value is not None}
    spec = _spec(services, invocation.run, resume, changes)
    if model != "replay" and not agreed_to(services, arena_forecast(services, spec), yes):
        click.echo("nothing was run", err=True)
        return
    replay, most = model == "replay", None if budget is None else Decimal(str(budget))
    with interruptible() as stop:
        if spec.repeats > 1:
            document = run_repeats(services, spec, jobs=jobs, replay=replay, budget=most, stop=stop)
        else:
            document = run_arena(services, spec, replay=replay, budget=most, stop=stop)
    if document is not None:
        show_document(document, as_json, lambda: document_lines(document))
    if document is None or document["interrupted"]:
        raise Interrupted(f"interrupted, what is done is kept; `paperdesk arena --resume {spec.run}` goes on")


def _spec(services: Services, run: str | None, resume: str | None, changes: Mapping[str, Any]) -> ArenaSpec:
    """The arena that is meant: a new one, or the one to be resumed."""
    from engine.app.arena import ArenaSpec, load_spec
    from engine.app.run_spec import new_run_id

    if resume is None:
        return ArenaSpec(run=run or new_run_id("arena", services.clock.now()), **changes)
    if set(changes) - {"model"}:
        raise click.UsageError("--resume goes on with an arena as it was begun: leave out what would change it")
    return load_spec(resume)


def document_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """An arena, or its repeats, as text."""
    return repeats_lines(document) if "repeats" in document else arena_lines(document)


def repeats_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Repeats of an arena as text: agents by mean return, each beside the others of its repeats."""
    console = standard_output()
    done = len(document["runs"])
    yield console.bold(f"Arena {document['run']}") + "   play money. not investment advice"
    seeds = f"seeds {document['runs'][0]['seed']} to {document['runs'][-1]['seed']}, seats rotated"
    yield f"Market {document['preset']}, {document['days']} days, {done} of {document['repeats']} repeats, {seeds}"
    yield ""
    ranked = sorted(document["agents"], key=lambda one: -(one["mean_return"] or 0.0))
    rows = [
        (
            one["name"],
            _percent(one["mean_return"]),
            _ratio(one["mean_sharpe"]),
            f"{one['mean_rank']:.1f}",
            _percent(one["difference"]["mean"]),
            _between(one["difference"]),
            str(one["difference"]["repeats_needed"] or "-"),
            *((_score(one["relative"]["return"]), _score(one["relative"]["sharpe"])) if one["relative"] else ("", "")),
            one["kind"],
        )
        for one in ranked
    ]
    numbers = ("RETURN", "SHARPE", "RANK", "TO OTHERS", "95 %", "REPEATS", "OF 100", "SHARPE OF 100")
    yield from table(("AGENT", *numbers, "KIND"), rows, right=numbers, width=console.width)
    yield ""
    yield "TO OTHERS: mean difference to the other agents of the same repeat; REPEATS: how many it takes to see it."
    if any(one["relative"] for one in ranked):
        yield "OF 100: in percent of the baseline's agents; - where they did not earn anything."
    trend = _percent(document["market"]["average_trend"])
    yield f"Prices      average trend {trend}, {document['model']['calls']} calls"
    yield f"Each        paperdesk arena --resume {document['runs'][0]['run']} --model replay"


def _between(paired: Mapping[str, float | None]) -> str:
    return "-" if paired["low"] is None else f"{_percent(paired['low'])} to {_percent(paired['high'])}"


def _score(figure: float | None) -> str:
    return "-" if figure is None else f"{figure:.2f}"


def arena_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """An arena as text: agents by wealth, stocks, figures of the market."""
    console = standard_output()
    yield console.bold(f"Arena {document['run']}") + "   play money. not investment advice"
    yield f"Market {document['preset']}, {document['days']} days, seed {document['seed']}"
    yield ""
    ranked = sorted(document["agents"], key=lambda one: -Decimal(one["wealth"]))
    rows = [
        (
            agent["name"],
            agent["kind"],
            f"{Decimal(agent['wealth']):,.2f}",
            _percent(agent["metrics"]["total_return"]),
            _ratio(agent["metrics"]["sharpe"]),
            _percent(agent["metrics"]["win_rate"]),
            _score(agent["relative"]["return"]) if agent["relative"] else "",
            " ".join(f"{name} {count}" for name, count in agent["holdings"].items() if count) or "-",
        )
        for agent in ranked
    ]
    yield from table(
        ("AGENT", "KIND", "WEALTH", "RETURN", "SHARPE", "WON", "OF 100", "SHARES"),
        rows,
        right=("WEALTH", "RETURN", "SHARPE", "WON", "OF 100"),
        width=console.width,
    )
    yield ""
    stocks = [
        (
            stock["name"],
            f"{stock['shares']:,}",
            f"{Decimal(stock['first_price']):,.2f}",
            f"{Decimal(stock['last_price']):,.2f}",
            "-" if stock["fundamental"] is None else f"{Decimal(stock['fundamental']):,.2f}",
        )
        for stock in document["stocks"]
    ]
    yield from table(("STOCK", "SHARES", "FIRST", "LAST", "VALUE"), stocks, right=("SHARES", "FIRST", "LAST", "VALUE"))
    yield ""
    market = document["market"]
    yield f"Trades      {len(document['trades'])}, turnover {market['turnover']:.2f}"
    trend, sharpe = _percent(market["average_trend"]), _ratio(market["index_sharpe"])
    yield f"Prices      average trend {trend}, index Sharpe {sharpe}, volatility {_percent(market['volatility'])}"
    if market["deviation"] is not None:
        bubble = f"{market['deviation']:.3f} absolute, {market['relative_deviation']:+.3f} signed"
        yield f"Deviation   from the fundamental value {bubble}"
    refused = sum(sum(agent["refused"].values()) for agent in document["agents"])
    silent = sum(sum(agent["abstentions"].values()) for agent in document["agents"])
    yield f"Orders      {refused} refused, {silent} questions without an answer"
    invented = sum(one["truth"] is False for one in document["messages"])
    yield f"Messages    {len(document['messages'])}, of them {invented} invented"
    model = document["model"]
    cost = "unknown cost" if model["cost"] is None else f"${Decimal(model['cost']):,.2f}"
    yield f"Model       {model['spec'] or 'none'}: {model['calls']} calls, {cost}"
    yield f"Again       paperdesk arena --resume {document['run']} --model replay"


def _percent(figure: float | None) -> str:
    return "-" if figure is None else f"{figure * 100:+.2f} %"


def _ratio(figure: float | None) -> str:
    return "-" if figure is None else f"{figure:.2f}"
