"""The preview shows the lifetimes that follow from the published constants."""

from __future__ import annotations

import math

import pytest

from memory.presets import PRESETS, preset_named
from memory.preview import lifetimes, lives, preview, steps_to_purge, without_demotion
from memory.record import Item, Layer
from tests.memory.chosen_vectors import memory


def spans(name: str, *, sinking: bool = True) -> dict[str, tuple[float, float]]:
    preset = preset_named(name)
    return {str(k): v for k, v in lifetimes(preset if sinking else without_demotion(preset)).items()}


def test_the_authors_constants_forget_within_two_weeks() -> None:
    found = spans("finmem-code")
    three = [found[layer] for layer in ("shallow", "intermediate", "deep")]

    assert (min(low for low, _ in three), max(high for _, high in three)) == (9, 13)
    assert "50% of all news" in preview(preset_named("finmem-code"))


def test_the_programs_thresholds_forget_within_34_steps() -> None:
    found = [found for layer, found in spans("investorbench-code").items() if layer != "reflection"]

    assert (min(low for low, _ in found), max(high for _, high in found)) == (20, 34)
    assert " 5% of all news" in preview(preset_named("investorbench-code"))


def test_the_papers_rule_without_demotion() -> None:
    lives = {"shallow": (20, 81), "intermediate": (62, 83), "deep": (173, 230), "reflection": (173, 230)}

    assert spans("investorbench") == spans("investorbench-code", sinking=False) == lives
    said = preview(preset_named("investorbench-code"))
    assert "shallow 20 to 81, intermediate 62 to 83, deep 173 to 230, reflection 173 to 230." in said
    assert "emotion" not in preview(preset_named("investorbench"))


def test_an_annual_report_sinks_on_its_first_day() -> None:
    programs = preset_named("investorbench-code")
    (report,) = (life for life in lives(programs) if (life.layer, life.importance) == ("deep", 80))

    assert report.first_day_rungs == -1 and report.moves[0] == (1, Layer.INTERMEDIATE)
    assert "80 x 0.988 = 79.04" in preview(programs)


def test_importance_from_100_reaches_5_as_the_paper_says_for_two_layers() -> None:
    days = [steps_to_purge(preset_named("investorbench"), layer) for layer in Layer if layer is not Layer.REFLECTION]

    assert days[0] == pytest.approx(30, abs=2)
    assert days[1] == pytest.approx(90, abs=2)
    assert days[2] == pytest.approx(248, abs=0.5)
    assert [100 * alpha**day for alpha, day in zip((0.9, 0.967, 0.988), days, strict=True)] == pytest.approx([5] * 3)
    assert "28 / 89 / 248 / 248" in preview(preset_named("investorbench"))


@pytest.mark.parametrize("name", PRESETS)
def test_what_it_says_is_what_happens(name: str) -> None:
    """Every life of the preview, lived in a memory."""
    for life in lives(preset_named(name)):
        desk = memory(name)
        kind = life.kind or ("reflection" if life.layer is Layer.REFLECTION else "news")
        (record,) = desk.remember(
            [Item(symbol="MSFT", kind=kind, text="x", layer=life.layer, importance=life.importance)], 7
        )
        desk.sweep(7 + 1000)
        line = desk.lifeline(record)
        moves = [(t.state.step - 7, t.state.layer) for t in line[1:] if t.state.layer is not None]
        gone = [t.state.step - 7 for t in line if t.state.layer is None]
        assert moves == list(life.moves)
        assert gone == ([] if math.isinf(life.ends) else [life.ends])


def test_the_desk_keeps_an_annual_report_until_the_next() -> None:
    (report,) = (life for life in lives(preset_named("desk")) if life.kind == "10-K")

    assert report.ends >= 252 and report.moves == ()
    assert "258" in preview(preset_named("desk"))
