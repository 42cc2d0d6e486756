"""A set-up of an account: questions one after another, a check of the answers, and the files that come of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from engine.errors import ConfigError
from engine.settings.edit import change_value

Answers = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question.

    key: the setting (`section.key`), or the environment variable of a key.
    name: in the list of answers.
    text: the question, with what the answer is for.
    proposed: the answer that enter gives.
    check: returns the answer as it is kept, or raises a PaperdeskError; without one the configuration has to take it.
    """

    key: str
    name: str = ""
    text: str
    proposed: str = ""
    check: Callable[[str], str] | None = None

    @property
    def secret(self) -> bool:
        """True for a key, which is never shown."""
        return self.key.isupper()

    def checked(self, text: str) -> str:
        """The answer as it is kept. Raises a PaperdeskError."""
        if self.check is not None:
            return self.check(text)
        if not self.secret:
            with TemporaryDirectory(prefix="paperdesk-") as folder:
                change_value(Path(folder) / "config.toml", self.key, text)
        elif not text:
            raise ConfigError("a key is needed: paste it here")
        elif not text.isprintable() or " " in text:
            raise ConfigError("a key has no spaces: copy it again, without anything else")
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUp:
    """A set-up: of a new account, or of the keys or symbols of a configured one. Answers are by the keys of questions.

    title: the title of its dialog.
    end: the steps once all is answered, with the files that are written.
    done: the sentence once that is done.
    questions: all questions; later ones follow from the answers so far.
    keep: writes the answers; gives each file once it is there. Raises ConfigError.
    cycle: True where the desk's first cycle may follow.
    stored: the keys that are there already, which enter alone keeps.
    options: the global options of a command that tries the answers; files may be written into the folder. None where
        nothing is tried. Raises ConfigError, and OSError for such a file.
    symbols: symbols whose prices are fetched; a configured desk's next cycle fetches what it needs.
    """

    title: str
    end: str
    done: str
    questions: Callable[[Answers], Sequence[Question]]
    keep: Callable[[Answers], Iterator[Path]]
    cycle: bool
    stored: Answers = field(default_factory=dict)
    options: Callable[[Answers, Path], tuple[str, ...]] | None = None
    symbols: Callable[[Answers], Sequence[str]] = lambda answers: ()


def keys_of(answers: Answers) -> dict[str, str]:
    """The keys among the answers, by environment variable."""
    return {key: value for key, value in answers.items() if key.isupper()}
