"""Settings: every value of the configuration that is in force, with its origin. They are changed in its file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from textual.content import Content

from tui.settings.app_settings import AppSettings
from tui.text.plain_text import one_line


def settings_text(config: Mapping[str, Any], settings: AppSettings) -> Content:
    """The values by section; those that are not the default are bold and name their origin."""
    parts: list[str | tuple[str, str]] = [
        ("The app\n", "bold $primary"),
        f"  {'theme':<24}{settings.theme}  ({settings.theme_origin})\n",
        f"  {'read-only':<24}{_shown(settings.read_only)}\n",
    ]
    for section, values in config.items():
        rows = list(_flat(values)) if isinstance(values, Mapping) else []
        parts.append((f"\n[{section}]\n", "bold $primary"))
        for name, value in rows:
            origin = settings.origins.get(f"{section}.{name}", "")
            line = f"  {name:<24}{one_line(_shown(value))}"
            parts.append((f"{line}  ({origin})\n", "bold") if origin else f"{line}\n")
        if not rows:
            parts.append(("  nothing\n", "$foreground 55%"))
    parts.append(("\nKeys, by the ids that [bindings] takes\n", "bold $primary"))
    parts += [f"  {key.id:<24}{key.shown}\n" for key in settings.keys]
    parts.append(("\nThe configuration's file changes them: paperdesk doctor says where it lies.\n", "$warning"))
    return Content.assemble(*parts)


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "not set" if value is None else "none" if value == {} else str(value)
