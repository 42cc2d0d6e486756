"""Commands that set a desk up and look it over: init, import, models, doctor."""

from __future__ import annotations

import io
import os
import socket
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.settings.config import Config, load_config
from tests.servers.fake_llm_server import Fail, FakeLLMServer, Say, fake_llm_server
from tests.tui.commands.conftest import Run, contents
from tui.set_up.first_configuration import CRYPTO_AMONG_SHARES, example, new_account, with_answers
from tui.settings.invocation import Invocation

REPO = Path(__file__).parents[3]
PRICES = "date,open,high,low,close,adj_close,volume\n2024-01-02,10,12,9,11,11,100\n2024-01-03,11,12,10,11.5,11.5,90\n"


BUILT_IN_NAMES = [
    ("ollama", "http://127.0.0.1:11434/v1", None),
    ("lmstudio", "http://127.0.0.1:1234/v1", None),
    ("vllm", "http://127.0.0.1:8000/v1", None),
    ("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    ("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    ("google", "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
    ("xai", "https://api.x.ai/v1", "XAI_API_KEY"),
]


# init


def test_the_example_ships_with_the_program() -> None:
    shown = (REPO / "config.example.toml").read_text(encoding="utf-8")
    assert example() == shown, "copy config.example.toml over tui/set_up/config.example.toml"


def test_the_defaults_are_written_commented_and_for_the_owner_alone(run: Run, paperdesk_home: Path) -> None:
    said = run("init", "--yes")
    file = paperdesk_home / "config.toml"
    assert said.code == 0 and f"wrote {file}" in said.out
    assert file.read_text(encoding="utf-8") == example()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert load_config(file, environ={}).config == Config()


def test_what_was_written_is_a_document(run: Run, paperdesk_home: Path) -> None:
    said = run("init", "--yes", "--json")
    assert said.json == {"schema": 1, "file": str(paperdesk_home / "config.toml"), "notes": []} and said.code == 0


def test_a_configuration_that_is_there_stays(run: Run, paperdesk_home: Path) -> None:
    file = paperdesk_home / "config.toml"
    file.write_text("[desk]\ncash = 7\n")
    refused = run("init", "--yes")
    assert refused.code == 78 and "remove it" in refused.err and refused.err.count("\n") == 1
    assert file.read_text() == "[desk]\ncash = 7\n"


def test_a_file_with_nothing_but_what_was_chosen_in_the_app_is_gone_on_with(run: Run, paperdesk_home: Path) -> None:
    for key, value in (("app.theme", "light"), ("app.notify", "false"), ("bindings.desk.run", "f5")):
        assert run("config", "set", key, value).code == 0
    assert run("init", "--yes").code == 0
    text = (paperdesk_home / "config.toml").read_text()
    config = load_config(paperdesk_home / "config.toml", environ={}).config
    assert (config.app.theme, config.app.notify, config.bindings) == ("light", False, {"desk.run": "f5"})
    assert {line for line in example().splitlines() if line.startswith("# ") and " = " not in line} <= {
        *text.splitlines()
    }
    assert run("init", "--yes").code == 78, "it is a configuration now"


def test_answers_are_asked_for_again_until_they_can_be_used(
    run: Run, paperdesk_home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    data = tmp_path / 'da"ta'
    (data / "prices").mkdir(parents=True)
    (data / "prices" / "AAPL.csv").write_text(PRICES)
    answers = [
        "Growth!",
        "growth",
        "/nowhere",
        str(data),
        "MSFT",
        "aapl,AAPL",
        "finvizion",
        "finvision",
        "-5",
        "5,0000",
        "50,000",
    ]
    answers += ["openai", "replay", "openai:gpt-5"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(answers) + "\n"))
    said = run("init")
    assert said.code == 0
    config = load_config(paperdesk_home / "config.toml", environ={}).config
    assert (config.desk.name, config.desk.symbols, config.desk.cash) == ("growth", ("AAPL",), 50_000)
    assert (config.data.folder, config.models.default) == (str(data), "openai:gpt-5")
    for complaint in (
        "use up to 16",
        "no prices folder",
        "MSFT has no prices",
        "did you mean finvision?",
        "greater than 0",
        "models.replay = replay-only",
    ):
        assert complaint in said.err


@pytest.mark.parametrize(("symbols", "noted"), [("ORVL", False), ("ORVL,WRNN-USD", True), ("WRNN-USD", False)])
def test_a_coin_among_shares_is_told_with_what_it_does_to_the_close(
    run: Run, paperdesk_home: Path, monkeypatch: pytest.MonkeyPatch, symbols: str, noted: bool
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(("mixed", "", symbols, "", "", "")) + "\n"))
    said = run("init")
    assert said.code == 0 and (CRYPTO_AMONG_SHARES in said.out) is noted


def test_where_nobody_answers_it_says_so_and_writes_nothing(
    run: Run, paperdesk_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    monkeypatch.setattr(os, "isatty", lambda fd: False)
    said = run("init")
    assert said.code == 2 and "--yes" in said.err
    *_, question, error = said.err.splitlines()
    assert question.startswith("Name of the desk") and error.startswith("paperdesk: init asks questions")
    assert contents(paperdesk_home) == {}


def test_only_what_was_answered_differs_from_the_example() -> None:
    text = with_answers(example(), {"desk.name": "growth", "models.default": "offline"})
    differing = [(a, b) for a, b in zip(example().splitlines(), text.splitlines(), strict=True) if a != b]
    assert differing == [('name = "demo"', 'name = "growth"')]


# import


def test_prices_are_imported_once(run: Run, tmp_path: Path) -> None:
    source, folder = tmp_path / "aapl.csv", tmp_path / "data"
    source.write_text(PRICES)
    first = run("import", "prices", str(source), "--symbol", "aapl", "--data", str(folder), "--json")
    assert (first.code, first.json["added"], first.json["unchanged"]) == (0, 2, 0)
    assert first.json["path"] == str(folder / "prices" / "AAPL.csv")
    written = contents(folder)
    again = run("import", "prices", str(source), "--symbol", "aapl", "--data", str(folder))
    assert again.out.strip().endswith("2 unchanged")
    assert contents(folder) == written


def test_a_bad_row_is_named_and_nothing_is_written(run: Run, tmp_path: Path) -> None:
    source, folder = tmp_path / "aapl.csv", tmp_path / "data"
    source.write_text(PRICES.replace(",12,10,", ",9,10,"))
    said = run("import", "prices", str(source), "--symbol", "AAPL", "--data", str(folder))
    assert said.code == 65
    assert "line 3" in said.err and said.err.count("\n") == 1
    assert not folder.exists()


def test_import_needs_a_kind_a_symbol_and_a_folder(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "aapl.csv"
    source.write_text(PRICES)
    assert run("import", "prices", str(source), "--symbol", "AAPL").code == 2
    assert run("import", "prices", str(source), "--data", str(tmp_path)).code == 2
    assert run("import", "quotes", str(source), "--symbol", "AAPL").code == 2
    assert run("import", "news", str(tmp_path / "no.csv"), "--symbol", "AAPL", "--data", str(tmp_path)).code == 65


def test_the_configured_folder_is_the_default(run: Run, paperdesk_home: Path, tmp_path: Path) -> None:
    (paperdesk_home / "config.toml").write_text(f'[data]\nfolder = "{tmp_path / "data"}"\n')
    (tmp_path / "news.jsonl").write_text('{"date": "2024-01-02", "headline": "A word", "summary": ""}\n')
    said = run("import", "news", str(tmp_path / "news.jsonl"), "--symbol", "BRK.B")
    assert said.code == 0 and "1 added" in said.out
    assert (tmp_path / "data" / "news" / "BRK.B.jsonl").is_file()


# models


def configured(home: Path, server: FakeLLMServer) -> None:
    """A desk whose decisions are answered by a server on loopback."""
    (home / "config.toml").write_text(
        f'[models.agents.decision]\nmodel = "local:tiny"\n[endpoints.local]\nbase_url = "http://127.0.0.1:{server.port}/v1"\n'
    )


def test_models_of_a_desk_that_is_not_configured(run: Run, paperdesk_home: Path) -> None:
    document = run("models", "--json").json
    assert {agent["spec"] for agent in document["agents"].values()} == {"offline"}
    assert {"news", "chart", "performance-reflection", "signal-reflection", "decision"} <= set(document["agents"])
    assert document["prices"]["as_of"] in run("models").out
    assert run("models", "--check").code == 0
    assert contents(paperdesk_home) == {}


def test_a_model_that_answers_is_said_to(run: Run, paperdesk_home: Path) -> None:
    with fake_llm_server() as server:
        configured(paperdesk_home, server)
        server.play(Say(text='{"word": "ready"}'))
        said = run("models", "--check", "--json")
    assert said.code == 0
    assert said.json["check"]["local:tiny"].items() >= {"answered": True, "vision": False, "streams": True}.items()
    assert said.json["agents"]["decision"]["spec"] == "local:tiny"
    assert not said.json["agents"]["decision"]["price_known"]
    assert list(contents(paperdesk_home)) == ["config.toml"]


def test_a_model_that_does_not_answer_is_a_no(run: Run, paperdesk_home: Path) -> None:
    with fake_llm_server() as server:
        configured(paperdesk_home, server)
        server.plays_preflight = True
        server.play(Fail(404, "no such model"))
        said = run("models", "--check")
    assert said.code == 1
    assert "no such model" in said.out
    (paperdesk_home / "config.toml").write_text('[models]\ndefault = "lokal:tiny"\n')
    refused = run("models")
    assert refused.code == 78 and "models.default: unknown model spec 'lokal:tiny'" in refused.err


def test_a_wrong_model_is_told_with_what_is_meant(run: Run, paperdesk_home: Path) -> None:
    asked = ("backtest", "--symbols", "ORVL", "--from", "2025-03-11", "--to", "2025-03-13", "--model")
    for wrong, meant in (
        ("gpt-5.4-mini", "openai:gpt-5.4-mini"),
        ("openai/gpt-5.4-mini", "openai:gpt-5.4-mini"),
        ("opnai:gpt-5.4-mini", "openai:gpt-5.4-mini"),
        ("claude-opus-5", "anthropic:claude-opus-5"),
        ("olama:qwen3:8b", "ollama:qwen3:8b"),
        ("qwen3:8b", "ollama:qwen3:8b"),
        ("gemini-3-pro", "google:gemini-3-pro"),
    ):
        refused = run(*asked, wrong)
        assert refused.code == 2 and f"did you mean {meant}?" in refused.err, refused.err
    for setting in ('default = "gpt-5.4-mini"', '[models.agents.decision]\nfallback = "gpt-5.4-mini"'):
        (paperdesk_home / "config.toml").write_text(f"[models]\n{setting}\n")
        refused = run("models")
        assert refused.code == 78 and "did you mean openai:gpt-5.4-mini?" in refused.err


@pytest.mark.parametrize(("name", "address", "variable"), BUILT_IN_NAMES)
def test_a_built_in_name_needs_no_endpoint_and_takes_one(
    run: Run, paperdesk_home: Path, monkeypatch: pytest.MonkeyPatch, name: str, address: str, variable: str | None
) -> None:
    known = run("models", "--json").json["endpoints"][name]
    assert (known["base_url"], known["key_env"], known["local"]) == (address, variable, variable is None)
    with fake_llm_server() as server:
        server.plays_preflight = True
        server.play(Say(text='{"word": "ready", "symbol": "QZXW"}'))
        (paperdesk_home / "config.toml").write_text(
            f'[models]\ndefault = "{name}:m"\n[endpoints.{name}]\nbase_url = "{server.openai_url}"\n'
        )
        changed = run("models", "--json").json["endpoints"][name]
        assert changed == known | {"base_url": server.openai_url}
        if variable is not None:
            monkeypatch.delenv(variable, raising=False)
            refused = run("models", "--check")
            assert refused.code == 1 and f"set {variable}" in " ".join(refused.out.split()) and not server.requests
            monkeypatch.setenv(variable, "sk-of-the-test")
        assert run("models", "--check").code == 0
        assert server.headers[0]["authorization"] == f"Bearer {'none' if variable is None else 'sk-of-the-test'}"


@pytest.fixture
def at_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    """A server of models at the address of a local name; nobody is at the other two."""
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        closed = f"http://127.0.0.1:{nobody.getsockname()[1]}/v1"
    with fake_llm_server() as server:
        for name, address in (("OLLAMA", closed), ("LMSTUDIO", server.openai_url), ("VLLM", closed)):
            monkeypatch.setenv(f"PAPERDESK_ENDPOINTS__{name}__BASE_URL", address)
        yield server


def initialised(run: Run, monkeypatch: pytest.MonkeyPatch, home: Path) -> str:
    """The model that init proposes."""
    (home / "config.toml").unlink(missing_ok=True)
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n" * 6))
    assert run("init").code == 0
    return load_config(home / "config.toml", environ={}).config.models.default


def test_a_set_up_proposes_a_model_that_answers_on_this_machine(
    run: Run, paperdesk_home: Path, monkeypatch: pytest.MonkeyPatch, at_home: FakeLLMServer
) -> None:
    at_home.models = ["nomic-embed-text", "qwen3:8b", "llama4"]
    assert initialised(run, monkeypatch, paperdesk_home) == "lmstudio:qwen3:8b"
    (asked,) = [
        one for one in new_account(Invocation(config_file="unused")).questions({}) if one.key == "models.default"
    ]
    assert asked.proposed == "lmstudio:qwen3:8b"
    at_home.models = []
    assert initialised(run, monkeypatch, paperdesk_home) == "offline"
    at_home.models = ["m"]
    assert run("init", "--yes", "--config", str(paperdesk_home / "other.toml")).code == 0
    assert 'default = "offline"' in (paperdesk_home / "other.toml").read_text()


def test_a_set_up_asks_nobody_beyond_this_machine(
    run: Run, paperdesk_home: Path, monkeypatch: pytest.MonkeyPatch, at_home: FakeLLMServer
) -> None:
    monkeypatch.setenv("PAPERDESK_ENDPOINTS__LMSTUDIO__BASE_URL", "http://models.example:80/v1")
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{at_home.port}")
    assert initialised(run, monkeypatch, paperdesk_home) == "offline"
    assert not at_home.gets


# doctor


def test_a_healthy_desk(run: Run, desk: Path) -> None:
    before = contents(desk)
    said = run("doctor", "--json")
    assert said.code == 0 and said.json["healthy"]
    found = {(check["area"], check["name"]): check for check in said.json["checks"]}
    assert found["Journals", "desk demo"]["state"] == "ok"
    assert found["Data", "source"]["detail"] == "the generated demo market, seed 7"
    assert run("doctor").code == 0
    assert contents(desk) == before


def test_every_value_that_is_not_a_default_has_an_origin(run: Run, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (desk / "config.toml").write_text("[desk]\ncash = 5000\nseed = 0\n")
    monkeypatch.setenv("PAPERDESK_DESK__SEED", "4")
    checks = {check["name"]: check["detail"] for check in run("doctor", "--json").json["checks"]}
    assert checks["desk.cash"] == f"5000 (from {desk / 'config.toml'})"
    assert checks["desk.seed"] == "4 (from environment PAPERDESK_DESK__SEED)"
    assert "desk.preset" not in checks


def test_what_is_missing_or_broken_fails_and_keys_are_never_shown(
    run: Run, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-never-to-be-seen-0123456789"
    (desk / "config.toml").write_text('[models]\ndefault = "anthropic:claude-x"\n')
    assert run("doctor").code == 1
    assert "missing, and a configured model needs it" in run("doctor").out
    monkeypatch.setenv("ANTHROPIC_API_KEY", secret)
    said = run("doctor")
    assert said.code == 0 and "present" in said.out and secret not in said.out
    (desk / "data" / "desks" / "demo.db").write_bytes(b"no database, though long enough to have a header of one")
    said = run("doctor", "--json")
    assert said.code == 1 and not said.json["healthy"]
    # Without its journal the desk's memory belongs to nothing that can be read.
    broken = [check["name"] for check in said.json["checks"] if check["state"] == "fail"]
    assert sorted(broken) == ["desk demo", "memory"] and secret not in said.out


def test_a_broken_configuration_is_a_failed_check(run: Run, fresh: Path) -> None:
    (fresh / "config.toml").write_text("[desk]\ncahs = 5\n")
    said = run("doctor")
    assert said.code == 1 and said.err == ""
    assert "did you mean cash?" in " ".join(said.out.split())


def test_coverage_by_symbol(run: Run, fresh: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    (folder / "prices").mkdir(parents=True)
    (folder / "prices" / "AAPL.csv").write_text(PRICES)
    (folder / "prices" / "MSFT.csv").write_text(PRICES.replace("2024-01-03", "2024-01-04"))
    (fresh / "config.toml").write_text(f'[desk]\nsymbols = ["AAPL", "MSFT"]\n[data]\nfolder = "{folder}"\n')
    said = run("doctor", "--json")
    checks = {check["name"]: check for check in said.json["checks"]}
    assert said.code == 1
    assert checks["AAPL"]["detail"].startswith("2 bars without a gap from 2024-01-02 to 2024-01-03")
    assert "a daily run needs them until" in checks["AAPL"]["detail"] and checks["AAPL"]["state"] == "note"
    assert (checks["MSFT"]["state"], "2024-01-03" in checks["MSFT"]["detail"]) == ("fail", True)


def test_connect_asks_the_services(run: Run, fresh: Path) -> None:
    with fake_llm_server() as server:
        configured(fresh, server)
        server.plays_preflight = True
        server.play(Fail(404, "no such model"))
        said = run("doctor", "--connect", "--json")
    assert said.code == 1
    (failed,) = [check for check in said.json["checks"] if check["state"] == "fail"]
    assert (failed["area"], failed["name"]) == ("Services", "local:tiny") and "no such model" in failed["detail"]
