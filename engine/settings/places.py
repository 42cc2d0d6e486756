"""Paths of the program on this machine, all made here.

The platform's conventions (platformdirs) decide, unless `PAPERDESK_HOME` names one folder for everything. Nothing is
created here: the writer makes the folder.
"""

from __future__ import annotations

import errno
import glob
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from engine.errors import ConfigError, DataError, PaperdeskError

HOME = "PAPERDESK_HOME"
_REFUSED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EEXIST, errno.ENOENT, errno.ENOTDIR})
"""Errors of a folder in which nothing may be written, whatever is free on the disk."""
_APP = "paperdesk"
_KINDS = ("config", "data", "cache", "log", "state")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def home() -> Path | None:
    """The folder that `PAPERDESK_HOME` names, absolute; None where the platform's folders are used.

    Raises ConfigError where it names a file.
    """
    named = os.environ.get(HOME, "").strip()
    if not named:
        return None
    folder = Path(named).expanduser().absolute()
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{HOME} names {folder}, which is not a folder: name a folder or unset it")
    return folder


def config_file() -> Path:
    """The default configuration file."""
    return _folder("config", "") / "config.toml"


def keys_file() -> Path:
    """Keys of services, readable by their owner alone; beside the configuration."""
    return _folder("config", "") / "keys.env"


def data_dir() -> Path:
    """Folder of data that must not be lost: journals, recorded answers, memory."""
    return _folder("data", "data")


def cache_dir() -> Path:
    """Folder of data that can be made again: painted charts, probed capabilities."""
    return _folder("cache", "cache")


def session_table(calendar: str = "XNYS") -> Path:
    """The sessions of an exchange's calendar, kept between processes."""
    return cache_dir() / f"sessions-{_part('calendar', calendar)}.json"


def stored_session_table(calendar: str) -> Path | None:
    """The sessions of a calendar where they are stored already; None where they are not."""
    table = session_table(calendar)
    return table if table.is_file() else None


def learned_models() -> Path:
    """Trained models of learned strategies, by the hash of what they were trained on."""
    return cache_dir() / "models"


def search_record(name: str) -> Path:
    """Measurements of a search for parameters, by a digest of all that decides them."""
    return cache_dir() / "searches" / f"{_part('search', name)}.log"


def frames_dir() -> Path:
    """The folder of data folders that were made of DataFrames, each named by a digest of their contents."""
    return cache_dir() / "frames"


def logs_dir() -> Path:
    """Folder of the rotating logs."""
    return _folder("log", "logs")


def app_state() -> Path:
    """File of the app's own state from one opening to the next."""
    return _folder("state", "state") / "app.json"


def desks_dir() -> Path:
    """The journals of desks, one file each, with what belongs to them beside."""
    return data_dir() / "desks"


def desk_journal(desk: str) -> Path:
    """The journal of a desk. Raises ConfigError for a name that cannot be part of a file's name."""
    return desks_dir() / f"{_part('desk', desk)}.db"


def desk_memory(desk: str) -> Path:
    """The folder of a desk's memory; beside its journal. Raises ConfigError as `desk_journal` does."""
    return desks_dir() / f"{_part('desk', desk)}.memory"


def desk_spending(desk: str) -> Path:
    """File of the use of models beside a desk's runs; beside its journal. Raises ConfigError as `desk_journal`
    does."""
    return desks_dir() / f"{_part('desk', desk)}.spending"


def desk_rehearsal(desk: str) -> Path:
    """The certificate of a desk's rehearsal; beside its journal. Raises ConfigError as `desk_journal` does."""
    return desks_dir() / f"{_part('desk', desk)}.rehearsal"


def watchlists() -> Path:
    """File of the groups of symbols to look at."""
    return data_dir() / "watchlists.json"


def arenas_dir() -> Path:
    """The records of arenas, one file each."""
    return data_dir() / "arenas"


def arena_file(run: str) -> Path:
    """The record of an arena. Raises ConfigError for an id that cannot be part of a file's name."""
    return arenas_dir() / f"{_part('run', run)}.json"


def arena_lock(run: str) -> Path:
    """Lock of the one process that plays an arena; beside its record. Raises ConfigError as `arena_file` does."""
    return arenas_dir() / f"{_part('run', run)}.lock"


def bench_folder(run: str) -> Path:
    """The record of a bench that may be gone on with. Raises ConfigError for an id that cannot be part of a file's
    name."""
    return data_dir() / "benches" / _part("run", run)


def studies_dir() -> Path:
    """The records of studies, a folder each."""
    return data_dir() / "studies"


