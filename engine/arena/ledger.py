"""Double-entry accounts of cash and shares: whatever one account gains another one loses."""

from __future__ import annotations

from collections import defaultdict
from decimal import ROUND_DOWN, Decimal

from engine.errors import InvariantBroken

WORLD = "(world)"
"""The account of all that is not an agent: dividends come from it and fees go to it. It may be negative."""
ZERO = Decimal(0)
CENT = Decimal("0.01")


class Ledger:
    """Cash and shares of every account, and what of them open orders reserve.

    No agent's account can become negative or less than its reservation: what would do so raises InvariantBroken, since
    every order is checked before.
    """

    def __init__(self) -> None:
        self._cash: defaultdict[str, Decimal] = defaultdict(Decimal)
        self._shares: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._reserved_cash: defaultdict[str, Decimal] = defaultdict(Decimal)
        self._reserved_shares: defaultdict[tuple[str, str], int] = defaultdict(int)

    def cash(self, account: str) -> Decimal:
        """Cash of an account, reserved cash included."""
        return self._cash[account]

    def shares(self, account: str, stock: str) -> int:
        """Shares of an account, reserved ones included."""
        return self._shares[account, stock]

    def free_cash(self, account: str) -> Decimal:
        """Cash that no open order reserves."""
        return self._cash[account] - self._reserved_cash[account]

    def free_shares(self, account: str, stock: str) -> int:
        """Shares that no open order reserves."""
        return self._shares[account, stock] - self._reserved_shares[account, stock]

    def pay(self, payer: str, payee: str, amount: Decimal) -> None:
        """Move cash from one account to another; `amount` is not negative."""
        self._cash[payer] -= amount
        self._cash[payee] += amount
        self._check(amount >= 0 and self._covers_cash(payer), f"{payer} cannot pay {amount}")

    def deliver(self, giver: str, receiver: str, stock: str, quantity: int) -> None:
        """Move shares from one account to another; `quantity` is not negative."""
        self._shares[giver, stock] -= quantity
        self._shares[receiver, stock] += quantity
        covered = giver == WORLD or self.free_shares(giver, stock) >= 0
        self._check(quantity >= 0 and covered, f"{giver} cannot deliver {quantity} {stock}")

    def reserve_cash(self, account: str, amount: Decimal) -> None:
        """Reserve cash for an open order, or release it where `amount` is negative."""
        self._reserved_cash[account] += amount
        self._check(self._covers_cash(account), f"{account} cannot reserve {amount}")

    def reserve_shares(self, account: str, stock: str, quantity: int) -> None:
        """Reserve shares for an open order, or release them where `quantity` is negative."""
        self._reserved_shares[account, stock] += quantity
        self._check(self.free_shares(account, stock) >= 0, f"{account} cannot reserve {quantity} {stock}")

    def balance(self) -> tuple[Decimal, dict[str, int]]:
        """The sums over all accounts, of cash and of shares by stock: all zero, whatever happened."""
        shares: dict[str, int] = defaultdict(int)
        for (_, stock), quantity in self._shares.items():
            shares[stock] += quantity
        return sum(self._cash.values(), ZERO), dict(shares)

    def _covers_cash(self, account: str) -> bool:
        return account == WORLD or (self._reserved_cash[account] >= 0 and self.free_cash(account) >= 0)

    @staticmethod
    def _check(sound: bool, fault: str) -> None:
        if not sound:
            raise InvariantBroken(f"the arena's accounts: {fault}")


def cents(amount: Decimal) -> Decimal:
    """An amount cut to whole cents, toward zero."""
    return amount.quantize(CENT, ROUND_DOWN)
