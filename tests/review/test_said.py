"""Every line of every review is one that somebody has read: no sentence or number changes unseen."""

from __future__ import annotations

import difflib
from itertools import islice

from tests.review.said import FILE, all_said


def test_reviews_say_what_was_read() -> None:
    known, found = FILE.read_text(encoding="utf-8"), all_said()
    if found != known:
        changes = difflib.unified_diff(known.splitlines(), found.splitlines(), "read", "said", "", "", 0, "")
        told = "\n".join(islice(changes, 40))
        raise AssertionError(f"python -m tests.review.said writes what is said now; read it.\n{told}")
