"""`paperdesk arena` (research): play a closed market made of agents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from engine.errors import Interrupted
from tui.commands.options import DOLLARS, PROCESSES, abstain_option
from tui.settings.invocation import Invocation, command
from tui.shell.cost_confirmation import agree, yes_option
from tui.shell.interruption import interruptible
from tui.text.console import show_document

if TYPE_CHECKING:
    from engine.app.arena.record import ArenaSpec
    from engine.services import Services


@command("arena")
@click.option("--preset", metavar="NAME|FILE", help="Market: paper (default), paper-program, ssw, constant, or a file.")
@click.option("--agents", metavar="NAME|FILE", help="Table: nine (default), controls, presets, duel, or a TOML file.")
@click.option("--days", type=click.IntRange(1, 10_000), metavar="N", help="Number of days (default: the preset's).")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Random seed (default: 0).")
@click.option("--model", metavar="SPEC", help="Model of every persona; replay: recorded answers only.")
@click.option("--baseline", metavar="SPEC", help="Model of a duel's other agents, scored 100.")
@click.option("--repeats", type=click.IntRange(1, 999), metavar="N", help="Arenas, by successive seeds, seats rotated.")
@click.option("--jobs", **PROCESSES, help="Parallel repeats.")
@click.option("--budget", type=DOLLARS, metavar="USD", help="Maximum model cost of this call.")
@abstain_option
@click.option("--resume", metavar="RUN", help="Resume a stopped arena; answered questions are not asked again.")
@click.option("--without-rumour", "unsaid", multiple=True, metavar="ID", help="Message to suppress (repeatable).")
@click.option("--swap-seats", "swapped", is_flag=True, help="Reverse the seats.")
@yes_option
def arena_command(
    *,
    invocation: Invocation,
    jobs: int,
    budget: Decimal | None,
    abstain_limit: int,
    resume: str | None,
    yes: bool,
    **settings: Any,
) -> None:
    """Plays a closed market whose prices the agents make: personas driven by a model, and rule-based agents.

    Every day they chat, analyse, send orders in several rounds and revise their strategy. The same seed and answers
    give the same tape, so an arena without one rumour, or with swapped seats, isolates its effect. Play money, not
    investment advice. Two days in a row without a usable order from a model stop it (75); --resume asks again. --run
    names the new arena.

    \b
    Examples:
      paperdesk arena --days 5
      paperdesk arena --preset constant --agents controls --seed 3 --json
      paperdesk arena --agents controls --repeats 20 --jobs 2
      paperdesk arena --agents duel --model openai:gpt-4o --baseline groq:llama-3 --days 10 --repeats 5
      paperdesk arena --resume arena-20261120-120000-ab12 --model replay
    """
    from engine.app.arena.arena import arena_forecast, run_arena, run_repeats
    from tui.text.arena_text import arena_lines

    services = replace(invocation.services(), abstain_limit=abstain_limit)
    changes = {name: value for name, value in settings.items() if value not in (None, ()) and value is not False}
    spec = _spec(services, invocation.run, resume, changes)
    replay = changes.get("model") == "replay"
    if jobs > 1 and spec.repeats == 1:
        raise click.UsageError("--jobs runs repeats in parallel, and this is a single arena: give --repeats N with it")
    if not replay:
        agree(services, arena_forecast(services, spec), yes, budget=budget)
    with interruptible() as stop:
        if spec.repeats > 1:
            document = run_repeats(services, spec, jobs=jobs, replay=replay, budget=budget, stop=stop)
        else:
            document = run_arena(services, spec, replay=replay, budget=budget, stop=stop)
    if document is not None:
        show_document(document, lambda: arena_lines(document))
    if document is None or document["interrupted"]:
        raise Interrupted(f"interrupted; finished work is kept, `paperdesk arena --resume {spec.run}` continues")


def _spec(services: Services, run: str | None, resume: str | None, changes: Mapping[str, Any]) -> ArenaSpec:
    """The arena that is meant: a new one, or the one to be resumed."""
    from engine.app.arena.record import ArenaSpec, check_files, check_new, load_spec
    from engine.app.research.run_spec import new_run_id

    if resume is None:
        spec = ArenaSpec(run=run or new_run_id("arena", services.clock.now()), **changes)
        check_new(spec)
        return spec
    if run is not None or set(changes) - {"model"} or changes.get("model", "replay") != "replay":
        raise click.UsageError(
            "--resume continues an arena with its original settings: the only one that can change is --model replay"
        )
    spec = load_spec(resume)
    check_files(spec)
    return spec
