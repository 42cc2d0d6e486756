"""`paperdesk doctor` (set-up): check configuration, keys, data, journals and versions.
`paperdesk models` (data): show what each configured model endpoint can do and costs.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.errors import ConfigError, PaperdeskError
from engine.reports.documents import set_up
from engine.reports.table import Column, plain
from engine.settings import places
from tui.settings.invocation import Invocation, command
from tui.text.console import plain_characters, show_document, standard_output
from tui.text.plain_text import facts, one_line, table, table_of

if TYPE_CHECKING:
    from engine.settings.config import Config, Loaded


@command("doctor")
@click.option(
    "--connect", is_flag=True, help="Ask each configured model two short questions, and the broker for the account."
)
def doctor_command(invocation: Invocation, connect: bool) -> int:
    """Checks what a desk needs and shows where every setting comes from. Keys are named, never printed.

    Exits with 1 if something required is missing or broken.

    \b
    Examples:
      paperdesk doctor
      paperdesk doctor --connect --json
    """
    findings = list(_findings(invocation, connect))
    document = set_up.doctor_document(findings)
    show_document(document, lambda: _doctor_lines(findings))
    return 0 if document["healthy"] else 1


@command("models")
@click.option(
    "--check",
    "ask",
    metavar="[SPEC]",
    is_flag=False,
    flag_value="",
    help="Ask each configured model two short questions (costs little), or try one model at length.",
)
def models_command(invocation: Invocation, ask: str | None) -> int:
    """Shows which model answers each agent, whether its key is set, its capabilities and its price.

    A model missing from the price table has an unknown cost, not zero. With --check it exits with 1 if a model did not
    answer. With --check SPEC that model is tried for schemas, pictures, streams, thinking, tools, the length of prompts
    that it reads (up to 32,000 tokens), counts and limits; what its endpoint's section can say of that is written into
    the configuration, comments kept.

    \b
    Examples:
      paperdesk models
      paperdesk models --check --json
      paperdesk models --check ollama:qwen3:8b
    """
    if ask:
        return _try_at_length(invocation, ask)
    from engine.app.models.models import agent_models, probe_models

    services = invocation.services()
    config, prices = services.config, services.models.prices()
    agents = agent_models(services, prices)
    probed = asyncio.run(probe_models(services, [one.spec for one in agents])) if ask is not None else None
    document = set_up.models_document(config, agents, prices, probed)
    addresses = {one.spec.provider: services.models.address(one.spec) for one in agents}
    document["addresses"] = {name: address for name, address in addresses.items() if address}
    show_document(document, lambda: _model_lines(document, config, agents, probed))
    return int(any(one.problem for one in (probed or {}).values()))


def _try_at_length(invocation: Invocation, text: str) -> int:
    from engine.app.models.models import endpoint_values, probe_models
    from engine.domain.model_call import ModelKind, parse_model_spec
    from engine.settings.edit import change_value

    services = invocation.services()
    spec = parse_model_spec(text, services.config.endpoints)
    if spec.kind in (ModelKind.OFFLINE, ModelKind.REPLAY):
        raise click.UsageError(f"{text} is no service that could be tried")
    probed = asyncio.run(probe_models(services, [spec], at_length=True))
    found = probed[spec]
    written = {} if found.problem else endpoint_values(services.config, spec, found)
    for name, value in written.items():
        change_value(invocation.file, f"endpoints.{spec.provider}.{name}", str(value).lower())
    document = set_up.trial_document(probed, written, str(invocation.file))
    show_document(document, lambda: _trial_lines(document, str(spec)))
    return int(bool(found.problem))


def _trial_lines(document: Mapping[str, Any], spec: str) -> Iterator[str]:
    found = document["check"][spec]
    yield standard_output().bold(spec)
    limits = {f"{name} a minute": most for name, most in found.get("limits", {}).items()}
    shown = {name.replace("_", " "): one for name, one in found.items() if name != "limits"} | limits
    pairs = [(f"{name}  ", "unknown" if one is None else _figure(one)) for name, one in shown.items()]
    yield from facts(pairs, standard_output().width, 20)
    if document["written"]:
        yield from ("", f"written into {document['file']}:", f"[endpoints.{spec.partition(':')[0]}]")
        yield from (f"{name} = {str(value).lower()}" for name, value in document["written"].items())


def _figure(value: Any) -> str:
    if isinstance(value, bool | str):
        return plain(value)
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"


def _findings(invocation: Invocation, connect: bool) -> Iterator[set_up.Finding]:
    """Every finding, in reading order."""
    from engine.app.upkeep.doctor import configuration_findings, desk_findings
    from engine.settings.config import Config, Loaded

    try:
        loaded = invocation.load()
    except PaperdeskError as error:
        yield set_up.Finding("Configuration", "file", set_up.FAIL, str(error))
        loaded = Loaded(Config(), {}, None)
    else:
        yield from configuration_findings(loaded, Path(invocation.config_file or places.config_file()))
    yield from desk_findings(invocation.services_of(loaded.config), connect)
    yield from _terminal_findings()
    yield from _app_findings(loaded)


def _terminal_findings() -> Iterator[set_up.Finding]:
    terminal, size = sys.stdout.isatty(), shutil.get_terminal_size()
    screen = (
        f"{size.columns} x {size.lines}, TERM {os.environ.get('TERM') or 'not set'}" if terminal else "none: a pipe"
    )
    small = terminal and (size.columns < 80 or size.lines < 24)
    yield set_up.Finding(
        "Terminal", "screen", set_up.NOTE if small else set_up.OK, screen + ("; the app wants 80 x 24" if small else "")
    )
    true_colour = os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit")
    colours = "NO_COLOR is set" if os.environ.get("NO_COLOR") else "24 bit" if true_colour else "as TERM says"
    yield set_up.Finding("Terminal", "colours", set_up.OK, colours)
    encoding = sys.stdout.encoding or "unknown"
    narrow = standard_output().ascii_only or (terminal and plain_characters(os.environ, encoding))
    detail = f"{encoding}; encoding, locale or TERM has no box characters: plain ones are used" if narrow else encoding
    yield set_up.Finding("Terminal", "encoding", set_up.NOTE if narrow else set_up.OK, detail)


def _app_findings(loaded: Loaded) -> Iterator[set_up.Finding]:
    """Colours and keys of the app, and where they are set."""
    from tui.settings.app_settings import app_settings

    try:
        app, bindings = loaded.config.app, loaded.config.bindings
        settings = app_settings(app.theme, bindings, loaded.origins, read_only=app.read_only)
    except ConfigError as error:
        yield set_up.Finding("App", "settings", set_up.FAIL, str(error))
        return
    yield set_up.Finding("App", "theme", set_up.OK, f"{settings.theme} ({loaded.origins.get('app.theme', 'default')})")
    own = ", ".join(f"{key.id} {key.shown}" for key in settings.keys if key.id in settings.keymap)
    yield set_up.Finding("App", "keys", set_up.OK, own or "those of the help")
    if settings.read_only:
        yield set_up.Finding("App", "read-only", set_up.OK, "nothing is changed from the app")


def _doctor_lines(findings: Sequence[set_up.Finding]) -> Iterator[str]:
    console, area = standard_output(), ""
    widest = min(24, max(len(finding.name) for finding in findings))
    for finding in findings:
        if finding.area != area:
            yield from [""] if area else []
            yield console.bold(finding.area)
            area = finding.area
        head = f"  {finding.state:<5} {finding.name:<{widest}}  "
        yield from facts([(head, one_line(finding.detail))], console.width, len(head))
    failed = sum(finding.state == set_up.FAIL for finding in findings)
    yield ""
    if failed:
        yield f"{failed} check{'s' if failed > 1 else ''} failed"


def _model_lines(
    document: Mapping[str, Any], config: Config, agents: Sequence[set_up.AgentModel], probed: set_up.Probed | None
) -> Iterator[str]:
    from tui.text.model_text import charts_text, price_text

    console = standard_output()
    yield console.bold("Who answers whom") + console.dim(f"   recorded answers: {config.models.replay}")
    columns = (
        Column("AGENT", "agent"),
        Column("MODEL", "spec"),
        Column("KEY", _key),
        Column("CHARTS", lambda one: charts_text(one.spec, one.sees)),
        Column("PRICE IN/OUT", lambda one: price_text(one.spec, one.price)),
        Column("TRAINED", _trained),
    )
    yield from table_of(columns, (one for one in agents if one.active), console.room)
    yield from (f"{name} is asked at {address}" for name, address in document["addresses"].items())
    if config.endpoints:
        yield ""
        yield console.bold("Endpoints")
        for name, endpoint in sorted(config.endpoints.items()):
            sight = "sees pictures" if endpoint.vision else "sees no pictures"
            rate = f", {endpoint.requests_per_minute} a minute" if endpoint.requests_per_minute else ""
            address = endpoint.base_url or "the vendor's address"
            yield f"{name}: {address}, {sight}, {endpoint.concurrency} at a time{rate}"
    if probed is not None:
        yield ""
        yield console.bold("Asked just now")
        yield from facts(
            [(f"{spec}  ", set_up.probe_text(result)) for spec, result in probed.items()], console.width, 28
        )
        if not probed:
            yield "none: the rules answer without a service"
    yield ""
    prices = document["prices"]
    yield console.bold(f"Prices of {prices['as_of']}") + console.dim("   USD per million tokens")
    rows = [
        (
            model,
            *(rates[name] for name in ("input", "cached_input", "output")),
            f"until {rates['training_cutoff']}" if rates["training_cutoff"] else "unknown",
        )
        for model, rates in prices["models"].items()
    ]
    yield from table(("MODEL", "IN", "CACHED", "OUT", "TRAINED"), rows, {"IN", "CACHED", "OUT"}, console.room)


def _key(one: set_up.AgentModel) -> str:
    if not one.key_variable:
        return "none needed"
    return f"{one.key_variable} {'missing' if one.key_missing else 'present'}"


def _trained(one: set_up.AgentModel) -> str:
    if not one.spec.model:
        return ""
    return f"until {one.price.training_cutoff}" if one.price and one.price.training_cutoff else "unknown"
