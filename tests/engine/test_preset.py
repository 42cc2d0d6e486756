"""Presets: those that ship, ablations, files of one's own, and what is no preset."""

from __future__ import annotations

from dataclasses import fields
from decimal import Decimal
from pathlib import Path

import pytest

from engine.agents.character import fixed_nature, manner_of, traits_of
from engine.domain.decision import SizingRule
from engine.errors import ConfigError, UsageError
from engine.preset import HIDDEN, Memory, MemoryBirth, MemoryLayer, load_preset, preset_names, recorded_preset
from memory.presets import Birth, LayerRule, MemoryPreset, Ranking, preset_named
from memory.record import Layer


def test_every_preset_that_ships_can_be_loaded_by_its_name() -> None:
    assert "finvision" in preset_names()
    assert not HIDDEN & set(preset_names())
    for name in (*preset_names(), *HIDDEN):
        assert load_preset(name).name == name
    assert [name for name in (*preset_names(), *HIDDEN) if load_preset(name).peek] == ["leaky-test"]


def test_every_preset_has_a_title_of_its_own() -> None:
    titles = [load_preset(name).title for name in (*preset_names(), "leaky-test")]
    assert all(titles) and len(set(titles)) == len(titles)


def test_finvision_is_the_papers() -> None:
    """Source: FinVision §3.4, table 5, §3.5 [V2, V4, V6, V8]."""
    paper = load_preset("finvision")
    sizing = paper.sizing

    assert (sizing.cash_floor, sizing.gain_over_cost, sizing.gains_in_a_row) == (Decimal("0.10"), Decimal("0.05"), 3)
    assert not sizing.allow_short
    assert {rule: (b.smallest, b.largest, b.cash_above) for rule, b in (sizing.buy | sizing.sell).items()} == {
        SizingRule.STRONG_UPTREND: (5, 10, Decimal("0.10")),
        SizingRule.DIP_IN_UPTREND: (1, 5, Decimal("0.20")),
        SizingRule.REVERSAL: (1, 10, None),
        SizingRule.GAIN_OVER_COST: (3, 5, None),
        SizingRule.GAINS_IN_A_ROW: (3, 5, None),
    }
    assert (paper.windows.chart, paper.windows.signal_chart) == (60, 30)
    temperatures = {agent: settings.temperature for agent, settings in paper.agents.items()}
    assert temperatures.pop("decision") == 1.0
    assert set(temperatures.values()) == {0.3}


def test_the_ablation_is_the_preset_without_its_reflections() -> None:
    """Source: FinVision §4.3 [V11]."""
    whole, ablated = load_preset("finvision"), load_preset("finvision-no-reflection")

    assert ablated.steps == whole.without(("reflections",)).steps
    assert set(whole.steps) - set(ablated.steps) == {"performance-reflection", "signal-reflection"}
    assert (ablated.sizing, ablated.windows, ablated.agents) == (whole.sizing, whole.windows, whole.agents)


def test_a_step_that_there_is_not_cannot_be_left_out() -> None:
    with pytest.raises(UsageError, match=r"char.*finvision.*chart"):
        load_preset("finvision").without(("char",))


def test_a_preset_that_there_is_not_names_the_nearest() -> None:
    for name, named in (("finvisoin", "finvision"), ("zzz", "finvision"), ("mine.toml", r"mine\.toml")):
        with pytest.raises(UsageError, match=named):
            load_preset(name)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    return tmp_path / "mine.toml"


