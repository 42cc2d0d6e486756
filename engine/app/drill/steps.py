"""The steps of a row, by the names that they have in the fault table."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from engine.app.drill.checks import check_run, held
from engine.app.drill.damage import Damage
from engine.app.drill.fault_table import Step
from engine.app.drill.practice import Practice
from engine.app.order_cancellation import Canceled
from engine.app.reconciliation import Reconciled
from engine.errors import PaperdeskError

ORDERS = "/v2/orders"


class Steps:
    """Takes the steps of one row."""

    def __init__(self, practice: Practice) -> None:
        self._practice = practice
        self._account = practice.account
        self._damage = Damage(practice.home, practice.services)
        self._kinds: Mapping[str, Callable[[Step], None]] = {
            "fault": self._fault,
            "clear": lambda step: self._account.clear_faults(),
            "full_at": self._full,
            "run": self._run,
            "runs": self._runs,
            "advance": self._advance,
            "order": self._order,
            "adopt": self._adopt,
            "rebuild": lambda step: self._coded(step["rebuild"], "recovering", practice.rebuild),
            "cash": lambda step: self._transfer(step, "cash"),
            "entry": lambda step: self._transfer(step, "entry"),
            "shares_of": lambda step: self._transfer(step, "shares"),
            "set": self._set,
            "damage": lambda step: self._damage.do(step["damage"]),
            "watch": self._watch,
            "cancel": lambda step: self._coded(0, "canceling", partial(practice.cancel, step["cancel"])),
            "reconcile": lambda step: self._coded(step["reconcile"], "reconciling", practice.reconcile),
        }

    def take(self, step: Step) -> None:
        """Take one step. Raises DoesNotHold where it comes out otherwise."""
        kind = next(name for name in self._kinds if name in step)
        self._kinds[kind](step)

    def undo(self) -> None:
        """Undo what was damaged and is not yet."""
        self._damage.do("undone")

    def _fault(self, step: Step) -> None:
        rule = {name: self._with_keys(value) for name, value in step.items() if name != "fault"}
        self._account.fault(step["fault"], **rule)

    def _with_keys(self, value: Any) -> Any:
        """A text of a fault with the account's keys in it."""
        if not isinstance(value, str):
            return value
        keys = self._account.environment
        return value.replace("{key}", keys["APCA_API_KEY_ID"]).replace("{secret}", keys["APCA_API_SECRET_KEY"])

    def _run(self, step: Step) -> None:
        check_run(step, self._practice.run(), self._account)

    def _full(self, step: Step) -> None:
        most = step["full_at"]
        limited = f"import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}))"
        (ended,) = self._practice.processes(
            1, [sys.executable, "-c", f"{limited}; os.execv(sys.argv[1], sys.argv[1:])"]
        )
        check_run(step, ended, self._account)

    def _runs(self, step: Step) -> None:
        ended = sorted(self._practice.processes(len(step["runs"])), key=lambda one: one.code)
        codes = [one.code for one in ended]
        held(codes == list(step["runs"]), f"the runs ended with {codes}: {ended[-1].line}")

    def _advance(self, step: Step) -> None:
        to = step["advance"]
        moment = datetime.fromisoformat(to) if "T" in to else to
        self._account.advance(moment)

    def _order(self, step: Step) -> None:
        ticket = {"symbol": step["order"], "qty": step["shares"], "side": step["side"], "type": "market"}
        self._account.control_request("POST", ORDERS, ticket | {"time_in_force": "day"})

    def _transfer(self, step: Step, part: str) -> None:
        moved = {"amount": step.get(part, ""), "symbol": step.get("shares_of", ""), "part": part}
        self._account.control_request("POST", "/sandbox/transfers", moved)

    def _set(self, step: Step) -> None:
        for name, value in step["set"].items():
            os.environ[name if name.isupper() else f"PAPERDESK_{name.replace('.', '__').upper()}"] = value

    def _adopt(self, step: Step) -> None:
        try:
            self._practice.adopt(step["adopt"])
        except PaperdeskError as error:
            held(error.exit_code == step.get("refused"), f"adopting ended with {error.exit_code}: {error}")
        else:
            held("refused" not in step, "adopting was not refused")

    def _watch(self, step: Step) -> None:
        said = self._practice.compare()
        missed = [word for word in step["watch"] if not any(word in text for text in said)]
        held(len(said) == len(step["watch"]) and not missed, f"a watch said: {'; '.join(said) or 'nothing'}")

    def _coded(self, wanted: int, doing: str, act: Callable[[], Reconciled | Canceled]) -> None:
        try:
            error: PaperdeskError | None = act().error
        except PaperdeskError as raised:
            error = raised
        code = 0 if error is None else error.exit_code
        held(code == wanted, f"{doing} ended with {code}, not with {wanted}: {error or 'both sides agree'}")
