"""PAPERDESK_HOME moves every path, the platform decides without it, and no name leads out of its folder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import platformdirs
import pytest

from engine.errors import ConfigError
from engine.settings import places

ALL: tuple[Callable[[], Path], ...] = (
    places.config_file,
    places.data_dir,
    places.cache_dir,
    places.logs_dir,
    places.app_state,
    places.runs_dir,
    places.replay_cache,
    lambda: places.desk_journal("demo"),
    lambda: places.run_journal("bt-1"),
    lambda: places.desk_memory("demo"),
    lambda: places.run_memory("bt-1"),
    lambda: places.lock_file("demo"),
)


def test_home_moves_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPERDESK_HOME", str(tmp_path / "elsewhere"))
    paths = [of() for of in ALL]
    assert all(path.is_relative_to(tmp_path / "elsewhere") for path in paths)
    assert len(set(paths)) == len(paths)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("unset", ["", "   "])
def test_without_a_home_the_platform_decides(unset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPERDESK_HOME", unset)
    assert places.home() is None
    data = platformdirs.user_data_path("paperdesk", appauthor=False)
    assert places.desk_journal("demo").is_relative_to(data)
    assert places.replay_cache().is_relative_to(data)
    config = platformdirs.user_config_path("paperdesk", appauthor=False)
    assert places.config_file() == config / "config.toml"


def test_a_relative_home_does_not_move_with_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PAPERDESK_HOME", "here")
    assert places.home() == tmp_path / "here"


def test_a_home_that_is_a_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PAPERDESK_HOME", str(tmp_path / "file"))
    with pytest.raises(ConfigError):
        places.data_dir()


def test_the_lock_stands_beside_its_journal() -> None:
    assert places.lock_file("demo").parent == places.desk_journal("demo").parent


@pytest.mark.parametrize("name", ["", "..", "../up", "a/b", "a\\b", ".hidden", "x" * 101, "a\n", "dot."])
def test_names_stay_inside_their_folder(name: str) -> None:
    for of in (places.desk_journal, places.desk_memory, places.lock_file, places.run_journal, places.run_memory):
        with pytest.raises(ConfigError):
            of(name)


def test_a_home_needs_no_platformdirs(tmp_path: Path) -> None:
    code = "import sys; from engine.settings import places; places.data_dir(); print('platformdirs' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PAPERDESK_HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "False"
