"""Models side by side: the same run by each of them, and by repeats the noise that a difference has to exceed; or the
books of one desk whose owners have models of their own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

from engine.app.bench.jobs import Job
from engine.app.models.models import known_of
from engine.app.research.run_spec import check_spec, settled
from engine.app.study import RULES_REPEAT, PreparedStudy, repeated_jobs
from engine.domain.model_call import parse_model_spec, replays
from engine.domain.run import RunSpec
from engine.errors import Interrupted, UsageError
from engine.reports.documents.desk_performance import book_arms
from engine.reports.documents.records import Records
from engine.reports.documents.row_json import Row
from engine.reports.documents.session import run_of_session
from engine.reports.documents.side_by_side import Arm, masked_name, side_by_side
from engine.reports.documents.study import PlayedRow
from engine.services import Services
from engine.settings import places

SCHEMA = 1
SHARED = "agents with a model of their own keep it: what they are asked alike is asked once, and billed to the first"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedComparison(PreparedStudy):
    """A comparison that was checked, a study without a file: its run, without a model, and by the name of each that is
    compared its model and the ids of its runs."""

    spec: RunSpec
    runs: Mapping[str, tuple[str, Sequence[str]]]
    repeats: int

    def due(self, sampled: int = 0) -> Sequence[Job]:
        """The runs that are not there yet; with decisions to be sampled the first one of each model too."""
        first, todo = {runs[0] for _, runs in self.runs.values()}, {job.spec.run for job in self.open_jobs}
        jobs = (replace(job, sampled=sampled * (job.spec.run in first)) for job in self.jobs)
        return [job for job in jobs if job.sampled or job.spec.run in todo]

    def document(self, rows: Sequence[PlayedRow]) -> Row:
        """The document of every model that has a run. Raises what hindered any of them, and Interrupted where none has
        a run."""
        if trouble := next((row.trouble for row in rows if row.trouble is not None), None):
            raise trouble
        documents = {row.spec.run: row.document for row in rows if row.document is not None}
        arms = []
        for name, (model, runs) in self.runs.items():
            if own := [documents[run] for run in runs if run in documents]:
                arms.append(Arm(name=name, model=model, documents=own))
        if not arms:
            raise Interrupted("interrupted: no model's run has come to its end; the same command goes on")
        interrupted = len(documents) < len(self.jobs)
        repeated = [arm.documents for arm in arms if len(arm.documents) > 1]
        if not repeated and not interrupted:  # who answers alike makes no noise
            repeated = [[*arm.documents] * self.repeats for arm in arms]
        spec = self.spec
        window = {"preset": spec.preset, "symbols": list(spec.symbols), "from": str(spec.first), "to": str(spec.last)}
        return {
            **{"schema": SCHEMA, "kind": "models", **window, "repeats": self.repeats},
            **side_by_side(arms, repeated),
            **{"notes": list(self.notes), "interrupted": interrupted},
        }


def prepare_comparison(
    services: Services, spec: RunSpec, models: Sequence[str], repeats: int = 1, masks: Sequence[int] = ()
) -> PreparedComparison:
    """Check models and the run that each of them is to decide, in place of models.default, under each of the `masks`
    (none: the run's own): agents and owners with a model of their own keep it. Nothing is run. Raises UsageError."""
    if len(models) < 2 and len(masks) < 2:
        raise UsageError("--models compares two models or more; write them as A,B (or one under several masks)")
    for number, model in enumerate(models):
        parse_model_spec(model, services.config.endpoints)
        if model in models[:number]:
            raise UsageError(f"--models names {model} twice; --repeats N repeats every model")
        if replays(model):
            raise UsageError(
                f"--models: {model} is no model; `paperdesk runs compare` shows recorded runs side by side"
            )
    if spec.preset is None:
        raise UsageError("--models belongs to a preset of agents; a strategy uses no model")
    check_spec(spec, services.clock.now())
    name = f"compare-{hashlib.sha256(repr((spec, models, masks)).encode()).hexdigest()[:16]}"
    folder = places.study_folder(name)
    jobs: dict[str, tuple[str, Sequence[Job]]] = {}
    for model, mask in product(models, masks or (spec.options.mask or 0,)):
        chosen = services.config.models.model_copy(update={"default": model})
        config = services.config.model_copy(update={"models": chosen})
        asked = replace(spec, options=replace(spec.options, mask=mask or None))
        one, title = settled(replace(services, config=config), asked), masked_name(model, mask if masks else None)
        jobs[title] = model, repeated_jobs(services, one, repeats, title, folder, light=False)
    every = {job.spec.run: job for _, own in jobs.values() for job in own}
    fewer = any(len(own) < repeats for _, own in jobs.values())
    own_models = any(job.spec.models for job in every.values())
    notes = ((RULES_REPEAT, fewer), (SHARED, own_models))
    return PreparedComparison(
        name=name[:16],
        file=None,
        folder=folder,
        light=False,
        jobs=tuple(every.values()),
        notes=tuple(note for note, holds in notes if holds),
        spec=spec,
        runs={title: (model, [job.spec.run for job in own]) for title, (model, own) in jobs.items()},
        repeats=repeats,
    )


def compare_books(services: Services, records: Records) -> Row:
    """The document of the books of a desk up to its latest session. Raises MissingData for a desk that has not run,
    UsageError for one with a single book."""
    metrics, exchanges, facts = services.config.metrics, services.config.exchanges, partial(known_of, services)
    run = run_of_session(records, None)
    arms = book_arms(records.required, run, exchanges=exchanges, risk_free=metrics.risk_free, facts_of=facts)
    if len(arms) < 2:
        raise UsageError(
            f'the desk {records.desk} has one book: give --models A,B, or a preset with combine = "books" whose '
            "[owners.NAME] have a model each"
        )
    document = arms[0].documents[0]
    window = {"from": document["first_session"], "to": document["last_session"]}
    return {
        **{"schema": SCHEMA, "kind": "books", "desk": records.desk},
        **{"preset": document["preset"], "symbols": document["symbols"], **window, "repeats": 1},
        **side_by_side(arms),
        **{"notes": [], "interrupted": False},
    }
