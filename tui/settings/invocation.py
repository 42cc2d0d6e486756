"""Options of every call: json, config, desk, run and debug, before or after the command's name."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from engine.errors import ConfigError, UsageError
from tui.text.console import JSON

if TYPE_CHECKING:
    from pathlib import Path

    from engine.reports.documents.records import At, Records
    from engine.services import Services
    from engine.settings.config import Config, Loaded

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_DESK = "demo"
"""The desk of a configuration that says nothing; engine.settings.config has the same, and a test compares."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """The desk and run of one call; None where not given."""

    config_file: str | None = None
    desk: str | None = None
    run: str | None = None

    @property
    def configured(self) -> bool:
        """True where a flag, the environment or a file sets anything. Where nothing does, the defaults hold, and
        reading and checking them, which takes a tenth of a second, can be left out."""
        from engine.settings import places
        from engine.settings.config_sources import sets_value

        if self.config_file or self.desk:
            return True
        variables = any(map(sets_value, os.environ))
        return variables or places.config_file().exists()

    @property
    def options(self) -> tuple[str, ...]:
        """The configuration and the desk as options of another call."""
        named = (("--config", self.config_file), ("--desk", self.desk))
        return tuple(text for name, value in named if value is not None for text in (name, value))

    @property
    def desk_name(self) -> str:
        """The desk of this call. The configuration is read, and checked, only where there is one: that is what takes
        longest in a command that prints a document. Raises ConfigError."""
        return self.load().config.desk.name if self.configured else DEFAULT_DESK

    def begun_desk(self) -> str:
        """`desk_name` for a command that shows or changes the desk: a demo desk that was never opened begins with its
        recorded history. Raises as `load` and engine.app.desk.demo_history do."""
        from engine.settings import places

        name = self.desk_name
        if not places.desk_journal(name).exists():
            from engine.app.desk.demo_history import begin, copy_history

            if self.configured:
                begin(self.services())
            else:
                copy_history(name)
        return name

    def refuse_run(self) -> None:
        """Raise UsageError for a run that was named, where a command concerns the whole desk."""
        if self.run is not None:
            raise UsageError("--run does not apply: this command is about the whole desk")

    def records(self, at: At = None, *, decisions: bool = False) -> AbstractContextManager[Records]:
        """The records that `--run` names, else the desk's; with `decisions`, where the desk was never opened, those of
        the latest backtest that has any. Raises as `open_records` and `begun_desk` do."""
        from engine.reports.documents.records import has_decisions, is_in_a_backtest, open_records

        of_backtest = self.run is not None or (decisions and is_in_a_backtest(has_decisions))
        desk = self.desk_name if of_backtest else self.begun_desk()
        return open_records(desk, self.run, has_decisions if decisions else None, at=at)

    def load(self) -> Loaded:
        """The configuration with the desk of this call; keys that lie in a file are in the environment from here on.
        Raises ConfigError, CredentialsRefused, and UsageError for a name that no desk can have."""
        from engine.settings.config import load_config
        from engine.settings.keys import load_keys

        load_keys()
        loaded = load_config(self.file, required=self.config_file is not None)
        _check_broker(loaded)
        if self.desk is None:
            return loaded
        from pydantic import ValidationError

        try:
            desk = type(loaded.config.desk).model_validate(loaded.config.desk.model_dump() | {"name": self.desk})
        except ValidationError as error:
            reason = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise UsageError(f"--desk {self.desk}: {reason}") from None
        config = loaded.config.model_copy(update={"desk": desk})
        return replace(loaded, config=config, origins={**loaded.origins, "desk.name": "flag --desk"})

    @property
    def file(self) -> Path:
        """The configuration's file, which need not be there."""
        from pathlib import Path

        from engine.settings import places

        return places.config_file() if self.config_file is None else Path(self.config_file)

    def services(self) -> Services:
        """The services of this call's configuration. Raises as `load` does, and as `check_preset`."""
        from connectors.wiring.services import services

        loaded = self.load()
        check_preset(loaded)
        return services(loaded.config)

    @staticmethod
    def services_of(config: Config) -> Services:
        """The services of a configuration for a command that only looks: nothing is written, not even the exchange's
        sessions into the cache."""
        from connectors.wiring.services import services

        return services(config, keep_sessions=False)


DEFAULT = Invocation()
"""The call without options."""


def _check_broker(loaded: Loaded) -> None:
    """Raise ConfigError for a broker that is not registered."""
    from connectors.wiring.broker import broker_of

    try:
        broker_of(loaded.config)
    except ConfigError as error:
        raise ConfigError(f"{loaded.origins['broker.kind']}: {error}") from None


