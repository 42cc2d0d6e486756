"""Model specs as the command line and the configuration write them."""

from __future__ import annotations

import pytest

from engine.domain.model_call import ModelKind, ModelSpec, parse_model_spec
from engine.errors import UsageError


@pytest.mark.parametrize(
    ("text", "spec", "provider"),
    [
        ("offline", ModelSpec(ModelKind.OFFLINE), "offline"),
        ("replay", ModelSpec(ModelKind.REPLAY), "replay"),
        ("openai:gpt-6.1-sol", ModelSpec(ModelKind.OPENAI, "gpt-6.1-sol"), "openai"),
        ("anthropic:claude-opus-5-5", ModelSpec(ModelKind.ANTHROPIC, "claude-opus-5-5"), "anthropic"),
        ("local:qwen3:8b", ModelSpec(ModelKind.ENDPOINT, "qwen3:8b", "local"), "local"),
    ],
)
def test_a_spec_is_understood_and_written_back(text: str, spec: ModelSpec, provider: str) -> None:
    assert parse_model_spec(text, ["local"]) == spec
    assert str(spec) == text
    assert spec.provider == provider


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ofline", "did you mean offline?"),
        ("OpenAI:gpt-6.1-sol", "did you mean openai:gpt-6.1-sol?"),
        ("antropic:claude", "did you mean anthropic:claude?"),
        ("locl:qwen3", "did you mean local:qwen3?"),
        ("openai", "write 'openai:MODEL'"),
        ("openai: ", "write 'openai:MODEL'"),
        ("local:", "write 'local:MODEL'"),
        ("offline:rules", "write 'offline'"),
        ("", "available: offline, replay"),
        ("endpoint:x", "available: "),
        ("zzz", "openai:MODEL, anthropic:MODEL, local:MODEL"),
    ],
)
def test_anything_else_is_a_usage_error_that_says_what_is_possible(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_model_spec(text, ["local"])
    assert says in str(caught.value)
