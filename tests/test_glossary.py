"""The words of the project: a glossary of one line each, and no retired word in public names and docstring openings.

Names are read from the source with `ast`, so nothing has to be imported. A name is split into the parts of snake_case
and CamelCase: `hand` is retired, `handle` is not.
"""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GLOSSARY = ROOT / "docs" / "glossary.md"
PACKAGES = ("engine", "connectors", "memory", "tui", "paperdesk")

RETIRED = {
    "asked": "requested, request or question",
    "brought": "deposits and withdrawals",
    "coin": "crypto",
    "coins": "crypto",
    "door": "data access, or the name of the adapter",
    "doors": "data access",
    "found": "report, result, or the name of the values",
    "hand": "operator controls",
    "handed": "submitted",
    "handing": "submission",
    "hands": "operator controls",
    "happened": "market activity, event",
    "hear": "on_message, receive",
    "heard": "message, received",
    "kept": "snapshot, stored, retained",
    "looking": "reconciler, reconciliation",
    "means": "buying power",
    "notebook": "trading history",
    "objection": "trading restriction",
    "occasion": "scheduled run, turn",
    "picture": "chart, image",
    "pictures": "charts, images",
    "rhythm": "schedule",
    "said": "message, requested",
    "saying": "message",
    "setting": "context",
    "standing": "position context, state, retention score",
    "standings": "states, retention scores",
    "stands": "state",
    "tell": "notify, report",
    "telling": "notification",
    "thought": "analysis",
    "thoughts": "analysis",
    "told": "notified, reported",
    "verdict": "CycleResult, judgement, outcome",
}
"""Parts of names that are retired, each with what is said instead."""

RETIRED_NAMES = {
    "arrival": "deep_link",
    "at_rest": "idle_state",
    "circumstances": "contexts, active_contexts",
    "foretold": "leaked_prices",
    "known": "last_error, or what is known: known_ids",
    "lines_of": "account activity",
    "leaving": "shutdown",
    "look": "report, snapshot, read",
    "look_index": "trial_index",
    "looks": "trials",
    "say": "report, print",
    "stretches": "holding_periods",
    "twins": "cli_equivalents",
    "unbegun": "start_refusal",
    "unless_paused": "run_unless_paused",
    "visits": "last_seen",
    "word": "command, operator control, status",
    "words": "commands, operator controls, description",
}
"""Whole names that are retired; their words have a use as a part of others (`count_words`, `known_from`)."""

ALLOWED = {
    ("connectors/sandbox/protocol.py", "not_found"): "the HTTP status 404",
    ("engine/domain/decision.py", "asked"): "a key of the JSON documents and of the journal",
    ("engine/messages/events.py", "AgentSaid"): "the type of an event in the journals on disk",
}
"""Names by file that keep a retired word, with the reason."""

QUESTIONS = frozenset(
    {"what", "who", "whose", "whom", "whoever", "whatever", "whether", "where", "wherever", "how", "why"}
)
"""Words that open no docstring: it names a thing or says what to do."""


@dataclass(frozen=True, slots=True)
class Name:
    """A public name: the file and the line where it is given."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        """As editors and terminals link it."""
        return f"{self.file}:{self.line} {self.text}"


@cache
def parsed() -> dict[str, ast.Module]:
    """Every module of the product by its path."""
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    # Nodes are no garbage, and searching for it takes time. It may also find a task of an earlier test that failed
    # unseen: its traceback is parsed within this parsing, which Python 3.11 takes for an error of its own.
    gc.disable()
    try:
        return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    finally:
        gc.enable()


@cache
def public_names() -> tuple[Name, ...]:
    return tuple(_public_names())


def _public_names() -> Iterator[Name]:
    for file, tree in parsed().items():
        for part in file.removesuffix(".py").split("/"):
            yield Name(file, 1, part)
        yield from _names_in(file, tree.body)
        yield from _flags(file, tree)


def _names_in(file: str, body: list[ast.stmt]) -> Iterator[Name]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield Name(file, node.lineno, node.name)
            yield from _names_in(file, node.body)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not node.name.startswith("_") or node.name == "__init__":
                yield Name(file, node.lineno, node.name)
                arguments = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
                yield from (Name(file, argument.lineno, argument.arg) for argument in arguments)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            yield from (Name(file, node.lineno, target.id) for target in targets if isinstance(target, ast.Name))


def _flags(file: str, tree: ast.Module) -> Iterator[Name]:
    """Flags of commands: strings such as `--adopt` in a call of `option`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            texts = [str(argument.value) for argument in node.args if isinstance(argument, ast.Constant)]
            flags = [text for text in texts if text.startswith("--")]
            # To write a call out takes longest, and few have such a string.
            if flags and ast.unparse(node.func).endswith("option"):
                yield from (Name(file, node.lineno, flag) for flag in flags)


