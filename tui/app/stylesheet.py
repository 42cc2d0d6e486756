"""The app's style sheets, parsed again only with other colours: Textual does it for each screen that opens, which takes
a fifth of a second."""

from __future__ import annotations

from textual.css.stylesheet import Stylesheet


class ParsedOnce(Stylesheet):
    """A style sheet that is parsed again only with other colours."""

    def __init__(self, *, variables: dict[str, str]) -> None:
        super().__init__(variables=variables)
        self._colours = variables
        self._outdated = False

    def set_variables(self, variables: dict[str, str]) -> None:
        """Take the colours; what was parsed with the same ones counts further."""
        if variables != self._colours:
            self._colours, self._outdated = variables, True
            super().set_variables(variables)

    def reparse(self) -> None:
        """Parse everything with colours that are new. Raises as Textual's own does."""
        if self._outdated:
            super().reparse()
            self._outdated = False
