"""What is remembered can be listed, followed, previewed, tidied and taken elsewhere; looking changes nothing."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sys
from datetime import date
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from filelock import FileLock

from connectors.wiring.services import services
from engine.app.desk.run import run_daily
from engine.app.memory import desk_memory, memory_of_desk
from engine.preset import load_preset
from engine.settings.config import load_config
from tests.tui.commands.conftest import BACKTEST, MEMORY, REMEMBERED, REMEMBERING, Run, contents

REPO = Path(__file__).resolve().parents[3]
LATER = date(2024, 4, 15)


def test_a_list_has_what_is_alive_and_filters_it(run: Run, remembering: Path) -> None:
    whole = run("memory", "list", "--json").json
    assert (whole["schema"], whole["desk"], whole["run"], whole["session"]) == (1, "demo", None, "2024-02-14")
    assert whole["alive"] == whole["count"] == len(whole["memories"]) > 10
    weights = [memory["importance"] for memory in whole["memories"]]
    assert weights == sorted(weights, reverse=True)
    narrow = run("memory", "list", "--symbol", "tmbk", "--layer", "reflection", "--json").json
    expected = [m for m in whole["memories"] if m["symbol"] == "TMBK" and m["layer"] == "reflection"]
    assert narrow["memories"] == expected != []
    text = run("memory", "list", "--symbol", "TMBK", "--limit", "1").out
    report, *more = [m for m in whole["memories"] if m["symbol"] == "TMBK"]
    assert text.startswith("Memory of desk demo, at the end of 2024-02-14\n")
    assert report["id"][:8] in text and f"{report['importance']:.1f}" in text
    assert text.rstrip().endswith(f"the 1 most important of {len(more) + 1}; --limit 0 shows all")
    none = run("memory", "list", "--symbol", "ZZZ").out
    assert "available: 10-K, 10-Q" in none and "of BXWD, TMBK" in none.replace("\n", " ")
    head, *lines = [
        line for line in run("memory", "list", "--limit", "3").out.splitlines() if "most important" not in line
    ]
    assert lines[0].split()[:6] == ["ID", "WRITTEN", "SYMBOL", "LAYER", "IMPORTANCE", "RECENCY"]
    for memory, stands, says in zip(whole["memories"][:3], lines[1::2], lines[2::2], strict=True):
        assert stands.split()[:4] == [memory["id"][:8], memory["session"], memory["symbol"], memory["layer"]]
        assert says.strip().startswith(f"{memory['kind']}: {' '.join(memory['text'].split())[:20]}")
    assert head and all(len(line) <= 100 for line in lines)


def test_a_session_is_shown_as_it_was(run: Run, remembering: Path) -> None:
    last = {m["id"]: m for m in run("memory", "list", "--json").json["memories"]}
    first = run("memory", "list", "--session", "2024-02-12", "--json").json
    assert first["session"] == "2024-02-12"
    known = {m["session"] for m in first["memories"]}
    assert max(known) == "2024-02-12" and min(known) < "2024-01-01", "filings are of their own day"
    for memory in first["memories"]:
        of_today = memory["session"] == "2024-02-12"
        assert (memory["importance"] == pytest.approx(memory["born_with"], rel=1e-3)) is of_today
        assert memory["rewards"] == 0 and memory["available"] == "2024-02-12"
        if memory["id"] in last and not last[memory["id"]]["rewards"]:
            assert last[memory["id"]]["importance"] < memory["importance"]
    assert run("memory", "list", "--session", "2024-02-09").out.endswith(
        "\nno live memories: none written yet, or all purged\n"
    )
    refused = run("memory", "list", "--session", "2024-02-10")
    assert (refused.code, refused.err.count("\n")) == (65, 1)


def test_a_life_line_tells_every_change_and_by_what(run: Run, remembering: Path) -> None:
    decided = run("why", "TMBK", "2024-02-13", "--json").json["decisions"][0]
    name = decided["evidence"][0]
    document = run("memory", "lifeline", name[:10], "--json").json
    assert document["id"] == name
    assert document["text"] == next(m["text"] for m in decided["recollections"] if m["id"] == name)
    causes = [(change["session"], change["cause"], change["by"]) for change in document["changes"]]
    assert causes[0] == ("2024-02-12", "born", document["source"])
    assert ("2024-02-13", "cited", "2024-02-13 TMBK desk 1") in causes
    text = run("memory", "lifeline", name).out
    for change in document["changes"]:
        assert f"{change['session']}  {change['cause']}" in text
    assert "  decision of 2024-02-13\n" in text


def test_a_life_line_fades_as_the_list_does(run: Run, remembering: Path) -> None:
    listed = run("memory", "list", "--json").json
    sessions = {memory["session"] for memory in listed["memories"]} | {listed["session"]}
    past = {day: run("memory", "list", "--session", day, "--json").json["memories"] for day in sessions}
    past[listed["session"]] = listed["memories"]
    for memory in listed["memories"][::4]:
        document = run("memory", "lifeline", memory["id"], "--json").json
        values = {one["session"]: (one["layer"], one["importance"]) for one in document["values"]}
        assert min(values) == memory["available"] and max(values) == listed["session"]
        for day in values.keys() & past.keys():
            (then,) = (one for one in past[day] if one["id"] == memory["id"])
            assert values[day] == (then["layer"], pytest.approx(then["importance"])), (memory["id"], day)
    now = listed["memories"][0]
    last = f"at the end of {listed['session']}: {now['layer']}, importance {now['importance']:.1f}"
    assert run("memory", "lifeline", now["id"]).out.splitlines()[-1] == last


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("lifeline", "zz"), 65, "paperdesk memory list shows ids"),
        (("lifeline",), 2, "write it as `paperdesk memory lifeline ID"),
        (("list", "ORVL"), 2, "write it as `paperdesk memory list`"),
        (("optimize", "--symbol", "ORVL"), 2, "memory optimize takes no --symbol"),
        (("list", "--preset", "desk"), 2, "memory list takes no --preset"),
        (("forget",), 2, "write it as `paperdesk memory forget ID"),
        (("forget", "zz"), 65, "no memory has the id zz"),
        (("pin", "zz", "--run", REMEMBERING), 2, "--run does not apply"),
        (("lifeline", "zz", "--reason", "x"), 2, "memory lifeline takes no --reason"),
        (("fade",), 2, "'fade' is not one of"),
        (("preview", "--preset", "finmen"), 2, "did you mean finmem"),
        (("pin", ""), 2, "the id is empty: give one"),
        (("lifeline", " "), 2, "the id is empty: give one"),
        (("list", "--run", "nix"), 65, "no run nix"),
        (("list", "--session", "2931-01-02"), 2, "is in the future"),
        (("reembed", "--embedder", "foo"), 78, "available: hash-384, minilm:FOLDER, openai:MODEL"),
    ],
)
def test_what_cannot_be_meant_is_said_in_one_line(
    run: Run, remembering: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    ended = run("memory", *arguments)
    assert (ended.code, ended.err.count("\n")) == (code, 1)
    assert said in ended.err


def test_without_the_library_of_an_embedder_it_says_what_to_install(
    run: Run, remembering: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    ended = run("memory", "reembed", "--embedder", "minilm:/models/mini")
    assert (ended.code, ended.err.count("\n")) == (78, 1)
    assert "install paperdesk[minilm], or use hash-384" in ended.err
    assert run("memory", "list").code == 0


def test_an_id_that_several_have_names_them(run: Run, remembering: Path) -> None:
    ids = sorted(m["id"] for m in run("memory", "list", "--json").json["memories"])
    shared = next(a[0] for a, b in pairwise(ids) if a[0] == b[0])
    ended = run("memory", "lifeline", shared)
    assert ended.code == 65 and f"ids that begin with {shared}" in ended.err


@pytest.mark.parametrize(
    ("preset", "said"),
    [
        (
            "finmem-code",
            (
                *("short: gone after 9 to 13", "mid: gone after 9", "long: gone after 9 to 10"),
                "Promoted on the first day by the draw alone: 50% of all news.",
            ),
        ),
        (
            "investorbench",
            ("shallow: gone after 20 to 81", "intermediate: gone after 62 to 83", "deep: gone after 173 to 230"),
        ),
        (
            "investorbench-code",
            (
                *("shallow: gone after 20 to 31", "intermediate: gone after 21 to 33", "deep: gone after 21 to 34"),
                "Promoted on the first day by the draw alone: 5% of all news.",
                "falls below 80 on its first day (80 x 0.988 = 79.04).",
                "in 28 / 89 / 248 / 248 steps (shallow / intermediate / deep / reflection); the paper says 30 / 90",
                "shallow 20 to 81, intermediate 62 to 83, deep 173 to 230,",
            ),
        ),
        ("finagent", ("market intelligence: stays", "reflection: stays")),
    ],
)
def test_a_preview_shows_how_long_memories_live(run: Run, fresh: Path, preset: str, said: tuple[str, ...]) -> None:
    out = run("memory", "preview", "--preset", preset).out
    assert all(len(line) <= 100 for line in out.splitlines())
    text = " ".join(out.split())
    for words in said:
        assert words in text
    lives = run("memory", "preview", "--preset", preset, "--json").json["lives"]
    assert lives and all(life["ends"] is None or life["ends"] >= 1 for life in lives)


def test_a_preview_takes_the_constants_of_a_file(run: Run, fresh: Path, tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    own.write_text('extends = "finmem"\nname = "mine"\n[memory.layers.deep]\nalpha = 0.95\n')

    shown = " ".join(run("memory", "preview", "--preset", str(own)).out.split())
    assert "deep: gone after 41 to 55" in shown and "changed: layers.deep.alpha" in shown

    wrong = tmp_path / "wrong.toml"
    wrong.write_text('extends = "finmem"\nname = "mine"\n[memory.layers.deep]\nalhpa = 0.95\n')
    refused = run("memory", "preview", "--preset", str(wrong))
    assert refused.code == 78
    assert refused.err == f"paperdesk: preset {wrong}: unknown key memory.layers.deep.alhpa; did you mean alpha?\n"


def test_a_backtests_memory_is_its_own(run: Run, remembering: Path) -> None:
    own = run("memory", "list", "--run", REMEMBERING, "--json").json
    assert own["run"] == REMEMBERING
    assert {memory["symbol"] for memory in own["memories"]} == {"TMBK"}
    shutil.rmtree(remembering / "data" / "desks" / "demo.memory")
    said = run("memory", "list").out
    assert said.startswith(f"Memory of backtest {REMEMBERING} (the desk demo has no memory yet")


def test_export_writes_every_memory_with_its_changes_once(run: Run, remembering: Path, tmp_path: Path) -> None:
    file = tmp_path / "memories.jsonl"
    assert run("memory", "export", str(file)).out == f"{file}: {len(file.read_text().splitlines())} memories\n"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    listed = {m["id"]: m for m in run("memory", "list", "--json").json["memories"]}
    assert set(listed) <= {row["id"] for row in rows}
    for row in rows:
        assert row["changes"][0]["cause"] == "born"
        if row["id"] in listed:
            assert row["text"] == listed[row["id"]]["text"]
    again = run("memory", "export", str(file))
    assert again.code == 65 and "already exists" in again.err


def test_reading_changes_nothing_and_optimize_loses_nothing(run: Run, remembering: Path, tmp_path: Path) -> None:
    before, listed = contents(remembering), run("memory", "list", "--json").json
    name = listed["memories"][0]["id"]
    for arguments in (("list",), ("lifeline", name), ("preview",), ("export", str(tmp_path / "all.jsonl"))):
        assert run("memory", *arguments).code == 0
    assert contents(remembering) == before
    done = run("memory", "optimize", "--json").json
    assert done["records"] >= listed["alive"]
    assert run("memory", "list", "--json").json == listed


@pytest.mark.slow
def test_while_another_process_writes_a_writer_ends_with_75_and_readers_read(run: Run, remembering: Path) -> None:
    listed = run("memory", "list", "--json").json
    with FileLock(remembering / "data" / "desks" / "demo.memory" / "memory.lock"):
        for arguments in (("memory", "optimize"), ("--daily", "--session", "2024-02-15")):
            ended = run(*arguments)
            assert (ended.code, ended.result) == (75, "")
            # A daily run may warn of other things before it; why it ended is the last line.
            assert "another process is writing to it; wait until it is done, or stop it" in ended.err.splitlines()[-1]
        assert run("memory", "list", "--json").json == listed
    assert run("memory", "optimize").code == 0
    assert run("--daily", "--session", "2024-02-15").code == 0
    assert run("memory", "list", "--json").json["session"] == "2024-02-15"


def test_who_has_no_memory_says_why_in_one_line(run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("PAPERDESK_DESK__PRESET", "finvision")
        said = run("memory", "list")
        assert (said.code, said.out.count("\n")) == (0, 1)
        assert "its preset finvision keeps none" in said.out
        assert run("memory", "list", "--json").json["memories"] == []
    nothing = "the desk demo remembers nothing yet: paperdesk --daily writes what its preset desk keeps\n"
    assert run("memory", "list").out == nothing
    for arguments in (("lifeline", "ab"), ("optimize",), ("export", "x.jsonl")):
        ended = run("memory", *arguments)
        assert (ended.code, ended.err) == (65, f"paperdesk: {nothing}")


def test_a_backtest_without_memory_says_so(run: Run, backtested: Path) -> None:
    assert f"backtest {BACKTEST} has no memory: its preset finvision" in run("memory", "list", "--run", BACKTEST).out


def test_a_trail_shows_each_memory_with_what_it_was_ranked_by(run: Run, remembering: Path) -> None:
    (made,) = run("why", "TMBK", "2024-02-13", "--json").json["decisions"]
    text = run("why", "TMBK", "2024-02-13", "--full").out
    assert made["recollections"]
    assert {m["id"] for m in made["recollections"] if m["cited"]} == set(made["evidence"]) != set()
    lines = text.splitlines()
    for memory in made["recollections"]:
        place = f"  {memory['handle']}  {memory['layer']} {memory['rank']}, {memory['kind']} of {memory['session']}"
        row = lines.index(place + (", cited" if memory["cited"] else ""))
        told = " ".join(line.strip() for line in lines[row + 1 : row + 4])
        assert f"recency {memory['recency']:.3f}, relevancy {memory['relevancy']:.3f}" in told
        assert f"importance {memory['importance']:.1f}, score {memory['score']:.3f}, id {memory['id'][:8]}" in told
    handles = [memory["handle"] for memory in made["recollections"]]
    assert len(set(handles)) == len(handles)
    cited = [memory["handle"] for memory in made["recollections"] if memory["cited"]]
    assert all(f"Memory {handle}, " in made["reason"] for handle in cited)
    assert not any(memory["id"] in made["reason"] for memory in made["recollections"])
    assert text.index("Why  ") < text.index("Memory: ") < text.index("Answers: ")
    assert "Memory: " not in run("why", "TMBK", "2024-02-12", "--full").out


def test_the_app_reads_the_same_trail(run: Run, remembering: Path) -> None:
    from engine.reports.documents.decisions import followed_decisions
    from engine.settings import places
    from tui.desk.readings import Readings
    from tui.view.desk_port import Source
    from tui.widgets.trail_pane import trail_of

    # Without a market, which the closes that followed are read from.
    ask = Readings(cast(Any, SimpleNamespace(closes=lambda records, symbols: None)), None, past=False)
    source = Source("desk demo", places.desk_journal("demo"))
    listed = [one.decision for one in asyncio.run(ask.read(source, followed_decisions))]
    decided = [decision for decision in listed if decision.key.session == REMEMBERED[1]]
    assert len(decided) == 2
    for decision in decided:
        shown = asyncio.run(ask.read(source, partial(trail_of, decisions=[decision])))
        said = run("why", decision.key.symbol, str(REMEMBERED[1]), "--json")
        assert said.code == 0, said.err
        told = [
            [{**one, "closes_since": None, "to_date": None} for one in document["decisions"]]
            for document in (json.loads(json.dumps(shown)), said.json)
        ]
        assert told[0] == told[1]


def test_embedding_anew_says_what_it_did_and_needs_a_memory_and_a_spec_that_means_something(
    run: Run, remembering: Path
) -> None:
    same = run("memory", "reembed")
    assert "memories are by hash-384 already" in same.out
    made = run("memory", "reembed", "--json").json
    assert (made["desk"], made["before"], made["after"], made["changed"]) == ("demo", "hash-384", "hash-384", False)
    with memory_of_desk(services(load_config(None).config)).opened() as memory:
        kept = {record.id for record in memory.records()}
    listed = run("memory", "list", "--session", "2024-02-14", "--json").json["memories"]
    assert made["count"] == len(kept) and {one["id"] for one in listed} <= kept, "those that have faded too"
    assert (made["calls"], made["cost"]) == (0, "0")
    wrong = run("memory", "reembed", "--embedder", "hash-385")
    assert wrong.code == 78 and "hash-384, minilm:FOLDER, openai:MODEL" in wrong.err
    misplaced = run("memory", "list", "--embedder", "hash-384")
    assert misplaced.code == 2 and "memory list takes no --embedder" in misplaced.err


def test_a_change_that_came_too_late_is_said_at_the_end_of_the_run(run: Run, remembering: Path) -> None:
    of_desk, said = services(load_config(None, environ=MEMORY).config), list[str]()
    preset = load_preset(of_desk.config.desk.preset)
    calendar = of_desk.desk_calendar(of_desk.symbols)
    with desk_memory(of_desk, preset, calendar, said.append, lambda use: None) as memory:
        weak = next(m for m in run("memory", "list", "--json").json["memories"] if m["next_change"])
        assert run("memory", "pin", weak["id"], "--json").json["applied"] is False
        assert memory is not None
        memory.begin(calendar.number(REMEMBERED[-1]) + 4000.0)  # it fades while the run holds it
    assert said == [f"memory {weak['id']} has been purged: only live memories can be pinned"]


def test_a_forgotten_memory_is_never_recalled_again_and_a_pinned_one_stays(run: Run, remembering: Path) -> None:
    before = {m["id"]: m for m in run("memory", "list", "--json").json["memories"]}
    report = next(m["id"] for m in recalled(run, "TMBK", REMEMBERED[-1]) if m["kind"].startswith("10-"))
    weak = sorted(
        (m for m in before.values() if m["id"] != report and m["next_change"] and m["next_change"] < str(LATER)),
        key=lambda one: (one["next_change"], one["id"]),
    )
    pinned, *peers = weak
    undone = next(m["id"] for m in peers if m["symbol"] == pinned["symbol"])

    forgotten = run("memory", "forget", report[:12], "--reason", "of  another\ncompany", "--json").json
    assert (forgotten["id"], forgotten["changed"], forgotten["applied"]) == (report, True, True)
    assert (forgotten["forgotten"], forgotten["pinned"], forgotten["reason"]) == (True, False, "of another company")
    assert run("memory", "forget", report, "--json").json["changed"] is False
    restoring = f"is forgotten: restore it first with paperdesk memory restore {report[:8]}\n"
    refused = run("memory", "pin", report)
    assert (refused.code, refused.err.count("\n")) == (65, 1) and restoring in refused.err
    # One that was pinned before it was forgotten.
    for change in ("restore", "pin", "forget"):
        assert run("memory", change, report, "--reason", "of another company").code == 0
    for change in ("pin", "unpin"):
        refused = run("memory", change, report)
        assert (refused.code, refused.result, refused.err.count("\n")) == (65, "", 1) and restoring in refused.err
    for change in ("restore", "unpin", "forget"):
        assert run("memory", change, report, "--reason", "of another company").code == 0
    # A run that holds the memory: the change waits in the journal.
    with FileLock(remembering / "data" / "desks" / "demo.memory" / "memory.lock"):
        held = run("memory", "pin", pinned["id"], "--json").json
        assert (held["changed"], held["applied"], held["pinned"]) == (True, False, True)
        assert "a run is using the memory" in run("memory", "pin", undone).out
        run("memory", "unpin", undone)
    listed = run("memory", "list", "--json").json
    assert [(m["id"], m["by"].rpartition(": ")[2]) for m in listed["forgotten"]] == [(report, "of another company")]
    assert report not in {m["id"] for m in listed["memories"]}
    assert report[:8] in run("memory", "list", "--forgotten").out

    asyncio.run(run_daily(services(load_config(None, environ=MEMORY).config), LATER))

    alive = {m["id"]: m for m in run("memory", "list", "--json").json["memories"]}
    assert (alive[pinned["id"]]["layer"], alive[pinned["id"]]["pinned"]) == (pinned["layer"], True)
    assert alive[pinned["id"]]["next_change"] is None
    assert not {m["id"] for m in peers} <= set(alive) and not alive.get(undone, {}).get("pinned")
    shown = {m["id"] for symbol in ("TMBK", "BXWD") for m in recalled(run, symbol, LATER)}
    assert report not in shown and shown & set(before)
    line = run("memory", "lifeline", report, "--json").json["changes"]
    assert (line[-1]["cause"], line[-1]["layer"]) == ("forgotten", None)
    assert [c["cause"] for c in run("memory", "lifeline", pinned["id"], "--json").json["changes"]][-1] == "pinned"

    restored = run("memory", "restore", report, "--json").json
    assert (restored["changed"], restored["forgotten"]) == (True, False)
    again = next(m for m in run("memory", "list", "--json").json["memories"] if m["id"] == report)
    assert again["layer"] == before[report]["layer"] and again["importance"] < before[report]["importance"]
    assert run("journal", "check", "--verify").code == 0


def recalled(run: Run, symbol: str, session: date) -> list[dict[str, str]]:
    document = run("why", symbol, str(session), "--json").json
    return [memory for decision in document["decisions"] for memory in decision["recollections"]]


REFLECTIONS = {"low-level-reflection", "high-level-reflection"}


@pytest.fixture
def remembered(run: Run, fresh: Path) -> None:
    window = ("--symbols", "ORVL,HLXM", "--from", "2025-03-10", "--to", "2025-03-13")
    assert run("backtest", *window, "--preset", "finagent", "--run", "mapped").code == 0


@pytest.mark.usefixtures("remembered")
def test_a_map_holds_each_labelled_item_once_at_its_principal_components(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "types.html"
    document = run("memory", "map", str(page), "--run", "mapped", "--json").json
    memories = document["memories"]
    listed = run("memory", "list", "--run", "mapped", "--limit", "0", "--json").json["memories"]
    labelled = {(one["text"], *one["types"]) for one in listed if one["types"] and one["kind"] not in REFLECTIONS}
    assert {(one["text"], *one["types"]) for one in memories} >= labelled
    assert len(memories) == document["count"] == len({(one["text"], *one["types"]) for one in memories}) > 10
    places = np.array([(one["x"], one["y"]) for one in memories])
    assert places.mean(axis=0) == pytest.approx([0, 0], abs=1e-5)
    (across, mixed), (_, up) = np.cov(places.T)
    assert across >= up > 0 and mixed == pytest.approx(0, abs=1e-5)
    assert 0 < document["explained"] <= 1
    assert run("memory", "map", "--run", "mapped", "--json").json == document
    few = run("memory", "map", "--run", "mapped", "--limit", "3", "--json").json
    assert (few["memories"], few["count"]) == (memories[:3], document["count"])
    # A chart for each family of types, which has every item.
    charts = page.read_text().split("<h2>")[1:]
    assert len(charts) == 4
    for chart in charts:
        texts = re.findall(r"<circle [^>]+><title>(\w[^:]*): ", chart)
        assert len(texts) >= len(memories)
    bullish = sum("bullish trend" in one["types"] for one in memories)
    assert page.read_text().count("<title>bullish trend: ") == bullish > 0


@pytest.mark.usefixtures("remembered")
def test_a_map_is_of_one_symbol_where_it_is_named(run: Run) -> None:
    document = run("memory", "map", "--symbol", "hlxm", "--run", "mapped", "--json").json
    assert {one["symbol"] for one in document["memories"]} == {"HLXM"}
    text = run("memory", "map", "--symbol", "HLXM", "--run", "mapped").out
    assert re.search(r"^news +\d+ +[+-]\d\.\d{3} +[+-]\d\.\d{3}$", text, re.MULTILINE)
    assert run("memory", "map", "--symbol", "NONE", "--run", "mapped").code == 65
    assert run("memory", "map", "--layer", "deep", "--run", "mapped").code == 2
