"""`paperdesk config`: values of the configuration, shown with their origin and changed with the comments kept."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from engine.settings import places
from tests.tui.commands.conftest import Run
from tui.set_up.first_configuration import example


def values(run: Run, *key: str) -> dict[str, tuple[object, str]]:
    shown = run("config", "get" if key else "list", *key, "--json").json["values"]
    return {one["key"]: (one["value"], one["origin"]) for one in shown}


def test_a_value_is_set_shown_and_taken_out_and_every_comment_stays(run: Run, fresh: Path) -> None:
    file = places.config_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(example())
    comments = [line for line in example().splitlines() if line.startswith("#")]
    for key, text, value in (
        ("desk.cash", "5000.50", 5000.5),
        ("desk.symbols", "AAPL, MSFT", ["AAPL", "MSFT"]),
        ("desk.symbols", '["META", "BTC-USD"]', ["META", "BTC-USD"]),
        ("desk.risk", "risk-averse", "risk-averse"),
        ("broker.mode", "ask", "ask"),
        ("models.agents.decision.effort", "low", "low"),
        ("bindings.desk.run", "f5", "f5"),
        ("watch.every", "0", 0),
        ("execution.fractional", "false", False),
        ("execution.commission", "0", 0),
        ("desk.profile.AAPL", "Makes telephones.", "Makes telephones."),
    ):
        assert run("config", "set", key, text).code == 0
        section, *rest = key.split(".")
        found = tomllib.loads(file.read_text())[section]
        for part in [".".join(rest)] if section == "bindings" else rest:
            found = found[part]
        assert (found, type(found)) == (value, type(value))
    lines = file.read_text().splitlines()
    kept = [line for line in comments if line in lines]
    # The comment of a key that is set now has become the key.
    assert [line for line in comments if line not in kept] == ['# risk = "risk-neutral"', '# desk.run = "f5,ctrl+g"']
    assert lines[lines.index('risk = "risk-averse"') - 1].startswith("# Risk character")
    assert values(run, "desk.cash") == {"desk.cash": ("5000.50", str(file))}
    assert values(run)["desk.seed"] == (0, str(file)) and values(run, "desk")["desk.tools"] == (None, "default")

    taken = run("config", "unset", "desk.cash", "--json").json
    assert (taken["before"], taken["value"]) == ("5000.50", None)
    assert values(run, "desk.cash") == {"desk.cash": ("100000", "default")}


def test_a_first_value_makes_the_file_and_the_desk_goes_by_it(run: Run, fresh: Path) -> None:
    assert not places.config_file().exists()
    assert run("config", "set", "desk.name", "mine").code == 0
    assert run("status", "--json").json["desk"] == "mine"


def test_a_file_that_is_linked_to_is_changed_and_stays_linked(run: Run, fresh: Path, tmp_path: Path) -> None:
    places.config_file().parent.mkdir(parents=True, exist_ok=True)
    places.config_file().symlink_to(tmp_path / "kept.toml")
    (tmp_path / "kept.toml").write_text("[desk]\nseed = 1\n")
    assert run("config", "set", "desk.seed", "2").code == 0
    assert (tmp_path / "kept.toml").read_text() == "[desk]\nseed = 2\n" and places.config_file().is_symlink()


def test_a_variable_that_goes_first_is_named(run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPERDESK_DESK__SEED", "3")
    assert run("config", "set", "desk.seed", "4", "--json").json["overridden_by"] == "PAPERDESK_DESK__SEED"
    assert values(run, "desk.seed") == {"desk.seed": (3, "environment PAPERDESK_DESK__SEED")}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("set", "desk.cahs", "5"), 2),
        (("set", "desk.cash", "none"), 2),
        (("set", "desk", "5"), 2),
        (("set", "desk.cash.more", "5"), 2),
        (("set", "desk.preset", "no-such"), 2),
        (("set", "models.default", "nobody:model"), 2),
        (("set", "broker.kind", "nobody"), 2),
        (("set", "app.theme", "pink"), 2),
        (("set", "bindings.desk.run", "ctrl+nix"), 2),
        (("set", "desk.cash"), 2),
        (("unset", "desk.cash"), 2),
        (("get", "desk.cahs"), 2),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    run: Run, fresh: Path, arguments: tuple[str, ...], code: int
) -> None:
    run("config", "set", "desk.seed", "4")
    before = places.config_file().read_text()
    refused = run("config", *arguments)
    assert (refused.code, len(refused.err.splitlines())) == (code, 1), refused.err
    assert places.config_file().read_text() == before


def test_a_file_that_another_value_spoils_is_mended_by_setting_that_value(run: Run, fresh: Path) -> None:
    file = places.config_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("[desk]\nseed = 'x'  # mine\ncash = 5\n")
    assert run("config", "set", "desk.cash", "6").code == 78
    assert run("config", "set", "desk.seed", "6").code == 0
    assert "seed = 6  # mine" in file.read_text()


def test_a_model_without_a_price_is_told_with_the_one_that_is_meant(
    run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (note,) = run("config", "set", "models.default", "openai:gpt-5.4-minni", "--json").json["notes"]
    assert "did you mean openai:gpt-5.4-mini?" in note
    assert run("config", "set", "desk.seed", "4", "--json").json["notes"] == []
    assert run("config", "set", "models.default", "openai:of-tomorrow", "--json").json["notes"] == []


def test_a_preset_of_the_file_that_there_is_not_ends_with_78(run: Run, fresh: Path) -> None:
    file = places.config_file()
    for more in ("", '[broker]\nkind = "alpaca"\n'):  # whose keys are not there
        file.write_text('[desk]\nsymbols = ["AAPL"]\npreset = "finvison"\n' + more)
        for arguments in (("--daily",), ("models",), ("backtest", "--light")):
            said = run(*arguments)
            assert said.code == 78, arguments
            assert said.err.startswith(f"paperdesk: {file}: ") and "did you mean finvision?" in said.err