def study_folder(name: str) -> Path:
    """The record of a study. Raises ConfigError for a name that cannot be part of a file's name."""
    return studies_dir() / _part("study", name)


def lock_file(desk: str) -> Path:
    """Lock of the one process that trades for a desk; beside its journal."""
    return desks_dir() / f"{_part('desk', desk)}.lock"


def account_file(account: str) -> Path:
    """Record of the desk that trades in an account at a broker; beside the journals.

    Raises ConfigError for an id that cannot be part of a file's name.
    """
    return desks_dir() / f"{_part('account', account)}.account"


def runs_dir() -> Path:
    """The journals of backtests, one file each."""
    return data_dir() / "runs"


def run_journal(run: str) -> Path:
    """The journal of one backtest. Raises ConfigError for an id that cannot be part of a file's name."""
    return runs_dir() / f"{_part('run', run)}.db"


def run_lock(run: str) -> Path:
    """Lock of the one process that plays a backtest; beside its journal. Raises ConfigError as `run_journal` does."""
    return runs_dir() / f"{_part('run', run)}.lock"


def run_memory(run: str) -> Path:
    """Folder of a backtest's memory; beside its journal. Raises ConfigError as `run_journal` does."""
    return runs_dir() / f"{_part('run', run)}.memory"


def trial_index() -> Path:
    """Index of looks at windows; beside the folder of runs, so that it stays when runs are pruned."""
    return data_dir() / "looks.db"


def sandbox_books() -> Path:
    """Book of the local broker whose sessions a desk plays."""
    return data_dir() / "sandbox.db"


def drill_results() -> Path:
    """The latest result of the drill."""
    return data_dir() / "drill.json"


def replay_cache() -> Path:
    """Recorded answers of models; with the data, not the cache, since they were paid for."""
    return data_dir() / "replay.db"


def embeddings() -> Path:
    """Vectors of remote embedding models; with the data, as they were paid for too."""
    return data_dir() / "embeddings.db"


def market_folder() -> Path:
    """Data folder of a desk at a broker that names none; fetched data goes there."""
    return data_dir() / "market"


def make_folder(folder: Path) -> None:
    """Make a folder with its parents, where they are not there; the program's own are for their owner alone: accounts,
    positions and paid answers lie in them. Raises OSError."""
    roots = _roots()
    for one in reversed([folder, *folder.parents]):
        if not one.exists():
            private = any(one.is_relative_to(root) for root in roots)
            one.mkdir(mode=0o700 if private else 0o777, exist_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all, and make its folder. Raises as `unusable` says where nothing can be written."""
    part = part_of(path)
    try:
        make_folder(path.parent)
        try:
            # Half of a surrogate pair, which models do answer with, has no place in UTF-8.
            part.write_bytes(text.encode("utf-8", "replace"))
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise unusable(path, error) from error


def part_of(path: Path) -> Path:
    """A name beside a file for what is to take its place, another one each time: others may be writing it too."""
    return path.with_name(f"{path.name}.{os.urandom(4).hex()}.part")


def parts_of(path: Path) -> Iterator[Path]:
    """The files that processes which were killed while they wrote a file have left beside it."""
    return path.parent.glob(f"{glob.escape(path.name)}.*.part")


def unusable(path: Path, error: OSError) -> PaperdeskError:
    """The error of a file or folder that cannot be written: of the configuration where nothing may be written there,
    else (a full disk) of the data."""
    if error.errno in _REFUSED:
        return ConfigError(
            f"{path} cannot be written ({error.strerror}): make {path.parent} writable, or name another folder "
            f"({HOME} for the program's own)"
        )
    return DataError(f"{path} cannot be written ({error.strerror}): check its folder and the free space")


def _folder(kind: str, under_home: str) -> Path:
    own = home()
    return _platform_folder(kind) if own is None else own / under_home


def _roots() -> Sequence[Path]:
    """The folders in which everything of the program lies."""
    own = home()
    return [own] if own is not None else [_platform_folder(kind) for kind in _KINDS]


def _platform_folder(kind: str) -> Path:
    import platformdirs

    path: Path = getattr(platformdirs, f"user_{kind}_path")(_APP, appauthor=False)
    return path


def _part(what: str, name: str) -> str:
    """A name that stays inside its folder on every system."""
    if not _NAME.fullmatch(name) or name.endswith("."):
        raise ConfigError(f"{what} name {name!r} is not a valid file name: use letters, digits, '-', '_' and '.'")
    return name
