"""The app's style sheet, parsed no oftener than it has to be: parsing is much of what an app does before it paints."""

from __future__ import annotations

from textual.css.stylesheet import Stylesheet


class ParsedOnce(Stylesheet):
    """A style sheet that is parsed anew only where colours have changed; Textual parses it for each first screen."""

    def set_variables(self, variables: dict[str, str]) -> None:
        """Take the colours; what was parsed with the same ones counts further."""
        if variables != self._variables:
            super().set_variables(variables)
            self._require_parse = True

    def reparse(self) -> None:
        """Parse what is not parsed with these colours. Raises as Textual's own does."""
        if self._require_parse:
            self._rules_map = None
            self.parse()
