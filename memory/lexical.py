"""Lexical relevancy: BM25 by the words that a query and a record share.

Document frequencies and the average length are those of the records that could be recalled at the step, in all layers:
no later record changes an earlier ranking. A record's score does not depend on the row that it lies in.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from memory.formulas import Floats
from memory.record import MemoryRecord

K1, B = 1.2, 0.75
"""Saturation of a term's frequency, and weight of a text's length: the usual constants of BM25."""

RANK_OFFSET = 60
"""The constant of reciprocal rank fusion (Cormack et al., 2009)."""

_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
"""Scripts that are written without spaces: pairs of their characters serve as words."""


def terms(text: str) -> Iterator[str]:
    """The words of a text as they are compared: without case, numbers whole, an English plural as its singular."""
    for word in _WORD.findall(text.casefold()):
        if _UNSPACED.search(word):
            yield from (word[n : n + 2] for n in range(max(1, len(word) - 1)))
        elif len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
            yield word[:-1]
        else:
            yield word


Postings = tuple[npt.NDArray[np.int64], Floats]


class TermIndex:
    """The words of records by row: for each word its rows and how often it stands there."""

    def __init__(self) -> None:
        self._rows: dict[str, array[int]] = {}
        self._counts: dict[str, array[int]] = {}
        self._lengths = array("d")
        self._read: dict[str, Postings] = {}

    def extend(self, records: Sequence[MemoryRecord]) -> None:
        """Index the records that were added since."""
        if len(self._lengths) < len(records):
            self._read = {}
        for row in range(len(self._lengths), len(records)):
            record = records[row]
            text = f"{record.text} {record.query_text}" if record.query_text else record.text
            counted = Counter(terms(text))
            self._lengths.append(counted.total())
            for word, count in counted.items():
                self._rows.setdefault(word, array("q")).append(row)
                self._counts.setdefault(word, array("q")).append(count)

    @property
    def lengths(self) -> Floats:
        """Number of words of each row."""
        return np.array(self._lengths)

    def postings(self, term: str) -> Postings | None:
        """The rows that have a term, rising, and how often; None where none has it."""
        if term not in self._read and term in self._rows:
            self._read[term] = np.array(self._rows[term]), np.array(self._counts[term], np.float64)
        return self._read.get(term)


class Corpus:
    """The records that can be recalled at a step, as the measure of how rare a word is.

    `terms` and `visible` are of each partition: its index, and the mask of the rows that can be recalled.
    """

    def __init__(self, terms: Sequence[TermIndex], visible: Sequence[npt.NDArray[np.bool_]]) -> None:
        self._terms, self._visible = terms, visible
        self._count = sum(int(np.count_nonzero(mask)) for mask in visible)
        total = sum(float(one.lengths[mask].sum()) for one, mask in zip(terms, visible, strict=True))
        self._average = total / self._count if total else 1.0
        self._weights: dict[str, float] = {}

    def weight(self, term: str) -> float:
        """Inverse document frequency of a term, above 0."""
        if term not in self._weights:
            found = 0
            for one, mask in zip(self._terms, self._visible, strict=True):
                postings = one.postings(term)
                found += 0 if postings is None else int(np.count_nonzero(mask[postings[0]]))
            self._weights[term] = float(np.log1p((self._count - found + 0.5) / (found + 0.5)))
        return self._weights[term]

    def scores(self, index: TermIndex, queries: Sequence[str]) -> list[Floats]:
        """BM25 of every row of a partition by each query."""
        asked = [set(terms(query)) for query in queries]
        shrunk = K1 * (1 - B + B * index.lengths / self._average)
        results = [np.zeros(len(shrunk)) for _ in queries]
        for word in sorted(set().union(*asked)):  # one order of adding, so that sums are the same everywhere
            postings = index.postings(word)
            if postings is None:
                continue
            rows, counts = postings
            added = self.weight(word) * (K1 + 1) * counts / (counts + shrunk[rows])
            for result, own in zip(results, asked, strict=True):
                if word in own:
                    result[rows] += added
        return results


def fused(scores: Floats, similarities: Floats) -> Floats:
    """Reciprocal rank fusion of two measures of the same records, scaled into [0, 1]; records that share no word with
    the query count by similarity alone."""
    parts = 1 / (RANK_OFFSET + _ranks(similarities)) + np.where(scores > 0, 1 / (RANK_OFFSET + _ranks(scores)), 0.0)
    return np.asarray(parts, np.float64) * ((RANK_OFFSET + 1) / 2)


def _ranks(values: Floats) -> Floats:
    """Places from 1, highest first; equal values share the first of theirs."""
    rising = np.sort(values)
    return (len(values) - np.searchsorted(rising, values, "right") + 1).astype(np.float64)
