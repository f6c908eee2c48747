"""Other names for the same people: none gives a fresh budget."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.errors import BudgetExceeded, ParameterError
from atoll.privacy.calibration import gdp_mu
from atoll.privacy.identities import canonical
from atoll.privacy.ledger import Ledger, Release
from atoll.privacy.mechanisms import GaussianCost

ONE = [GaussianCost(gdp_mu(1.0, 1e-5))]


def accepted_before(identity: str) -> bool:
    """0.1.0 compared identities as they were typed, and refused a blank at their ends only."""
    return bool(identity) and identity == identity.strip()


@pytest.mark.parametrize(
    ("disguise", "unicode_name"),
    [
        ("Co\u200bhort", "ZERO WIDTH SPACE (U+200B)"),
        ("Cohort\u200d", "ZERO WIDTH JOINER"),
        ("\ufeffCohort", "ZERO WIDTH NO-BREAK SPACE"),
        ("Co\u00adhort", "SOFT HYPHEN"),
        ("\u202eCohort", "RIGHT-TO-LEFT OVERRIDE"),
        ("Cohort\u2066", "LEFT-TO-RIGHT ISOLATE"),
        ("Coh\u034fort", "COMBINING GRAPHEME JOINER"),
        ("Cohort\ufe0f", "VARIATION SELECTOR-16"),
        ("Co\u3164hort", "HANGUL FILLER"),
        ("Co\thort", "control character (U+0009)"),
        ("C\u043ehort", "CYRILLIC SMALL LETTER O"),
        ("\u0421ohort", "CYRILLIC CAPITAL LETTER ES"),
        ("C\u03bfhort", "GREEK SMALL LETTER OMICRON"),
        ("Coh\u0585rt", "ARMENIAN SMALL LETTER OH"),
        ("\u1d04ohort", "LATIN LETTER SMALL CAPITAL C"),
        ("C\u0251hort", "LATIN SMALL LETTER ALPHA"),
        ("Cohort\u2010a", "HYPHEN (U+2010)"),
        ("Cohort\u0329", "COMBINING VERTICAL LINE BELOW"),
        ("\u0441\u043e\u0441\u043e", "CYRILLIC SMALL LETTER ES"),  # all of it Cyrillic, and reads "coco"
        ("\u0441\u043e\u0451", "CYRILLIC SMALL LETTER ES"),  # with an accent, and reads "coë"
        ("\u03bf\u03af\u03bf", "GREEK SMALL LETTER OMICRON"),  # "oío"
        ("\u0570\u0585\u057d\u0578", "ARMENIAN SMALL LETTER HO"),  # "houn"
        ("\ua4da\ua4f3\ua4e7\ua4f3\ua4e3\ua4d4", "LISU LETTER CA"),  # "COHORT"
        ("\u13a0\u13a0", "CHEROKEE LETTER A"),  # "DD"
        ("Cohort \u01c0", "LATIN LETTER DENTAL CLICK"),  # "Cohort l"
        ("Co\u0138", "LATIN SMALL LETTER KRA"),
        ("\u0237", "LATIN SMALL LETTER DOTLESS J"),
    ],
)
def test_what_only_looks_like_the_name_was_a_new_account_and_is_refused(
    disguise: str, unicode_name: str
) -> None:
    assert accepted_before(disguise)
    with Ledger() as ledger:
        ledger.set_budget("Cohort", 1.0, 1e-5)
        for attempt in (
            lambda: ledger.set_budget(disguise, 1.0, 1e-5),
            lambda: ledger.debit(disguise, "r", ONE),
            lambda: ledger.account(disguise),
            lambda: ledger.reserve(Release.exactly(disguise, "r")),
        ):
            with pytest.raises(ParameterError) as refused:
                attempt()
            assert unicode_name in refused.value.message
        assert [account.identity for account in ledger.show()] == ["Cohort"]


@pytest.mark.parametrize(
    "same",
    [
        "cohort 7",
        "COHORT 7",
        "Cohort  7",
        "Cohort\u00a07",
        "Ｃｏｈｏｒｔ 7",
        "𝐂ohort 7",
        "Cohort ７",
        "Cohort ⑦",
    ],
)
def test_another_way_to_write_the_name_is_the_same_account(same: str) -> None:
    assert accepted_before(same)
    assert same != "Cohort 7"
    with Ledger() as ledger:
        ledger.set_budget("Cohort 7", 1.0, 1e-5)
        ledger.debit(same, "r", ONE)
        with pytest.raises(BudgetExceeded):
            ledger.debit("Cohort 7", "r2", ONE)
        assert [account.identity for account in ledger.show()] == ["Cohort 7"]


@pytest.mark.parametrize(
    "name",
    [
        "Straße-Süd",
        "Ελληνικός",
        "рак лёгких",
        "Кардиология 2024",
        "東京コホート",
        "환자군",
        "दिल्ली",
        "Bệnh nhân ung thư",
        "Łódź",
        "Iași",
        "Երևան",
        "ירושלים",
    ],
)
def test_names_of_other_scripts_are_fine(name: str) -> None:
    assert canonical(name) == canonical(name.upper())
    assert canonical("strasse-süd") == canonical("Straße-Süd")


def test_capital_eth_and_d_with_a_stroke_are_one_letter() -> None:
    assert canonical("\u00d0ATA") == canonical("\u0110ATA") == canonical("\u0111ata")


@given(st.text(max_size=12))
def test_a_key_is_its_own_key(text: str) -> None:
    """However it is typed again, what was accepted once is the same account."""
    try:
        key = canonical(text)
    except ParameterError:
        return
    assert canonical(key) == key


@pytest.mark.parametrize(
    ("typed", "other"),
    [
        ("K\u0131ds", "Kids"),  # dotless i
        ("K\u0130DS", "kids"),  # capital I with a dot
        ("\u00d0ata", "\u0110ata"),  # eth and D with a stroke, capitals that look the same
    ],
)
def test_letters_that_differ_by_a_dot_or_not_at_all_are_one_account(typed: str, other: str) -> None:
    assert accepted_before(typed)
    assert typed != other
    assert canonical(typed) == canonical(other)
