"""Notes on the models of a run: what they were trained on, the age of their prices; and the label of a run."""

from __future__ import annotations

from engine.agents.ask import agent_of
from engine.app.models.models import RecordedModels, chosen_models
from engine.domain.model_price import PriceTable
from engine.domain.model_spec import ModelKind, parse_model_spec, replays
from engine.domain.run import RunSpec
from engine.errors import UsageError
from engine.preset import Preset
from engine.services import Services

_THEN = ", then "
UNKNOWN = "unknown"


def model_notes(services: Services, preset: Preset, spec: RunSpec) -> list[str]:
    """Notes on the models of a backtest: those that were trained on its window, and prices that are old."""
    config, prices = services.config, services.models.prices()
    override = None if replays(spec.model) else spec.model
    notes = []
    specs = chosen_models(preset, config, override, recorded=spec.models)[1]
    active = {agent.name for agent in preset.active_agents}
    for text in dict.fromkeys(text for key, text in specs.items() if agent_of(key) in active):
        try:
            named = parse_model_spec(text, config.endpoints)
        except UsageError:  # a replay of a model whose endpoint is gone
            continue
        price = prices.find(named.provider, named.model)
        if price is not None and f"{spec.first:%Y-%m}" <= price.training_cutoff:
            extent = "lies" if f"{spec.last:%Y-%m}" <= price.training_cutoff else "begins"
            notes.append(
                f"the window {extent} within the training of {text}, which knows the world to "
                f"{price.training_cutoff}: what it decides may be remembered"
            )
    return [*notes, *price_notes(services, preset, spec.model, spec.models)]


def known_of(services: Services, specs: str) -> tuple[str, str]:
    """The training cut-off of models (`A, B`) and the date of their prices, as ModelUse has them."""
    prices, cutoffs, priced = services.models.prices(), dict[str, str](), ""
    for text in filter(None, specs.split(", ")):
        try:
            named = parse_model_spec(text, services.config.endpoints)
        except UsageError:  # of an endpoint that is gone
            cutoffs[text] = UNKNOWN
            continue
        if named.kind in (ModelKind.OFFLINE, ModelKind.REPLAY):
            continue
        price = prices.find(named.provider, named.model)
        cutoffs[text] = (price and price.training_cutoff) or UNKNOWN
        priced = str(prices.as_of) if prices.dated(named.provider, named.model) else priced
    if len(set(cutoffs.values())) > 1:
        return ", ".join(f"{until} ({text})" for text, until in cutoffs.items()), priced
    return next(iter(cutoffs.values()), ""), priced


def price_notes(
    services: Services, preset: Preset, override: str | None = None, recorded: RecordedModels = ()
) -> list[str]:
    """A warning where the costs of a run would come from a price table that is old by now."""
    config, prices = services.config, services.models.prices()
    if replays(override):
        return []
    texts = chosen_models(preset, config, override, recorded=recorded)[1].values()
    specs = [parse_model_spec(text, config.endpoints) for text in texts]
    today = services.clock.now().date()
    return [stale_words(prices)] if any(prices.stale(one.provider, one.model, today) for one in specs) else []


def label_after(before: str, label: str) -> str:
    """The label of a run that goes on: every model that decides it; `before` is empty where nobody has yet."""
    known = before.split(_THEN) if before else []
    return before if label in known else _THEN.join((*known, label))


def stale_words(prices: PriceTable) -> str:
    """The warning about an old price table."""
    return (
        f"the price table is of {prices.as_of}: what models cost may have changed since; update Paperdesk, or set "
        "models.prices"
    )
