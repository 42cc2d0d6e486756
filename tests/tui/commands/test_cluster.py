"""A study on a cluster: a scheduler and two workers as processes of their own, one of them killed at its work."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from connectors.llm import gate
from engine.app.bench import cluster
from engine.settings import places
from tests.servers.fake_llm_server import fake_llm_server, is_preflight
from tests.tui.commands.conftest import Run
from tests.tui.commands.test_study import NEAR, Trader, figures, journals, written
from tests.tui.real_terminal import REPO

pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
from dask.config import set as dask_settings

WAITING = """
import os, time
from pathlib import Path
import numpy as np

HERE = Path(__file__).parent

class Waiting:
    '''Holds; in a worker it says that it is at work, and waits for word to go on.'''

    def signals(self, history):
        if (HERE / "wait").exists():
            (HERE / f"{os.getpid()}.at-work").touch()
            while not (HERE / "go-on").exists():
                time.sleep(0.02)
        return np.ones(len(history), dtype=int)
"""
GRID = """
[study]
strategies = ["macd", "{file}:Waiting"]
presets = ["finvision"]
models = ["near:m1", "offline"]
symbols = ["ORVL"]
windows = [["2025-03-03", "2025-03-06"], ["2025-05-05", "2025-05-07"]]
"""
RULE = """
[study]
strategies = ["macd"]
symbols = ["UPWD"]
windows = [["2025-03-04", "2025-03-05"]]
"""
DEADLY = """
import os
import sys
import numpy as np

class Deadly:
    '''Holds; it ends a worker.'''

    def signals(self, history):
        if "distributed.worker" in sys.modules and "pytest" not in sys.modules:
            os._exit(1)
        return np.ones(len(history), dtype=int)
"""
RULES = """
[study]
strategies = ["macd", "{file}"]
symbols = ["ORVL"]
windows = [["2025-03-03", "2025-03-06"], ["2025-05-05", "2025-05-07"]]
"""
PRICES = "date,open,high,low,close,adj_close,volume\n" + "".join(
    f"2025-03-0{day},1{day},1{day},1{day},1{day},1{day},1000\n" for day in (3, 4, 5)
)


@contextmanager
def dask(command: str, *arguments: str, folder: Path, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.dask_{command}", *arguments, "--no-dashboard"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(REPO), "TMPDIR": str(folder)} | settings,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def begun_scheduler(folder: Path, *arguments: str, **settings: str) -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    """The file of a scheduler with its address, and its process."""
    file = folder / "scheduler.json"
    where = ("--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
    with dask("scheduler", *where, *arguments, folder=folder, **settings) as process:
        until(lambda: file.exists() and file.read_text(encoding="utf-8").rstrip().endswith("}"))
        yield file, process


@contextmanager
def begun_cluster(folder: Path, *arguments: str, **settings: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The address of a scheduler with two workers of one thread, which nobody starts again, and its process."""
    with begun_scheduler(folder, *arguments, **settings) as (file, process), ExitStack() as stack:
        for _ in range(2):
            worker = ("--scheduler-file", str(file), "--no-nanny", "--nthreads", "1")
            stack.enter_context(dask("worker", *worker, folder=folder, **settings))
        yield json.loads(file.read_text(encoding="utf-8"))["address"], process


def until(happened: Callable[[], object]) -> None:
    deadline = time.monotonic() + 300
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture(scope="module")
def workers_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workers")


@pytest.fixture(scope="module")
def scheduler(workers_folder: Path) -> Iterator[str]:
    """The address of a cluster whose workers are there."""
    from distributed import Client

    with begun_cluster(workers_folder) as (address, _), Client(address, set_as_default=False) as client:
        client.wait_for_workers(2)
        yield address


def test_other_code_and_other_data_are_refused(
    run: Run,
    paperdesk_home: Path,
    scheduler: str,
    workers_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for folder, text in ((workers_folder, PRICES), (tmp_path, PRICES.replace("1000", "2000"))):
        (folder / "market" / "prices").mkdir(parents=True)
        (folder / "market" / "prices" / "UPWD.csv").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)  # a relative folder is each process's own
    command = ("study", written(tmp_path, RULE), "--scheduler", scheduler, "--data", "market")
    data = run(*command)
    assert data.code == 65 and "other data in market" in data.err and data.err.count("\n") == 1
    monkeypatch.setattr(cluster, "_program", lambda: "1.0")
    code = run(*command)
    assert code.code == 78 and "another Paperdesk" in code.err and code.err.count("\n") == 1
    assert not journals()


