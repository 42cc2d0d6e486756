"""docs/presets.md names every key of a preset, with what the schema says of it."""

from __future__ import annotations

import re
from pathlib import Path

from engine.agents.registry import FEATURES, registered, steps_of
from engine.preset import Preset, load_preset
from tests import presets_page


def test_the_page_is_the_schema() -> None:
    assert presets_page.PAGE.read_text(encoding="utf-8") == presets_page.page(), (
        "write the page anew: python -m tests.presets_page"
    )


def test_every_key_has_a_meaning_and_every_step_is_there() -> None:
    for kind in (Preset, *presets_page.TABLES):
        assert [name for name, text in presets_page.described(kind).items() if not text] == [], kind

    page = presets_page.page()
    assert [step for step in steps_of(registered()) if f"`{step}`" not in page] == []
    assert all(f"`{feature}`" in presets_page.FEATURES for feature in FEATURES)


def test_the_ablations_of_the_page_are_presets(tmp_path: Path) -> None:
    finvision = load_preset("finvision")
    thrifty = {"name": "finvision-thrifty", "performance_questions": 1}
    expected = [
        finvision.without(("chart",)).model_copy(update={"name": "finvision-without-chart"}),
        finvision.without(("vision",)).model_copy(update=thrifty),
    ]
    for number, text in enumerate(examples(presets_page.HEAD)):
        file = tmp_path / f"{number}.toml"
        file.write_text(text)
        assert load_preset(str(file)) == expected.pop(0)
    assert not expected


def test_the_owners_of_the_page_are_a_preset(tmp_path: Path) -> None:
    (text,) = examples(presets_page.OWNERS)
    (tmp_path / "three.toml").write_text(text)

    three = load_preset(str(tmp_path / "three.toml"))

    assert (list(three.owners), three.combine, three.quorum) == (["bull", "bear", "quant", "odd"], "vote", 2)
    assert all(f"`{way}`" in presets_page.page() for way in ("vote", "weighted", "books"))


def examples(text: str) -> list[str]:
    return re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
