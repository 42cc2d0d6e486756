"""The list of mutants follows the program, and a mutant that nobody notices is told apart from one that is killed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutants.runner import REPO, Mutant, Unusable, failing, known_mutants, program_of


def test_every_old_text_stands_once_in_the_program() -> None:
    program = program_of()
    for mutant in known_mutants():
        path, text = mutant.broken(program)
        assert text != program[path], mutant.name
        assert mutant.tests and all((REPO / file).is_file() for file in mutant.tests), mutant.name


def test_a_mutant_is_killed_or_survives_and_the_tree_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.pytest]\npythonpath = ["."]\n')
    rule, test = tmp_path / "memory" / "rule.py", tmp_path / "test_rule.py"
    rule.parent.mkdir()
    rule.write_text("FLOOR = 10\nNOTE = 'a'\n")
    test.write_text("from memory.rule import FLOOR\n\ndef test_floor():\n    assert FLOOR == 10\n")
    mutant = Mutant(name="floor", old="FLOOR = 10", new="FLOOR = 0", tests=[test.name])
    assert failing(mutant.tests, mutant, tmp_path) == ["test_rule.py::test_floor"]
    assert failing(mutant.tests, replace(mutant, old="'a'", new="'b'"), tmp_path) == []
    for unusable in (replace(mutant, old="FLOOR = 11"), replace(mutant, new="FLOOR =")):
        with pytest.raises(Unusable):
            failing(unusable.tests, unusable, tmp_path)
    assert rule.read_text() == "FLOOR = 10\nNOTE = 'a'\n"
    assert not [*(tmp_path / ".cache").iterdir()]