@pytest.mark.parametrize(("address", "code"), [("tcp://127.0.0.1:1", 74), ("nowhere", 2), ("tls://127.0.0.1:1", 78)])
def test_an_address_without_a_scheduler_is_one_line(
    run: Run, paperdesk_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, code: int
) -> None:
    monkeypatch.setattr(cluster, "CONNECTING", 0.1)
    failed = run("study", written(tmp_path, RULE.replace("UPWD", "ORVL")), "--scheduler", address)
    assert failed.code == code and address in failed.err and failed.err.count("\n") == 1


def test_a_scheduler_that_gets_no_worker_is_tried_again_later(
    run: Run, paperdesk_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "STARTING", 0.1)
    with begun_scheduler(tmp_path) as (file, _):
        address = json.loads(file.read_text(encoding="utf-8"))["address"]
        ended = run("study", written(tmp_path, RULE.replace("UPWD", "ORVL")), "--scheduler", address)
    assert ended.code == 75 and "dask worker" in ended.err and ended.err.count("\n") == 1


def test_workers_that_cannot_be_started_here_are_no_fault_of_certificates(
    run: Run, paperdesk_home: Path, tmp_path: Path
) -> None:
    file = written(tmp_path, RULE.replace("UPWD", "ORVL"))
    with dask_settings({"temporary-directory": f"{file}/none"}):
        failed = run("study", file, "--scheduler", "local")
    assert failed.code == 75 and file in failed.err and "TLS" not in failed.err and failed.err.count("\n") == 1


def test_a_bench_keeps_the_journals_that_workers_wrote(run: Run, paperdesk_home: Path, scheduler: str) -> None:
    command = ("bench", "tradinggpt", "--from", "2025-02-20", "--to", "2025-02-21", "--keep", "--json")
    here, there = (run(*command, *more) for more in ((), ("--scheduler", scheduler)))
    assert there.json["cells"] == here.json["cells"] and there.json["pairs"] == here.json["pairs"]
    reports = [[run("report", "--run", one, "--json").json for one in said.json["runs"]] for said in (here, there)]
    assert [one["fingerprint"] for one in reports[0]] == [one["fingerprint"] for one in reports[1]] and reports[0]