def parts_of(name: str) -> list[str]:
    return [part.lower() for part in re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+", name)]


def instead_of(name: Name) -> str | None:
    """The words to use instead, where a name is retired."""
    if name.text.startswith("_") and name.text != "__init__":
        return None
    whole = RETIRED_NAMES.get(name.text.lower())
    return whole or next((RETIRED[part] for part in parts_of(name.text) if part in RETIRED), None)


def test_no_public_name_has_a_retired_word() -> None:
    found = [(name, instead) for name in public_names() if (instead := instead_of(name))]
    wrong = [f"{name}: say {instead}" for name, instead in found if (name.file, name.text) not in ALLOWED]
    assert not wrong, "\n".join(wrong)


def test_every_allowed_name_exists_and_has_a_reason() -> None:
    names = {(name.file, name.text) for name in public_names() if instead_of(name)}
    assert all(ALLOWED.values())
    assert not [entry for entry in ALLOWED if entry not in names]


@pytest.mark.parametrize(
    ("name", "retired"),
    [
        ("desk_hand", True),
        ("handle", False),
        ("AgentSaid", True),
        ("kept_file", True),
        ("--keep", False),
        ("words", True),
    ],
)
def test_names_are_split_into_words(name: str, retired: bool) -> None:
    assert (instead_of(Name("engine/x.py", 1, name)) is not None) is retired


def test_no_docstring_opens_with_a_question() -> None:
    wrong = []
    for file, tree in parsed().items():
        for node in ast.walk(tree):
            # Texts of attributes are docstrings too: they follow the assignment that they are of.
            text = node.value.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) else None
            if isinstance(text, str) and re.split(r"\W", text.strip(), maxsplit=1)[0].lower() in QUESTIONS:
                wrong.append(f"{file}:{node.lineno} {text.strip()[:60]}")
    assert not wrong, "\n".join(wrong)


def glossary_entries() -> dict[str, list[str]]:
    """Terms by section, in the order of the page."""
    sections = re.split(r"^## ", GLOSSARY.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {text.split("\n", 1)[0]: re.findall(r"^- \*\*(.+?)\*\*", text, re.MULTILINE) for text in sections}


def test_glossary_has_one_line_per_term_in_order() -> None:
    entries = glossary_entries()
    for section, terms in entries.items():
        assert terms == sorted(terms, key=str.lower), section
    every = [term.lower() for terms in entries.values() for term in terms]
    assert len(every) == len(set(every))
    lines = [line for line in GLOSSARY.read_text(encoding="utf-8").splitlines() if line.startswith("- ")]
    assert all(re.fullmatch(r"- \*\*[^*]+\*\*( \(.+?\))?: .+\.", line) for line in lines)


def test_glossary_and_domain_name_each_other() -> None:
    """Every public class of engine.domain has its term, and every class that the page names exists."""
    classes = {
        node.name: file for file, tree in parsed().items() for node in tree.body if isinstance(node, ast.ClassDef)
    }
    named = set(re.findall(r"`([A-Z][A-Za-z]+)`", GLOSSARY.read_text(encoding="utf-8")))
    domain = {name for name, file in classes.items() if file.startswith("engine/domain/") and name[0] != "_"}
    assert not domain - named
    assert not named - set(classes)
