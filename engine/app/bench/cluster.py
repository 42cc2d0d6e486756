"""A team of Dask workers: on other machines behind a scheduler, or on this one. The only module that imports Dask.

A worker's first task compares its program, the user's code and the data with the coordinator's. Each run is played in a
folder of the worker's own; what it kept, and the looks that it took, come back with its result and are kept here. No
worker asks a model.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import shutil
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.app.records.own_process import no_main_module
from engine.app.records.trial_index import check_trial_index, count_trials
from engine.app.records.workers import Team, processes
from engine.app.research.run_spec import user_code
from engine.domain.run import RunSpec, Trial
from engine.errors import (
    ConfigError,
    CredentialsRefused,
    MalformedData,
    NetworkError,
    PaperdeskError,
    TryAgainLater,
    UsageError,
    WorkLost,
)
from engine.journal.reader import JournalReader
from engine.program_files import PACKAGES, PROGRAM, need_extra
from engine.settings import places
from engine.settings.user_code import code_hash

if TYPE_CHECKING:
    from distributed import Client

_SILENT = logging.CRITICAL + 1
LOCAL = "local"
"""The scheduler of workers that are started here."""
_UNDISTURBED = """
import signal

signal.signal(signal.SIGINT, signal.SIG_IGN)
"""
"""The beginning of a worker of our own: Ctrl-C reaches every process of the terminal, and is the parent's to answer."""
CONNECTING, STARTING = 10, 60
"""Seconds that a scheduler has to answer, and that a cluster without a worker has to get one."""


def team_of(count: int, scheduler: str | None, specs: Sequence[RunSpec]) -> AbstractContextManager[Team]:
    """A team that plays runs of some specs until the block ends: `count` processes at most, or the workers of a
    scheduler. Raises as `cluster` does."""
    return processes(min(count, len(specs))) if scheduler is None else cluster(scheduler, count, specs)


@contextmanager
def cluster(scheduler: str, count: int, specs: Sequence[RunSpec]) -> Iterator[Team]:
    """The workers of a scheduler, or `count` of our own for LOCAL, that play runs of some specs until the block ends.

    Raises ConfigError without Dask, without certificates for tls://, and for a worker with other code, MalformedData
    for one with other data, UsageError for what is no address, NetworkError where no scheduler answers,
    CredentialsRefused where certificates do not match, TryAgainLater where it has no workers, and what
    `check_trial_index` raises.
    """
    need_extra("cluster", "distributed", used_by="--scheduler")
    check_trial_index()
    with _local(count) if scheduler == LOCAL else _remote(scheduler) as client:
        _wait_for_one(client)
        files = {file for spec in specs for file in user_code(spec)}
        folders = {Path(spec.data.folder).expanduser() for spec in specs if spec.data.folder is not None}
        ours = Belongings.here(client.id, tuple(sorted(files)), tuple(sorted(folders)))
        for worker, fault in client.run(difference, ours, on_error="return").items():
            if isinstance(fault, PaperdeskError):
                raise _of(worker, fault)
            if fault is not None:
                raise ConfigError(f"the worker {worker} has no Paperdesk like this one ({fault}): install it there")
        executor = client.get_executor(pure=False)
        yield Team(
            submit=lambda work, item: executor.submit(_play_there, ours, work, item),
            result=lambda future: _result(future, scheduler),
            check=lambda: _wait_for_one(client),
        )


@contextmanager
def _remote(address: str) -> Iterator[Client]:
    from distributed import Client
    from distributed.comm import CommClosedError

    for name in ("distributed", "distributed.client", "tornado.application"):
        logging.getLogger(name).setLevel(_SILENT)  # what is lost is told here
    try:
        asyncio.run(_try(address))  # a client that has failed to connect closes seconds later, with a traceback
        client = Client(address, timeout=CONNECTING, set_as_default=False)
    except (TypeError, RuntimeError, FileNotFoundError, ssl.SSLError) as error:  # before anything is sent
        raise _faulty(address, error) from None
    except OSError as error:
        if address.startswith("tls:") and isinstance(error, CommClosedError):  # it answers, and ends the connection
            signed = "its certificate and this machine's have to be signed by the same authority"
            raise CredentialsRefused(f"no TLS with {address}: {signed} (docs/cluster.md)") from None
        raise NetworkError(f"no scheduler answers at {address} ({error}): start `dask scheduler` there") from None
    except ValueError as error:
        raise UsageError(f"--scheduler {address}: {error}; give tcp://HOST:PORT, tls://HOST:PORT or {LOCAL}") from None
    with client:
        yield client


def _faulty(scheduler: str, error: Exception) -> ConfigError:
    return ConfigError(f"--scheduler {scheduler}: {error}: docs/cluster.md has the settings of TLS")


async def _try(address: str) -> None:
    from distributed import Security
    from distributed.comm import connect

    comm = await connect(address, timeout=CONNECTING, **Security().get_connection_args("client"))
    await comm.close()


