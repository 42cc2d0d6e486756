"""Keys from a file: only one that nobody else can read, only what the environment does not say, never in an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import ConfigError, CredentialsRefused
from engine.settings.keys import load_keys


def kept(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "keys.env"
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def test_the_environment_comes_first(tmp_path: Path) -> None:
    path = kept(
        tmp_path,
        "# the paper account\nAPCA_API_KEY_ID=PKFILE\nexport APCA_API_SECRET_KEY='a secret'\n\n"
        'OPENAI_API_KEY = "sk-file"\nFRED_API_KEY=\n',
    )
    environ = {"APCA_API_KEY_ID": "PKENV", "OPENAI_API_KEY": ""}
    assert load_keys(environ, path) == ("APCA_API_SECRET_KEY", "OPENAI_API_KEY")
    assert environ == {"APCA_API_KEY_ID": "PKENV", "APCA_API_SECRET_KEY": "a secret", "OPENAI_API_KEY": "sk-file"}


def test_without_a_file_nothing_happens(tmp_path: Path) -> None:
    assert load_keys({}, tmp_path / "keys.env") == ()


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o666])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    environ: dict[str, str] = {}
    with pytest.raises(CredentialsRefused):
        load_keys(environ, kept(tmp_path, "APCA_API_KEY_ID=PKFILE", mode))
    assert environ == {}


@pytest.mark.parametrize("line", ["just a secret", "sk-secret=1", "APCA_API_KEY_ID", "PAPERDESK_DESK__NAME=secret"])
def test_a_line_that_means_nothing_is_named_and_not_shown(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigError, match="line 2") as refused:
        load_keys({}, kept(tmp_path, f"# keys\n{line}\n"))
    assert "secret" not in str(refused.value).replace(str(tmp_path), "")
