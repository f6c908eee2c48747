"""What lies beside a result on its page: the ledger's account of it, and the receipt."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.report.test_html import pca_result
from tests.support.examples import pppca
from tests.support.sites import identities, pinned

from atoll.errors import ParameterError
from atoll.privacy.ledger import Ledger
from atoll.privacy.mechanisms import PureCost
from atoll.report.html import Beside, report_html
from atoll.report.html.beside import budget_table, receipt_facts
from atoll.runtime.nats.receipts import ReceiptTap
from atoll.runtime.nats.starts import approve, begin, propose


def test_the_budget_before_and_after_is_of_this_study_alone(tmp_path: Path) -> None:
    result = pca_result()
    with Ledger.create(tmp_path / "ledger.db") as book:
        book.set_budget("patients", 3.0)
        book.debit("patients", "earlier", [PureCost(0.5)], study="another")
        assert budget_table(book, result.study.digest) is None
        book.debit("patients", "this", [PureCost(0.75)], study=result.study.digest)
        book.debit("patients", "later", [PureCost(1.0)], study="another")
        table = budget_table(book, result.study.digest)
    assert table is not None
    assert [row[:5] for row in table.rows] == [("patients", "3", "0", "0.5", "1.25")]
    page = report_html(result, Beside(budget=table))
    assert "Privacy budget before and after this study" in page
    assert "1.25" in page


def test_the_receipt_of_another_study_is_refused(tmp_path: Path) -> None:
    study = pinned(pppca().study)
    keys = identities(study)
    of = propose(keys["consumer"], study, "")
    answers = {name: approve(key, of) for name, key in keys.items()}
    given = {name: one for name, (one, _) in answers.items()}
    start = begin(keys["consumer"], of, given, answers["consumer"][1])
    path = ReceiptTap(start, tmp_path / "receipt").finish(keys["consumer"], "finished")
    facts = dict(receipt_facts(path, study.digest))
    assert facts["Run"] == start.run_id.hex()
    assert "consumer, finished" in facts["Receipt"]
    with pytest.raises(ParameterError, match="the receipt of another study"):
        receipt_facts(path, pca_result().study.digest)
