"""Results of an earlier version, run for run: what was decided, traded and owned then is so now."""

from __future__ import annotations

import json
import re

import pytest

from tests.golden.recorder import (
    RECORDS,
    REPO,
    Execute,
    compare,
    data_folder,
    default_program,
    executed_by,
    executed_here,
)
from tests.golden.results import differences, dumped, normalized, unfolded
from tests.golden.runs import RUNS, SAMPLE


@pytest.mark.parametrize(
    ("name", "execute"),
    [
        *(pytest.param(name, executed_here, id=f"{name}-here") for name in SAMPLE),
        *(pytest.param(name, executed_by(default_program()), id=name, marks=pytest.mark.slow) for name in RUNS),
    ],
)
def test_a_run_comes_to_what_was_recorded(name: str, execute: Execute, recorded_history: None) -> None:
    run = RUNS[name]
    if run.needs_data and data_folder() is None:
        pytest.skip("no folder of real data (PAPERDESK_TEST_DATA names one)")
    found = list(compare(run, execute))
    assert not found, "\n".join(found)


def test_every_record_belongs_to_a_run_and_names_no_machine() -> None:
    files = {str(file.relative_to(RECORDS)) for file in RECORDS.rglob("*.json")}
    assert files == {run.file_of(command) for run in RUNS.values() for command in run.commands}
    for file in files:
        text = (RECORDS / file).read_text(encoding="utf-8")
        assert not re.search(r"/tmp/|/home/|/root|\d\d:\d\d:\d\d\.\d|\d\d:\d\d UTC|[0-9a-f]{32}", text), file
        assert str(REPO) not in text, file


def test_added_keys_are_no_difference_and_everything_else_is() -> None:
    was = {"value": "1.00", "rows": [{"session": "a", "size": 1.0}, {"session": "b", "size": 2.0}], "none": None}
    same = {**was, "new": 1, "rows": [{**row, "owner": "desk"} for row in was["rows"]]}
    assert list(differences(was, same)) == []
    assert list(differences(was, {**was, "value": "1.01"})) == ['value: was "1.00", is "1.01"']
    assert list(differences(was, {"value": "1.00", "rows": was["rows"]})) == ["none: was null, is missing"]
    assert list(differences(was, {**was, "none": False})) == ["none: was null, is false"]
    found = list(differences(was, {**was, "rows": [{"session": "b", "size": 3.0}]}))
    assert found == [
        'rows[a]: was {"session": "a", "size": 1.0}, is missing',
        "rows[b].size: was 2.0, is 3.0",
    ]
    added = [*was["rows"], {"session": "c", "size": 0.0}]
    assert list(differences(was, {**was, "rows": added})) == [
        'rows[c]: was not there, is {"session": "c", "size": 0.0}'
    ]


def test_what_is_kept_is_read_as_it_was() -> None:
    rows = [{"session": f"2025-03-{day}", "size": day / 3, "cut": None, "reason": "x" * 70} for day in range(10, 14)]
    kept = normalized({"run": "gone", "decisions": rows, "evidence": ["1", "2"]}, brief=True)
    assert "run" not in kept and kept["evidence"] == 2
    assert unfolded(json.loads(dumped(kept))) == kept
    assert kept["decisions"][0]["reason"].startswith("#")
