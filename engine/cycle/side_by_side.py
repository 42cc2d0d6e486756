"""Wait for several questions at once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, TypeVar

from engine.errors import MENDED, PaperdeskError

T = TypeVar("T")


async def side_by_side(waiting: Iterable[Coroutine[Any, Any, T]]) -> Sequence[T]:
    """All results in order. Where one raises, the others have ended before it is raised again: after an error that a
    run can go on after, each with the answer that it waits for, which is paid for and recorded; after anything else
    they are cancelled."""
    tasks = [asyncio.ensure_future(one) for one in waiting]
    try:
        return await asyncio.gather(*tasks)
    except BaseException as error:
        if not (isinstance(error, PaperdeskError) and error.exit_code in MENDED):
            for task in tasks:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