def test_a_file_of_ones_own_changes_a_line(mine: Path) -> None:
    mine.write_text('extends = "finvision"\nname = "mine"\nwithout = ["news"]\n[sizing]\ncash_floor = 0.25\n')

    own, paper = load_preset(str(mine)), load_preset("finvision")

    assert (own.name, own.sizing.cash_floor) == ("mine", Decimal("0.25"))
    assert own.sizing.buy == paper.sizing.buy
    assert set(paper.steps) - set(own.steps) == {"news"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("name = ", "TOML"),
        ('name = "\xff\xfe"\n', "TOML"),
        ('extends = "finvision"\nnmae = "x"\n', "nmae.*name"),
        ('extends = "finvision"\n[sizing]\ncash_flor = 0\n', "sizing.cash_flor.*cash_floor"),
        ('extends = "finvision"\n[owners.bull]\nrsik = "risk-averse"\n', "owners.bull.rsik.*risk"),
        ('extends = "finvision"\n[owners.bull]\nrisk = "brave"\n', "owners.bull.risk"),
        ('extends = "finvision"\n[owners.bull]\nweight = 0\n', "owners.bull.weight"),
        ('extends = "finvision"\n[owners.bull]\nhorizon = 0\n', "owners.bull.horizon"),
        ('extends = "finvision"\n[owners."the bull"]\nweight = 1\n', "owners.the bull"),
        ('extends = "finvision"\nowners = ["bull", "bull"]\n', "owner"),
        ('extends = "finvision"\nowners = ["bull", 3]\n', "owners"),
        ('extends = "finvision"\nowners = "bull"\n', "owners"),
        ('extends = "finvision"\nowners = ["bull"]\n[owners.bull]\nweight = 1\n', "tables"),
        ('extends = "finvision"\nowners = ["bull", "desk"]\n', "owner desk"),
        ('extends = "finvision"\nowners = ["bull", "bear"]\nquorum = 3\n', "quorum 3"),
        ('extends = "finvision"\nquorum = 0\n', "quorum"),
        ('extends = "finvision"\ncombine = "cote"\n', "combine"),
        ('extends = "finvision"\nowners = ["bull", "bear"]\nquorum = 2\ncombine = "books"\n', "quorum"),
        ('extends = "finvision"\n[windows]\nchart = 2\n', "windows.chart"),
        ('extends = "finmem"\nmemory = "desk"\n', 'base = "desk"'),
        ('extends = "finmem"\n[memory]\nbase = "finmen-code"\n', "finmem-code"),
        ('extends = "finmem"\n[memory]\nreward_horizon = 3\n', "memory.reward_horizon"),
        ('extends = "finmem"\n[memory.layers.deep]\nalfa = 0.9\n', "memory.layers.deep.alfa.*alpha"),
        ('extends = "finmem"\n[memory.births.nwes]\nspread = 9\n', "nwes.*news"),
        ('extends = "finmem"\n[memory.layers.deep]\ndraws = [[40, 0.4]]\n', "draws"),
        ('extends = "finagent"\n[memory.layers.deep]\nalpha = 0.9\n', "finagent.*deep"),
        ('extends = "finvision"\nsteps = ["news", "tea"]\n', "tea"),
        ('extends = "finvision"\n[sizing]\ncash_floor = 10\n', "sizing.cash_floor"),
        ('extends = "finvision"\n[sizing]\ncash_floor = -0.1\n', "sizing.cash_floor"),
        (
            'extends = "finvision"\n[sizing.sell."reversal"]\nsmallest = 7\nlargest = 3\n',
            "smallest 7",
        ),
        ('extends = "finvision"\n[sizing.sell."reversal"]\nlargest = 300\n', "largest"),
        ('extends = "finvision"\n[sizing.sell."reversal"]\nsmallest = -1\n', "smallest"),
        ('extends = "finvision"\n[sizing.buy."a hunch"]\nsmallest = 1\nlargest = 3\n', "sizing.buy"),
        ('extends = "finvision"\nowners = []\n', "owners"),
        ('extends = "finvision"\nwithout = ["tea"]\n', "tea"),
        ('extends = "finagent"\n[tools.macd]\nfsat = 5\n', "macd.*fsat.*fast"),
        ('extends = "finagent"\n[tools.macd]\nfast = 30\n', "fast .30.*slow .26"),
        ('extends = "finagent"\n[tools]\nmacd = 5\n', "tools"),
        ('extends = "finagent"\ntools = ["mcad"]\n', "mcad.*macd"),
        ('extends = "finagent"\ntools = [["macd"]]\n', "tools"),
        ('extends = "finagent"\ntools = ["macd", 3]\n', "tools"),
        ('extends = "finagent"\ntools = ["macd", "macd"]\n', "tools"),
        ('name = "x"\ntitle = "x"\n', "steps|sizing|required"),
    ],
)
def test_a_file_that_is_no_preset_is_a_configuration_error(text: str, complaint: str, mine: Path) -> None:
    mine.write_text(text, encoding="latin-1")
    with pytest.raises(ConfigError, match=complaint) as caught:
        load_preset(str(mine))
    assert str(mine) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_owner_has_the_presets_settings_where_it_sets_none(mine: Path) -> None:
    mine.write_text(
        """
        extends = "tradinggpt-single"
        name = "mine"
        [owners.bull]
        risk = "risk-seeking"
        preference = "aggressive"
        weight = 2
        [owners.quiet]
        """
    )
    own = load_preset(str(mine))

    assert list(own.owners) == ["bull", "quiet"]
    bull, quiet = own.owner("bull"), own.owner("quiet")
    assert (bull.risk, bull.preference, bull.weight) == ("risk-seeking", "aggressive", 2)
    assert (quiet.risk, quiet.preference, quiet.weight) == ("risk-neutral", "moderate", 1)


def test_a_preset_that_says_nothing_of_owners_has_the_default_owner() -> None:
    for name in set(preset_names()) - {"tradinggpt", "desk-debate"}:
        assert list(load_preset(name).owners) == ["desk"]


def test_owners_that_are_listed_and_owners_with_tables_extend_each_other(mine: Path, tmp_path: Path) -> None:
    listed, chosen = tmp_path / "listed.toml", tmp_path / "chosen.toml"
    listed.write_text('extends = "finvision"\nowners = ["bear", "bull"]\n')
    mine.write_text(f'extends = "{listed}"\nquorum = 2\n[owners.bull]\nweight = 3\n[owners.quant]\nweight = 2\n')
    chosen.write_text(f'extends = "{mine}"\nowners = ["quant", "bull"]\n')

    assert {name: owner.weight for name, owner in load_preset(str(mine)).owners.items()} == {
        "bear": 1,
        "bull": 3,
        "quant": 2,
    }
    assert [(name, owner.weight) for name, owner in load_preset(str(chosen)).owners.items()] == [
        ("quant", 2),
        ("bull", 3),
    ]


