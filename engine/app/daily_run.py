"""The daily run of a desk: once for each session, whoever asks for it and however often."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from engine.app.desk_account import desk_account
from engine.app.desk_context import Finished, desk_context
from engine.app.desk_journal import DeskJournal, use_journal
from engine.app.desk_run import run_desk
from engine.messages.events import Publish
from engine.ports import LanguageModel
from engine.services import Services
from engine.session.desk_context import DeskRunResult


async def run_daily(
    services: Services,
    requested: date | None = None,
    publish: Publish = lambda event: None,
    *,
    through: Callable[[LanguageModel], LanguageModel] = lambda model: model,
    journal: DeskJournal | None = None,
    due: date | None = None,
) -> DeskRunResult | Finished:
    """Run the configured desk for a session; `through` wraps every model that is asked. A command that has opened the
    journal, and found that the session `due` is not finished, passes both on.

    Raises UsageError, DataError, ConfigError, NetworkError, TryAgainLater, CredentialsRefused and DeskHalted; what was
    done before stays done.
    """
    broker = services.broker
    with use_journal(services.desk, journal) as opened:
        if broker is None:
            context = desk_context(services, opened, requested, due=due)
            with opened.locked():
                return context.finished() or await run_desk(context, publish, through)
        if due is None and not services.goes_by_broker:
            done = desk_context(services, opened, requested).finished()
            if done is not None:
                return done  # without asking the broker
        # The lock comes first: a broker that does not answer must not keep a second run from hearing of the first.
        with opened.locked():
            async with desk_account(services, broker) as account:
                context = desk_context(services, opened, requested, account=account)
                return context.finished() or await run_desk(context, publish, through)
