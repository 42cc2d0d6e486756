"""Checks of a desk's set-up and its models, as `paperdesk doctor` and `paperdesk models` print them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.domain.model_call import Capabilities, ModelPrice, ModelSpec, PriceTable
from engine.reports.documents import row_json
from engine.reports.documents.row_json import Row
from engine.settings.values import AgentSettings

if TYPE_CHECKING:
    from engine.settings.config import Config

SCHEMA = 1
OK, NOTE, FAIL = "ok", "note", "fail"

Probed = Mapping[ModelSpec, Capabilities]
"""The abilities of each model that was asked, or why it has not answered."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check; `state` is ok, note (worth knowing) or fail."""

    area: str
    name: str
    state: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentModel:
    """The model that answers an agent.

    agent: the agent's name.
    spec: the model.
    settings: how it is asked.
    key_variable: environment variable of its service's key, empty where none is needed.
    sees: whether it is shown charts.
    price: None where it is not known; the rules cost nothing.
    active: True where the desk's preset asks the agent.
    reads: sources of what it reads.
    waits_for: the other active agents whose answers it reads.
    """

    agent: str
    spec: ModelSpec
    settings: AgentSettings
    key_variable: str
    sees: bool
    price: ModelPrice | None
    active: bool
    reads: tuple[str, ...]
    waits_for: tuple[str, ...]

    @property
    def key_missing(self) -> bool:
        """True where its service needs a key that is not there."""
        return bool(self.key_variable) and not os.environ.get(self.key_variable)


def is_healthy(findings: Sequence[Finding]) -> bool:
    """True where no check failed."""
    return all(finding.state != FAIL for finding in findings)


def doctor_document(findings: Sequence[Finding]) -> Row:
    """Every finding, and whether all is well."""
    checks = [row_json.fields(finding, "area", "name", "state", "detail") for finding in findings]
    return {"schema": SCHEMA, "healthy": is_healthy(findings), "checks": checks}


def models_document(config: Config, agents: Sequence[AgentModel], prices: PriceTable, probed: Probed | None) -> Row:
    """The models of all agents, the endpoints, the price table, and the answers of the models where they were asked."""
    return {
        "schema": SCHEMA,
        "replay": config.models.replay,
        "agents": {
            one.agent: {
                "spec": str(one.spec),
                "vision": one.sees,
                "key": one.key_variable or None,
                "key_present": None if not one.key_variable else not one.key_missing,
                "price_known": one.price is not None or not one.spec.model,
                **row_json.fields(one, "active", "reads", "waits_for"),
                **one.settings.model_dump(mode="json", exclude={"model"}),
            }
            for one in agents
        },
        "endpoints": {name: endpoint.model_dump(mode="json") for name, endpoint in sorted(config.endpoints.items())},
        "prices": {
            "as_of": str(prices.as_of),
            "models": {
                f"{provider}:{model}": _rates(prices, provider, model) for provider, model in sorted(prices.models())
            },
        },
        "check": None if probed is None else {str(spec): _capabilities(result) for spec, result in probed.items()},
    }


def _rates(prices: PriceTable, provider: str, model: str) -> Row:
    price = prices.find(provider, model)
    assert price is not None  # it was named by the table itself
    names = ("input", "cached_input", "cache_write", "output")
    return {
        **{name: str(getattr(price.rates, name)) for name in names},
        "training_cutoff": price.training_cutoff or None,
    }


def _capabilities(result: Capabilities) -> Row:
    if result.problem:
        return {"answered": False, "problem": result.problem}
    tried = ("thinks", "calls_tools", "context", "counted", "limits", "cost")
    return {
        "answered": True,
        "enforces_schema": result.enforces_schema,
        "vision": result.sees,
        **row_json.fields(result, "streams", "reports_usage", "latency"),
        **({} if result.context is None else row_json.fields(result, *tried)),
    }


def trial_document(probed: Probed, written: Mapping[str, bool | int], file: str) -> Row:
    """The capabilities of models that were tried at length, and the values of their endpoint that a file was given."""
    check = {str(spec): _capabilities(result) for spec, result in probed.items()}
    return {"schema": SCHEMA, "check": check, "file": file if written else None, "written": dict(written)}


def probe_text(result: Capabilities) -> str:
    """The answer of a model that was asked for its capabilities, in words."""
    if result.problem:
        return result.problem
    can = [
        "enforces schemas" if result.enforces_schema else "takes schemas in words only",
        "sees pictures" if result.sees else "sees no pictures",
        "streams" if result.streams else "does not stream",
        "counts tokens" if result.reports_usage else "counts no tokens",
    ]
    return f"answered in {result.latency:.1f} s: {', '.join(can)}"