def test_presets_that_extend_each_other_are_a_configuration_error(mine: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    mine.write_text(f'extends = "{other}"\n')
    other.write_text(f'extends = "{mine}"\n')
    with pytest.raises(ConfigError):
        load_preset(str(mine))


def test_a_preset_says_what_its_agents_are_asked() -> None:
    steps = ("news", "chart", "short-term reflection", "medium-term reflection", "signal-reflection", "decision")
    assert load_preset("finvision").questions == steps
    assert load_preset("finmem").questions == (
        "filing-summary",
        "market-intelligence",
        "extended-reflection",
        "immediate-reflection",
    )
    assert load_preset("finagent").without(("memory", "chart")).questions == (
        "market-intelligence",
        "low-level-reflection",
        "high-level-reflection",
        "decision",
    )


def test_a_relative_file_is_the_one_of_the_present_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "own.toml").write_text(f'extends = "finvision"\nname = "{name}"\n')
        monkeypatch.chdir(folder)
        assert load_preset("own.toml").name == name


def test_every_constant_of_memory_is_a_key_of_the_table() -> None:
    for table, constants, fixed in (
        (Memory, MemoryPreset, {"name", "title", "source"}),
        (MemoryLayer, LayerRule, {"title"}),
        (MemoryBirth, Birth, set()),
    ):
        assert set(table.model_fields) - {"base"} == {field.name for field in fields(constants)} - fixed


def test_a_table_changes_constants_of_its_base(mine: Path) -> None:
    mine.write_text(
        'extends = "finmem"\nname = "mine"\n[memory]\nbase = "tradinggpt"\nk = 2\nranking = "relevancy alone"\n'
        "[memory.layers.shallow]\nstability = 7\n[memory.births.news]\nimportance = 33\n"
    )
    own, base = load_preset(str(mine)).memory.constants, preset_named("tradinggpt")

    assert (own.k, own.ranking, own.layers[Layer.SHALLOW].stability) == (2, Ranking.RELEVANCY, 7)
    assert own.births["news"] == Birth(Layer.SHALLOW, 33)
    assert own.layers[Layer.DEEP] == base.layers[Layer.DEEP] and own.births["10-K"] == base.births["10-K"]


def test_books_of_several_owners_hold_no_shorts(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        'extends = "finvision"\nname = "own"\nowners = ["a", "b"]\ncombine = "books"\n[sizing]\nallow_short = true\n'
    )
    with pytest.raises(ConfigError, match=r"sizing\.allow_short"):
        load_preset(str(own))


def test_a_character_is_a_file_a_name_or_words(mine: Path) -> None:
    (mine.parent / "calm.toml").write_text(
        'nature = "You are calm."\ntext = "You wait."\nhorizon = 60\nrisk = "risk-averse"\n[evidence]\nfilings = 2\n'
    )
    mine.write_text(
        'extends = "finmem"\nname = "mine"\n[owners.file]\ncharacter = "calm.toml"\n[owners.named]\n'
        'character = "contrarian"\nhorizon = 3\n[owners.told]\ncharacter = "You doubt."\n'
    )
    own = load_preset(str(mine))
    file, named, told = (own.owner(name) for name in ("file", "named", "told"))
    assert (fixed_nature(file), file.risk, file.horizon) == ("You are calm.", "risk-averse", 60)
    assert manner_of(file).endswith("over about 60 sessions. Most weight has for you: filings.")
    assert named.horizon == 3, "the owner's own goes before its character's"
    assert traits_of(named).weight("prices") == -0.75 and traits_of(named).weight("macro") == 1
    assert (told.traits, told.description, told.risk) == (None, "You doubt.", "momentum")
    assert recorded_preset(own.model_dump_json()) == own, "a run keeps the characters with the preset"


@pytest.mark.parametrize(
    ("character", "complaint"),
    [
        ("contrarain", "contrarain.*contrarian"),
        ("nobody.toml", "nobody.toml"),
        ("broken.toml", "broken.toml.*temper"),
        ("loud.toml", "loud.toml.*evidence.rumours"),
    ],
)
def test_a_character_that_is_none_is_refused(mine: Path, character: str, complaint: str) -> None:
    (mine.parent / "broken.toml").write_text('nature = "a"\ntext = "b"\ntemper = "calm"\n')
    (mine.parent / "loud.toml").write_text('nature = "a"\ntext = "b"\n[evidence]\nrumours = 1\n')
    mine.write_text(f'extends = "finmem"\nname = "mine"\n[owners.one]\ncharacter = "{character}"\n')
    with pytest.raises(ConfigError, match=complaint):
        load_preset(str(mine))
