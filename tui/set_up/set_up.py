"""A set-up of an account: questions one after another, a check of the answers, and the files that come of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from engine.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question.

    key: the setting (`section.key`), or the environment variable of a key.
    name: in the list of answers.
    text: the question, with what the answer is for.
    proposed: the answer that enter gives.
    check: returns the answer as it is kept, or raises a PaperdeskError.
    """

    key: str
    name: str
    text: str
    proposed: str = ""
    check: Callable[[str], str]

    @property
    def secret(self) -> bool:
        """True for a key, which is never shown."""
        return self.key.isupper()


class SetUp(Protocol):
    """A set-up: of a new account, or of the keys of a configured one."""

    @property
    def title(self) -> str:
        """The title of its dialog."""

    @property
    def end(self) -> str:
        """The steps once all is answered, with the files that are written."""

    @property
    def done(self) -> str:
        """The sentence once that is done."""

    @property
    def cycle(self) -> bool:
        """True where the desk's first cycle may follow."""

    def questions(self, answers: Mapping[str, str]) -> Sequence[Question]:
        """All questions; later ones follow from the answers so far."""

    def options(self, answers: Mapping[str, str], folder: Path) -> tuple[str, ...] | None:
        """The global options of a command that tries the answers, None where nothing is tried; files may be written
        into `folder`. Raises ConfigError, and OSError for such a file."""

    def concerns(self, area: str) -> bool:
        """True where a failed check of an area of the doctor's findings refuses the answers."""

    def symbols(self, answers: Mapping[str, str]) -> Sequence[str]:
        """Symbols whose prices are fetched."""

    def keep(self, answers: Mapping[str, str]) -> Iterator[Path]:
        """Write the answers; gives each file once it is there. Raises ConfigError."""


def checked_key(text: str) -> str:
    """Return a key as it is kept. Raises ConfigError."""
    if not text:
        raise ConfigError("a key is needed: paste it here")
    if not text.isprintable() or " " in text:
        raise ConfigError("a key has no spaces: copy it once more, and nothing beside it")
    return text


def keys_of(answers: Mapping[str, str]) -> dict[str, str]:
    """The keys among the answers, by environment variable."""
    return {key: value for key, value in answers.items() if key.isupper()}
