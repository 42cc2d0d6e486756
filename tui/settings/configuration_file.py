"""The configuration's file: the command line and the app change its values by one rule, and the app takes a change
back."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from engine.errors import ConfigError
from engine.settings.keys import write_private
from tui.settings.invocation import Invocation

if TYPE_CHECKING:
    from engine.settings.config import Config


class ConfigurationFile:
    """The file of a configuration, which need not be there. Threads change it one after another."""

    def __init__(self, path: Path) -> None:
        self.path, self._lock = path, Lock()
        self._changes: list[tuple[str, bytes | None, bytes | None]] = []
        """The key of each change, with the file before and after it; None where there was none."""

    def change(self, key: str, text: str | None) -> dict[str, Any]:
        """Set a value, or (None) take it out: the document of `change_value`, with notes on a model that is set. Raises
        as that does, and UsageError or ConfigError for what the program cannot work with; then nothing is written."""
        from engine.settings.edit import change_value

        with self._lock:
            notes, before = list[str](), self._bytes()
            document = change_value(self.path, key, text, check=lambda config: notes.extend(_notes(config, text)))
            self._changes.append((key, before, self._bytes()))
        return {**document, "notes": notes}

    def undo(self) -> str:
        """Restore the file as it was before the last change, byte for byte: the key of that; empty where there is none.
        Raises ConfigError where somebody else has changed the file since, or it cannot be written."""
        with self._lock:
            key, before, after = self._changes[-1] if self._changes else ("", None, self._bytes())
            if self._bytes() != after:
                raise ConfigError(f"{self.path} was changed from elsewhere since: nothing is taken back")
            if before is not None:
                write_private(self.path.resolve(), before.decode("utf-8"))
            elif key:
                self.path.unlink()
            del self._changes[-1:]
        return key

    def _bytes(self) -> bytes | None:
        return self.path.read_bytes() if self.path.is_file() else None


def _notes(config: Config, text: str | None) -> list[str]:
    """Notes on the model that a text may be. Raises UsageError or ConfigError for a broker, a preset, a model, a theme
    or a key that there is not."""
    from connectors.wiring.broker import broker_of
    from engine.app.models.models import agent_models, unpriced_notes
    from tui.settings.app_settings import app_settings

    broker_of(config)
    app_settings(config.app.theme, config.bindings, {"app.theme": "config"})
    services = Invocation.services_of(config)
    prices = services.models.prices()
    specs = [one.spec for one in agent_models(services, prices)]
    return unpriced_notes([spec for spec in specs if str(spec) == text], prices)
