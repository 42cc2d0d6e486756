"""What importing the memory loads: no heavy library before a store or a model is opened."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent.parent
HEAVY = ("lancedb", "lance", "pyarrow", "sentence_transformers", "torch", "pandas")


@pytest.mark.parametrize(
    "modules",
    ["memory", "memory.recall", "memory.preview", "memory.lancedb_store, memory.embedders, memory.in_memory_store"],
)
def test_nothing_heavy_is_loaded(modules: str) -> None:
    code = f"import sys, {modules}; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPO, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_opening_a_store_leaves_out_the_rest_client_of_lancedb_until_it_is_asked_for() -> None:
    code = """if True:
        import sys
        from memory.lancedb_store import load_library

        assert load_library().connect
        assert "lance_namespace_urllib3_client.api" not in sys.modules
        import lance_namespace_urllib3_client as client

        assert client.ApiClient and client.__name__ and "lance_namespace_urllib3_client.api" in sys.modules
        assert not hasattr(client, "nothing")
    """
    subprocess.run([sys.executable, "-c", code], cwd=REPO, check=True)
