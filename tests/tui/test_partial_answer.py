"""An answer that is still being written shows its fields, and never its braces."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from engine.messages.answer_text import answer_text
from tui.view.partial_answer import streamed_text

texts = st.text(max_size=30)
values = texts | st.integers(-1000, 1000) | st.booleans() | st.lists(texts, max_size=3) | st.floats(-1e6, 1e6)
answers = st.dictionaries(st.from_regex(r"[a-z][a-z_]{0,9}", fullmatch=True), values, min_size=1, max_size=5)


@given(answers, st.integers(0, 400), st.booleans())
def test_every_beginning_of_an_answer_can_be_shown(answer: dict[str, object], cut: int, ascii_only: bool) -> None:
    whole = json.dumps(answer, ensure_ascii=ascii_only)
    shown = streamed_text(whole[:cut])
    names = [line.partition(":")[0] for line in shown.splitlines() if ":" in line]
    known = {line.partition(":")[0] for line in answer_text(answer).splitlines()}
    if cut >= len(whole):
        assert shown == answer_text({name: value for name, value in answer.items() if value not in (None, "")})
    # A field whose value has come is there.
    complete = json.dumps(dict(list(answer.items())[:1]), ensure_ascii=ascii_only)[:-1]
    first = next(iter(answer))
    if cut > len(complete) and str(answer[first]).strip() and answer[first] not in ([],) and first in known:
        assert first in names


def test_fields_come_one_after_the_other() -> None:
    whole = '{"reason": "It rose \\u00fcber 5 %", "action": "BUY", "size": 7, "evidence": ["S1", "S2"]}'
    assert streamed_text(whole[:4]) == ""
    assert streamed_text(whole[: whole.index("rose") + 4]) == "reason: It rose"
    assert streamed_text(whole[: whole.index("u00fc") + 3]).rstrip() == "reason: It rose"
    first = ["reason: It rose über 5 %", "action: BUY"]
    assert streamed_text(whole[: whole.index(', "size') + 8]).splitlines() == first
    assert streamed_text(whole).splitlines() == [*first, "size: 7", "evidence: S1, S2"]
    assert streamed_text(f"Here it is: ```json\n{whole}\n``` done") == streamed_text(whole)
    assert streamed_text("it rises") == "it rises"