def test_a_comparison_with_a_budget_is_the_same(
    run: Run, paperdesk_home: Path, scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = ("--symbols", "ORVL", "--from", "2025-03-03", "--to", "2025-03-06", "--preset", "finvision")
    command = ("compare", "--models", "offline", "--mask", "0,2", *window, "--budget", "1", "--json")
    here = run(*command, "--jobs", "2")
    monkeypatch.setenv(places.HOME, str(tmp_path / "other"))
    there = run(*command, "--scheduler", scheduler)
    assert (here.code, there.code) == (0, 0) and there.json == here.json


@pytest.mark.slow
def test_rows_are_the_same_with_a_worker_killed_and_nothing_is_paid_twice(
    run: Run, paperdesk_home: Path, scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "PACE", 0.001)
    file = Path(written(tmp_path, WAITING, "waiting.py"))
    with fake_llm_server(Trader()) as service:
        config = written(tmp_path, NEAR.format(service.openai_url), "config.toml")
        command = ("study", written(tmp_path, GRID.format(file=file)), "--config", config, "--yes", "--json")

        def questions() -> int:
            return sum(not is_preflight(body) for body in service.requests)

        with pytest.MonkeyPatch.context() as patched:
            patched.setenv(places.HOME, str(tmp_path / "other"))
            alone, looks = run(*command).json, run("trials", "--json").json
        wanted = questions()
        service.requests.clear()
        (tmp_path / "wait").touch()
        killed = []

        def kill_one_at_work() -> None:
            until(lambda: list(tmp_path.glob("*.at-work")))
            killed.append(int(next(tmp_path.glob("*.at-work")).stem))
            os.kill(killed[0], signal.SIGKILL)
            (tmp_path / "go-on").touch()

        killer = threading.Thread(target=kill_one_at_work)
        killer.start()
        together = run(*command, "--scheduler", scheduler).json
        killer.join()
    assert len(together["rows"]) == 8 and figures(together) == figures(alone) and wanted and questions() == wanted
    others = {int(path.stem) for path in tmp_path.glob("*.at-work")} - {*killed, os.getpid()}
    assert others  # the killed one's run was played again, and not here
    again = run("trials", "--json").json
    assert sorted(map(str, again)) == sorted(map(str, looks))


@pytest.mark.slow
def test_a_run_that_ends_its_workers_is_a_row_without_figures_and_the_others_finish(
    run: Run, paperdesk_home: Path, tmp_path: Path
) -> None:
    file = written(tmp_path, DEADLY, "deadly.py")
    text = RULES.replace('"macd", "{file}"', f'"{file}:Deadly", "macd"')
    command = ("study", written(tmp_path, text), "--json")
    settings = {
        "distributed.scheduler.allowed-failures": 0,
        "distributed.scheduler.worker-saturation": "inf",  # the only worker has all, and its end is charged to all
        "distributed.deploy.lost-worker-timeout": 0,  # it takes longer to be started again
    }
    with dask_settings(settings):
        rows = run(*command, "--scheduler", "local").json["rows"]
    assert [bool(row["fingerprint"]) for row in rows] == [False, False, True, True]
    assert [bool(row["note"] and "has ended several workers" in row["note"]) for row in rows] == [
        True,
        True,
        False,
        False,
    ]
    (listed,) = run("study", "list", "--json").json["studies"]
    assert (listed["runs"], listed["done"], listed["without_figures"]) == (4, 4, 2)
    assert all(row["fingerprint"] for row in run(*command).json["rows"])


@pytest.mark.slow
def test_what_was_finished_stays_when_the_scheduler_is_lost(run: Run, paperdesk_home: Path, tmp_path: Path) -> None:
    file = Path(written(tmp_path, WAITING, "waiting.py"))
    command = ("study", written(tmp_path, RULES.format(file=f"{file}:Waiting")), "--json")
    (tmp_path / "wait").touch()
    with begun_cluster(tmp_path) as (address, process):

        def lose_it() -> None:
            until(lambda: list(tmp_path.glob("*.at-work")) and journals())
            process.kill()

        killer = threading.Thread(target=lose_it)
        killer.start()
        ended = run(*command, "--scheduler", address)
        killer.join()
    assert ended.code == 75 and address in ended.err and ended.err.count("\n") == 1
    kept = journals()
    (tmp_path / "wait").unlink()
    rows = run(*command).json["rows"]
    assert kept and len(rows) == 4 and all(row["fingerprint"] for row in rows)
    assert kept.items() <= journals().items()


def tls(folder: Path, trusted: str, signed: str) -> dict[str, str]:
    """Settings of Dask by which somebody trusts one certificate, and has another."""
    prefix = "DASK_DISTRIBUTED__COMM__"
    own = {
        f"{prefix}TLS__{who}__{kind}": str(folder / f"{signed}.{kind.lower()}")
        for who in ("SCHEDULER", "WORKER", "CLIENT")
        for kind in ("CERT", "KEY")
    }
    return {f"{prefix}REQUIRE_ENCRYPTION": "True", f"{prefix}TLS__CA_FILE": str(folder / f"{trusted}.cert")} | own


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes the certificates")
def test_a_cluster_with_certificates_refuses_others(paperdesk_home: Path, tmp_path: Path) -> None:
    for name in ("own", "other"):
        made = ("-newkey", "rsa:2048", "-nodes", "-subj", "/CN=paperdesk")
        files = ("-keyout", str(tmp_path / f"{name}.key"), "-out", str(tmp_path / f"{name}.cert"))
        subprocess.run(["openssl", "req", "-x509", *made, *files], check=True, capture_output=True)
    file = written(tmp_path, RULE.replace("UPWD", "ORVL"))

    def study(address: str, settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "paperdesk", "study", file, "--scheduler", address, "--json"]
        return subprocess.run(command, check=False, cwd=REPO, env=os.environ | settings, capture_output=True, text=True)

    own = tls(tmp_path, "own", "own")
    with begun_cluster(tmp_path, "--protocol", "tls", **own) as (address, _):
        for trusted, signed in (("other", "own"), ("own", "other")):
            refused = study(address, tls(tmp_path, trusted, signed))
            assert refused.returncode == 77 and address in refused.stderr and refused.stderr.count("\n") == 1
        no_file = own | tls(tmp_path, "none", "own")
        for named, settings in ((address, {}), (address, no_file), ("local", no_file)):
            faulty = study(named, settings)
            assert faulty.returncode == 78 and "TLS" in faulty.stderr and faulty.stderr.count("\n") == 1
        assert not journals()
        done = study(address, own)
    assert address.startswith("tls://") and json.loads(done.stdout)["rows"][0]["fingerprint"], done.stderr
