"""`paperdesk models` (data): show what each configured model endpoint can do and costs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from tui.console import Console, show, standard_output
from tui.invocation import Invocation, desk_options

if TYPE_CHECKING:
    from engine.app.models import AgentModel
    from engine.config import Config
    from engine.domain.model_call import Capabilities
    from engine.domain.model_price import ModelPrice, PriceTable
    from engine.domain.model_spec import ModelSpec
    from engine.errors import PaperdeskError

    Asked = Mapping[ModelSpec, Capabilities | PaperdeskError]


@click.command("models")
@click.option("--check", "ask", is_flag=True, help="Asks each configured model two tiny questions (they cost little).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@desk_options
def command(invocation: Invocation, ask: bool, as_json: bool) -> int:
    """Says which model answers each agent, whether its key is there, what it can see and what it costs.

    A model without a price in the table has an unknown cost, never none. With --check the exit code is 1 where a model
    did not answer.

    \b
    Examples:
      paperdesk models
      paperdesk models --check --json
    """
    import asyncio

    from engine.app.models import agent_models, probe_models

    services = invocation.services()
    config, prices = services.config, services.models.prices()
    agents = agent_models(services, prices)
    asked: Asked = asyncio.run(probe_models(services, [one.spec for one in agents])) if ask else {}
    if as_json:
        show(json.dumps(_document(config, agents, prices, asked if ask else None), indent=2, allow_nan=False))
    else:
        show("\n".join(_lines(config, agents, prices, asked if ask else None, standard_output())))
    return 0 if all(answered(result) for result in asked.values()) else 1


def answered(result: Capabilities | PaperdeskError) -> bool:
    """Whether a model that was asked has answered."""
    return not isinstance(result, Exception) and result.failure is None


def in_words(result: Capabilities | PaperdeskError) -> str:
    """What asking a model came to."""
    if isinstance(result, Exception):
        return str(result)
    if result.failure is not None:
        return f"{result.failure.kind.value}: {result.failure.detail}"
    can = [
        "enforces schemas" if result.enforces_schema else "takes schemas in words only",
        "sees pictures" if result.sees else "sees no pictures",
        "streams" if result.streams else "does not stream",
        "counts tokens" if result.reports_usage else "counts no tokens",
    ]
    return f"answered in {result.latency:.1f} s: {', '.join(can)}"


def _document(config: Config, agents: Sequence[AgentModel], prices: PriceTable, asked: Asked | None) -> dict[str, Any]:
    return {
        "schema": 1,
        "replay": config.models.replay,
        "agents": {
            one.agent: {
                "spec": str(one.spec),
                "vision": one.sees,
                "key": one.key_variable or None,
                "key_present": None if not one.key_variable else not one.key_missing,
                "price_known": one.price is not None or not one.spec.model,
                "active": one.active,
                "reads": list(one.reads),
                "waits_for": list(one.waits_for),
                **one.settings.model_dump(mode="json", exclude={"model"}),
            }
            for one in agents
        },
        "endpoints": {name: endpoint.model_dump(mode="json") for name, endpoint in sorted(config.endpoints.items())},
        "prices": {
            "as_of": str(prices.as_of),
            "models": {f"{provider}:{model}": _rates(prices, provider, model) for provider, model in prices.models()},
        },
        "check": None if asked is None else {str(spec): _capabilities(result) for spec, result in asked.items()},
    }


def _rates(prices: PriceTable, provider: str, model: str) -> dict[str, Any]:
    price = prices.find(provider, model)
    assert price is not None  # it was named by the table itself
    return {
        "input": str(price.rates.input),
        "cached_input": str(price.rates.cached_input),
        "cache_write": str(price.rates.cache_write),
        "output": str(price.rates.output),
        "training_cutoff": price.training_cutoff or None,
    }


def _capabilities(result: Capabilities | PaperdeskError) -> dict[str, Any]:
    if isinstance(result, Exception):
        return {"answered": False, "problem": str(result)}
    if result.failure is not None:
        return {"answered": False, "problem": in_words(result)}
    return {
        "answered": True,
        "enforces_schema": result.enforces_schema,
        "vision": result.sees,
        "streams": result.streams,
        "reports_usage": result.reports_usage,
        "latency": result.latency,
    }


def _lines(
    config: Config, agents: Sequence[AgentModel], prices: PriceTable, asked: Asked | None, console: Console
) -> Iterator[str]:
    from tui.text_table import facts, table

    yield console.bold("Who answers whom") + console.dim(f"   recorded answers: {config.models.replay}")
    rows = [(one.agent, str(one.spec), _key(one), _sees(one), _price(one.spec, one.price)) for one in agents]
    yield from table(("AGENT", "MODEL", "KEY", "CHARTS", "PRICE IN/OUT"), rows, (), console.width)
    if config.endpoints:
        yield ""
        yield console.bold("Endpoints")
        for name, endpoint in sorted(config.endpoints.items()):
            sight = "sees pictures" if endpoint.vision else "sees no pictures"
            limits = f"{endpoint.concurrency} at a time, {endpoint.requests_per_minute} a minute"
            yield f"{name}: {endpoint.base_url}, {sight}, {limits}"
    if asked is not None:
        yield ""
        yield console.bold("Asked just now")
        yield from facts([(f"{spec}  ", in_words(result)) for spec, result in asked.items()], console.width, 28)
        if not asked:
            yield "nobody: the rules answer without a service"
    yield ""
    yield console.bold(f"Prices of {prices.as_of}") + console.dim("   USD per million tokens")
    rows = []
    for provider, model in prices.models():
        rates = _rates(prices, provider, model)
        known = f"until {rates['training_cutoff']}" if rates["training_cutoff"] else ""
        rows.append((f"{provider}:{model}", rates["input"], rates["cached_input"], rates["output"], known))
    yield from table(("MODEL", "IN", "CACHED", "OUT", "TRAINED"), rows, {"IN", "CACHED", "OUT"}, console.width)


def _key(one: AgentModel) -> str:
    if not one.key_variable:
        return "none needed"
    return f"{one.key_variable} {'missing' if one.key_missing else 'present'}"


def _sees(one: AgentModel) -> str:
    return "as pictures" if one.sees and one.spec.model else "as figures"


def _price(spec: ModelSpec, price: ModelPrice | None) -> str:
    if not spec.model:
        return "free"
    return "unknown" if price is None else f"{price.rates.input} / {price.rates.output}"
