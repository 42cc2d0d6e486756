"""`paperdesk audit` (research): prove that no decision saw the future, or say where one did."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from tui.commands.run_options import RunFlags, run_options
from tui.invocation import Invocation, desk_options

if TYPE_CHECKING:
    from engine.domain.run import RunSpec
    from engine.lab.audit import Certificate, OnStep

SCHEMA = 1


class CutsType(click.ParamType[int]):
    """A number of cuts, or `all` (which is 0)."""

    name = "cuts"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number, or a usage error that names what was given."""
        if value == "all":
            return 0
        if not str(value).isdecimal() or int(value) < 1:
            self.fail(f"{value!r} is neither a number from 1 on nor `all`", param, ctx)
        return int(value)


@click.command("audit")
@run_options
@click.option(
    "--cuts", type=CutsType(), default="12", show_default=True, metavar="N", help="Sessions to cut the data at, or all."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@desk_options
def command(invocation: Invocation, flags: RunFlags, cuts: int, as_json: bool) -> int:
    """Checks that no decision saw the future: the same run, on data that ends at the decision.

    Takes the flags of a backtest. The data is cut at a number of decisions, which have to come out the same; then
    records from the future are planted into each source and must surface nowhere. Ends with 0 where all is clean and
    with 1 where something leaked.

    \b
    Examples:
      paperdesk audit
      paperdesk audit --data DIR --symbols MSFT,JNJ --from 2020-10-01 --to 2021-03-31 --cuts all
      paperdesk audit --strategy macd --json
    """
    from engine.app.audit import run_audit
    from tui.console import show

    services = invocation.services()
    spec = flags.spec(services)
    with _progress() as on_step:
        certificate = run_audit(services, spec, cuts or None, on_step)
    show(_document(spec, certificate) if as_json else "\n".join((*_lines(certificate), *_notes(spec))))
    return 1 if certificate.outcome == "leak" else 0


@contextmanager
def _progress() -> Iterator[OnStep]:
    """A line on standard error that says how far it is, where that is a terminal."""
    watched = sys.stderr.isatty()

    def on_step(done: int, steps: int) -> None:
        if watched:
            click.echo(f"\r\x1b[Kaudit: {done} of {steps} runs ...", nl=False, err=True)

    try:
        yield on_step
    finally:
        if watched:
            click.echo("\r\x1b[K", nl=False, err=True)


def _notes(spec: RunSpec) -> list[str]:
    """What the certificate does not cover."""
    from engine.conventions.catalog import convention
    from engine.domain.execution import PriceBasis

    if convention(spec.convention).price_basis is PriceBasis.RAW:
        return []
    adjusted = f"convention {spec.convention} trades at prices adjusted for later dividends, as the paper did"
    return [f"{adjusted}: that is knowledge of the future which this audit leaves out"]


def _document(spec: RunSpec, certificate: Certificate) -> str:
    plain = {
        "schema": SCHEMA,
        "strategy" if spec.strategy is not None else "preset": certificate.subject,
        "symbols": list(spec.symbols),
        "convention": spec.convention,
        "first_decision": certificate.first.isoformat(),
        "last_decision": certificate.last.isoformat(),
        "inputs": [
            {
                "source": source,
                "items": len(read.items),
                "latest_available": None if read.latest is None else read.latest.isoformat(),
                "decision": None if read.decision is None else read.decision.isoformat(),
                "from_the_future": read.from_the_future,
            }
            for source, read in certificate.inputs.items()
        ],
        "truncation": {
            "cuts": certificate.cuts,
            "compared": certificate.compared,
            "differing": certificate.differing,
        },
        "door": {"sessions": certificate.access_sessions, "differing": certificate.access_differing},
        "planted": [
            {"source": p.source, "surfaced": p.surfaced, "where": p.where or None} for p in certificate.planted
        ],
        "hindsight_memories": certificate.hindsight,
        "opened_files": list(certificate.opened),
        "findings": list(certificate.findings),
        "notes": _notes(spec),
        "verdict": certificate.outcome,
    }
    return json.dumps(plain, indent=2, allow_nan=False, ensure_ascii=False)


def _lines(certificate: Certificate) -> Iterator[str]:
    """The certificate in plain text."""
    yield f"Look-ahead audit of {certificate.subject}, decisions of {certificate.first} to {certificate.last}"
    yield ""
    yield "Inputs         items   latest available          read by the decision of"
    for source, read in certificate.inputs.items():
        latest = "-" if read.latest is None else f"{read.latest:%Y-%m-%d %H:%M:%S} UTC"
        decision = "-" if read.decision is None else f"{read.decision:%Y-%m-%d %H:%M:%S} UTC"
        late = "  AFTER IT" if read.from_the_future else ""
        yield f"  {source:<10}{len(read.items):>8,}   {latest:<24}  {decision}{late}"
    yield ""
    differ = certificate.differing
    yield (
        f"Truncation     {_word(differ)}: {certificate.cuts} cuts, {certificate.compared} decisions taken again, "
        f"{differ} differ"
    )
    yield (
        f"Data access    {_word(certificate.access_differing)}: compared in {certificate.access_sessions} sessions, "
        f"{certificate.access_differing} show what a cut removes"
    )
    surfaced = [p.source for p in certificate.planted if p.surfaced]
    told = f"{', '.join(surfaced)} surfaced" if surfaced else "nothing surfaced"
    of = ", ".join(p.source for p in certificate.planted)
    yield f"Planted future {_word(surfaced)}: {of}: {told}"
    opened = ", ".join(certificate.opened) or "the run opened no file of the data folder itself"
    yield f"Files          {_word(certificate.opened)}: {opened}"
    if certificate.hindsight is not None:
        yield f"Hindsight      {certificate.hindsight} memories of the warm-up rest on what followed, as training may"
    for finding in certificate.findings:
        yield f"  - {finding}"
    yield ""
    yield f"Verdict: {certificate.outcome}"


def _word(faults: object) -> str:
    return "FAILED" if faults else "passed"
