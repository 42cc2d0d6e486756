"""The claim of a desk on an account at a broker: an account serves one desk, which a file of its own names."""

from __future__ import annotations

from pathlib import Path

from engine.errors import ConfigError
from engine.settings import places


def claim_account(path: Path, desk: str, account: str) -> None:
    """Note that a desk trades in an account, for good. Raises ConfigError where another desk does: each would take
    the other's orders for a stranger's."""
    try:
        places.make_folder(path.parent)
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(desk)
            return
        except FileExistsError:
            holder = path.read_text(encoding="utf-8").strip()
        if not holder:  # whoever made it was killed before it wrote its name
            path.write_text(desk, encoding="utf-8")
            return
    except OSError as error:
        raise places.unusable(path, error) from error
    if holder != desk:
        raise ConfigError(
            f"the account {account} serves the desk {holder} already, and {desk} needs one of its own: use other keys, "
            f"or delete {path} where {holder} is gone for good"
        )
