"""The agents of a paper's tables as data: the preset that is run, its printed variants and models.

They are in `paper_tables/*.toml` beside the printed rows; further ablations come from a file of the user's own.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from engine.domain.market import Symbol
from engine.errors import ConfigError
from engine.lab.published_tables import paper_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A row beside the paper's agent, run in the same environment.

    row: its name.
    without: steps that it leaves out.
    symbols: those that it is run on, empty for all of the table.
    training: False where it begins with the test.
    preset: another preset that is run in the agent's place; None: the agent's own.
    note: remark on every figure of ours.
    """

    row: str
    without: tuple[str, ...] = ()
    symbols: tuple[Symbol, ...] = ()
    training: bool = True
    preset: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class PrintedModel:
    """A model of a paper's table. `size` is in billions of parameters, None where its maker names none; `specs` are the
    model specs that mean it. Source: InvestorBench Table 1 [I10]."""

    name: str
    kind: str
    size: Decimal | None = None
    specs: tuple[str, ...] = ()

    @property
    def size_class(self) -> str | None:
        """Small up to 10 billion parameters, medium up to 65, large above. Source: InvestorBench figure 3 [I10]."""
        if self.size is None:
            return None
        return "small" if self.size <= 10 else "medium" if self.size <= 65 else "large"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedAgents:
    """The agents of a bench.

    preset: the preset that is run.
    row: the printed row that it is compared with; None where a row is a model, and the agent the same in all.
    beside: agents of other papers that the paper compares it with, of which we have presets.
    ablations: the printed ablations.
    models: the models of its rows.
    """

    preset: str
    row: str | None
    beside: tuple[Variant, ...]
    ablations: tuple[Variant, ...]
    models: tuple[PrintedModel, ...]

    def row_of(self, spec: str, variant: Variant | None = None) -> str:
        """The name of the row that a model's answers make, of the whole agent or a variant."""
        if self.row is not None:
            return self.row if variant is None else variant.row
        name = next((model.name for model in self.models if spec in model.specs), spec)
        return name if variant is None else f"{name}, {variant.row}"


def published_agents(bench: str) -> PublishedAgents:
    """The agents of a bench that has printed rows."""
    plain = paper_file(bench)["agents"]
    models = tuple(
        PrintedModel(m["name"], m["kind"], None if "size" not in m else Decimal(m["size"]), tuple(m.get("specs", ())))
        for m in plain.get("model", ())
    )
    return PublishedAgents(
        preset=plain["preset"],
        row=plain.get("row"),
        beside=tuple(map(_variant, plain.get("beside", ()))),
        ablations=tuple(map(_variant, plain.get("ablation", ()))),
        models=models,
    )


def ablations_from(path: Path) -> tuple[Variant, ...]:
    """Ablations of a file of the user's own: `[[ablation]]` with `row`, `without` (a list of steps), `symbols` if not
    all. The steps are checked by the preset. Raises ConfigError that names the file and the fault."""
    try:
        plain = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None
    entries = plain.pop("ablation", None)
    if plain or not isinstance(entries, list) or not entries:
        odd = f" (not {sorted(plain)[0]})" if plain else ""
        raise ConfigError(f"{path}: ablations belong under [[ablation]]{odd}, each with row and without")
    ablations = tuple(_checked(f"{path}: ablation {number}", entry) for number, entry in enumerate(entries, 1))
    names = [ablation.row for ablation in ablations]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"{path}: two ablations are called {twice}")
    return ablations


def _checked(where: str, entry: Any) -> Variant:
    """The ablation of an entry of a user's file. Raises ConfigError that begins with `where`."""
    if not isinstance(entry, dict) or set(entry) - {"row", "without", "symbols"}:
        raise ConfigError(f"{where}: it takes row, without and symbols")
    if not isinstance(entry.get("row"), str) or not entry["row"].strip():
        raise ConfigError(f"{where}: row has to name it")
    if not _texts(entry.get("without")) or not entry["without"]:
        raise ConfigError(f'{where} ({entry["row"]}): without has to list steps, such as ["tools"]')
    if not _texts(entry.get("symbols", [])):
        raise ConfigError(f"{where} ({entry['row']}): symbols has to be a list of symbols")
    return _variant(entry)


def _variant(entry: Mapping[str, Any]) -> Variant:
    plain: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
    return Variant(**plain)


def _texts(value: Sequence[Any] | None) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)