@contextmanager
def _local(count: int) -> Iterator[Client]:
    import dask
    from distributed import LocalCluster

    # A profile of each second would be kept for an hour, hundreds of megabytes by then. The main module is hidden until
    # the end: a worker that was killed is started again, however often; one that is ended twice within this time would
    # not be.
    settings = {"distributed.worker.profile.enabled": False, "distributed.deploy.lost-worker-timeout": "30 days"}
    with dask.config.set(settings), no_main_module():
        try:
            started = LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                dashboard_address=None,
                scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # it listens there all the same
                silence_logs=_SILENT,
                preload=[_UNDISTURBED],
            )
        except (RuntimeError, OSError) as error:
            cause: BaseException = error
            while cause.__cause__ is not None:
                cause = cause.__cause__
            named = getattr(cause, "filename", None) is not None  # OpenSSL does not name a certificate that is missing
            if isinstance(cause, TypeError | ssl.SSLError) or (isinstance(cause, FileNotFoundError) and not named):
                raise _faulty(LOCAL, error) from None
            raise TryAgainLater(f"--scheduler {LOCAL}: no workers can be started here ({error})") from None
        with started, _remote(started.scheduler_address) as client:
            yield client


def _wait_for_one(client: Client) -> None:
    """Wait until there is a worker; one that was killed may be about to be started again."""
    if client.scheduler_info(n_workers=1).get("workers") == {}:  # a lost scheduler tells none, and ends every future
        try:
            client.wait_for_workers(1, timeout=STARTING)
        except TimeoutError:
            raise TryAgainLater("the scheduler has no workers: start some with `dask worker`") from None


def _result(future: Future[Returned], scheduler: str) -> Any:
    from distributed import KilledWorker

    try:
        returned = future.result()
    except KilledWorker as error:
        raise WorkLost(f"has ended several workers ({error.last_worker.address}): see their logs") from None
    except CancelledError:
        raise TryAgainLater(f"the scheduler {scheduler} was lost: start it again") from None
    returned.keep()
    return returned.value


@dataclass(frozen=True, slots=True)
class Belongings:
    """Hashes of what a coordinator and its workers must have alike.

    coordinator: its name; a worker compares once for each.
    files, folders: of the user's code, and of data.
    program: of Paperdesk's files, beside the versions that decide figures.
    """

    coordinator: str
    files: tuple[Path, ...]
    folders: tuple[Path, ...]
    program: str
    code: str | None
    data: str | None

    @classmethod
    def here(cls, coordinator: str, files: tuple[Path, ...], folders: tuple[Path, ...]) -> Belongings:
        """Those of this machine."""
        code, data = (code_hash(file for file in found if file.is_file()) for found in (files, _data_files(folders)))
        return cls(coordinator, files, folders, _program(), code, data)


def _data_files(folders: Iterable[Path]) -> Iterator[Path]:
    for folder in folders:
        yield from (one for one in sorted(folder.rglob("*")) if one.suffix not in {".part", ".lock"})


@cache
def _program() -> str:
    """The program as this process has loaded it: files that change later are not what it plays by."""
    files = (one for name in PACKAGES for one in sorted((PROGRAM / name).rglob("*")) if "__pycache__" not in one.parts)
    versions = (platform.python_version(), *map(version, ("numpy", "pandas")))
    return " ".join((*versions, str(code_hash(one for one in files if one.is_file()))[:12]))


@cache
def difference(theirs: Belongings) -> PaperdeskError | None:
    """In a worker: what its coordinator has otherwise; None for nothing."""
    own = Belongings.here(theirs.coordinator, theirs.files, theirs.folders)
    if own.program != theirs.program:
        return ConfigError(f"runs another Paperdesk ({own.program}, here {theirs.program}): install this one there")
    if own.code != theirs.code:
        return ConfigError(f"has other code in {', '.join(map(str, theirs.files))}: copy this machine's there")
    if own.data != theirs.data:
        return MalformedData(f"has other data in {', '.join(map(str, theirs.folders))}: copy this machine's there")
    return None


def _of(worker: str, fault: PaperdeskError) -> PaperdeskError:
    return type(fault)(f"the worker {worker} {fault}")


@dataclass(frozen=True, slots=True)
class Returned:
    """A result of work, with the files that it kept (by their paths in the data folder) and the looks that it took."""

    value: Any
    files: Mapping[str, bytes]
    trials: tuple[Trial, ...]

    def keep(self) -> None:
        """Keep here what was kept there, the looks first: a run that is there is not played again."""
        count_trials(self.trials)
        for name, content in self.files.items():
            path = places.data_dir() / name
            places.make_folder(path.parent)
            part = places.part_of(path)
            part.write_bytes(content)
            part.replace(path)


_playing = threading.Lock()


def _play_there(theirs: Belongings, work: Callable[[Any], Any], item: object) -> Returned:
    """In a worker: do work in a folder of its own. Raises what the work raises, and the difference to the
    coordinator."""
    from distributed import get_worker

    with _playing:  # a worker's threads share its environment
        if (fault := difference(theirs)) is not None:  # in one that came later
            raise _of(get_worker().address, fault)
        os.environ[places.HOME] = str(Path(get_worker().local_directory) / "home")
        data, index = places.data_dir(), places.trial_index()
        try:
            value, trials = work(item), tuple[Trial, ...]()
            if index.exists():
                with JournalReader(index) as reader:
                    trials = reader.trials()
            kept = (one for one in places.runs_dir().rglob("*") if one.is_file() and one.suffix != ".lock")
            return Returned(value, {one.relative_to(data).as_posix(): one.read_bytes() for one in kept}, trials)
        finally:
            shutil.rmtree(data, ignore_errors=True)
