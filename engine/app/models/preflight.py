"""Preflight: one short question per model, settings and picture of a run, before the first question that is paid for.

A model that is not there, or a key or a setting that is refused, ends the run before anything is decided or paid. The
answer does not matter; it is recorded like any other, so that no run asks again for what one has been told already.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.agents.agent import Agent, View
from engine.agents.ask import Asker, QuestionKey, check_had
from engine.domain.chart import Candles, ChartSpec
from engine.domain.model_call import PREFLIGHT, Message, ModelRequest, UnansweredCall
from engine.domain.model_spec import ModelKind
from engine.ports import LanguageModel

_PICTURE = ChartSpec(
    kind="kline",
    title="Three sessions",
    symbol="ABC",
    sessions=("2024-01-02", "2024-01-03", "2024-01-04"),
    candles=Candles((10.0, 11.0, 12.0), (11.5, 12.5, 13.5), (9.5, 10.5, 11.5), (11.0, 12.0, 13.0)),
)
_SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string"}},
    "required": ["word"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Preflight:
    """The preflight of a run whose agents ask through an asker."""

    asker: Asker
    agents: Sequence[Agent[Any, Any]]

    async def __call__(self, first: ModelRequest) -> None:
        """Ask every model in each way that the agents ask it; `first` is the question that waits for it, whose symbol
        and session the calls are kept under. Raises CredentialsRefused, ConfigError and TryAgainLater."""
        for agent, model, request in self._questions(first):
            key = QuestionKey(
                agent=agent, step=PREFLIGHT, symbol=first.symbol, session=first.session, owner=first.owner
            )
            result = await model.answer(request, lambda text: None)  # streamed, as the agents' own questions are
            for call in result.failed:
                self.asker.on_unanswered(key, call)
            check_had(result, f"asked for {agent} before the first question")
            if not result.cached:
                used = UnansweredCall(
                    model=result.model,
                    kind=PREFLIGHT,
                    detail="" if result.failure is None else result.failure.kind,
                    input_tokens=result.usage.input_tokens,
                    output_tokens=result.usage.output_tokens,
                    cost=result.cost,
                    latency=result.latency,
                )
                self.asker.on_unanswered(key, used)

    def _questions(self, first: ModelRequest) -> Iterator[tuple[str, LanguageModel, ModelRequest]]:
        known = set()
        for agent, model in ((one, model) for one in self.agents for model in self.asker.models_of(one.name)):
            if model.spec == ModelKind.OFFLINE:
                continue
            settings, shows = self.asker.settings_of(agent.name), model.sees and agent.view.charts is not View.charts
            way = (model.spec, replace(settings, timeout=0.0), shows)
            if way not in known:
                known.add(way)
                yield (
                    agent.name,
                    model,
                    replace(
                        first,
                        purpose=PREFLIGHT,
                        system="You answer with JSON.",
                        messages=(Message("user", "Answer with the word ready.", (_PICTURE,) if shows else ()),),
                        view=None,
                        schema_name=PREFLIGHT,
                        schema=_SCHEMA,
                        settings=settings,
                        sample=0,
                        rule=None,
                    ),
                )