def check_preset(loaded: Loaded) -> None:
    """Raise ConfigError for a preset that there is not. A shipped one is right, and to load it loads all agents."""
    from engine.settings.shipped_presets import shipped_presets

    if loaded.config.desk.preset not in shipped_presets():
        from engine.preset import load_preset

        try:
            load_preset(loaded.config.desk.preset)
        except UsageError as error:
            raise ConfigError(f"{loaded.origins['desk.preset']}: {error}") from None


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Keep a common option; one that stands before the command's name holds for the command too."""
    if value:
        ctx.obj = replace(ctx.ensure_object(Invocation), **{str(param.name): value})


def _ask_for_json(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[JSON] = True


class _CommonOption(click.Option):
    """An option that the program's help explains, and that of a command only names."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        return super().get_help_record(ctx) if ctx.parent is None else None


def _common(*names: str, callback: Callable[..., None] | None = _remember, **attributes: Any) -> click.Option:
    return _CommonOption(names, expose_value=False, callback=callback, **attributes)


COMMON = (
    _common("--json", callback=_ask_for_json, is_flag=True, help="Print one JSON document."),
    _common("--config", "config_file", metavar="FILE", help="Configuration file (default: the standard location)."),
    _common("--desk", metavar="NAME", help="Desk to use."),
    _common("--run", metavar="ID", help="Run to use (default: the latest)."),
    _common("--debug", callback=None, is_flag=True, help="Show tracebacks."),
)
"""Options that stand before a command's name, or after it."""
UNWANTED_RUN = _common("--run", hidden=True)
"""Taken by a command that concerns the whole desk, to say so."""


class OptionOf(click.Option):
    """An option for some of the words (`of`) that the command's first argument may be, or beside some of its options
    (--NAME) alone."""

    def __init__(self, *args: Any, of: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.of = of

    def check(self, ctx: click.Context) -> None:
        """Raise UsageError where it is given with another word, or without any of those options."""
        if not is_given(ctx, self):
            return
        params = ctx.command.params
        if self.of[0].startswith("--"):
            if not any(is_given(ctx, one) for one in params if one.opts[0] in self.of):
                raise click.UsageError(f"{self.opts[0]} only works with {' or '.join(self.of)}", ctx)
            return
        first = next(one for one in params if isinstance(one, click.Argument))
        word, named = ctx.params[str(first.name)], (one for one in params if isinstance(one, OptionOf))
        # An unknown word is refused by the command, which knows the nearest.
        known = isinstance(first.type, click.Choice) or any(word in one.of for one in named)
        if known and word not in self.of:
            raise click.UsageError(f"{ctx.command.name} {word} takes no {self.opts[0]}", ctx)


def is_given(ctx: click.Context, param: click.Parameter) -> bool:
    """True where a parameter is on the command line."""
    return ctx.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE


class WithCommonOptions(click.Command):
    """A command that takes the common options beside its own, but for those named in `without`: one that prints no
    result takes no --json, one that concerns the whole desk no --run. It gets what they say as `invocation`."""

    def __init__(self, *args: Any, without: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._whole_desk = "--run" in without
        self._common = [option for option in COMMON if option.opts[0] not in without]
        self._common += [UNWANTED_RUN] * self._whole_desk

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own options, the common ones, and --help."""
        found, own = super().get_params(ctx), len(self.params)
        return [*found[:own], *self._common, *found[own:]]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Explain its own options, and name the others."""
        super().format_options(ctx, formatter)
        if ctx.parent is not None:
            shown = (f"{one.opts[0]} {one.metavar or ''}".strip() for one in self._common if not one.hidden)
            formatter.write_paragraph()
            formatter.write_text(f"Also {', '.join(shown)}; `paperdesk --help` explains them.")

    def invoke(self, ctx: click.Context) -> Any:
        """Call the command with the invocation beside the values of its own options. Raises UsageError for an option
        that belongs to something else."""
        for option in self.params:
            if isinstance(option, OptionOf):
                option.check(ctx)
        ctx.params["invocation"] = invocation = ctx.ensure_object(Invocation)
        if self._whole_desk:
            invocation.refuse_run()
        return super().invoke(ctx)


def command(name: str, *without: str) -> Callable[[F], WithCommonOptions]:
    """Make a command of ours of a function, `without` some of the common options."""
    return click.command(name, cls=WithCommonOptions, without=without)
