"""What the benchmarks of differential privacy may claim."""

from pathlib import Path

import numpy as np
import pytest
from benchmarks.dp_utility import EPSILONS, OURS, PEERS, compared, complaints, verdict

from atoll.privacy.noise_statement import rounded_up
from benchmarks import dp_centres as centres
from benchmarks import noise_oracles as oracles
from benchmarks import noise_statement as stated


def table(ours: float, **peers: float) -> dict[str, dict[float, list[float]]]:
    """The same scores at every epsilon, with hardly any spread."""
    rows = {OURS: ours, "random subspace": 0.1} | peers
    return {
        name: {epsilon: [score - 1e-4, score + 1e-4] for epsilon in EPSILONS} for name, score in rows.items()
    }


def said(found: dict[str, dict[float, list[float]]]) -> str:
    return verdict(complaints("breast-cancer", found), compared(found))


def test_without_peers_no_comparison_is_claimed() -> None:
    found = table(0.95)
    assert compared(found) == dict.fromkeys(PEERS, 0)
    assert said(found).splitlines() == [
        "every floor holds",
        "diffprivlib not run: no comparison with it",
        "opendp not run: no comparison with it",
    ]


def test_a_comparison_counts_the_cells_in_which_a_peer_has_a_score() -> None:
    found = table(0.95, opendp=0.4)
    found["diffprivlib"] = {epsilon: [0.2] if epsilon < 0.5 else [] for epsilon in EPSILONS}
    assert "compared: diffprivlib in 2 cells, opendp in 5 cells" in said(found)


def test_a_missed_floor_and_a_peer_ahead_are_said() -> None:
    assert said(table(0.9, diffprivlib=0.1, opendp=0.1)) == "breast-cancer, epsilon 2: 0.900 is below 0.94"
    assert "epsilon 0.1: opendp is ahead by 0.010" in said(table(0.95, diffprivlib=0.1, opendp=0.96))


# --- how rows are centred: the campaign in short ---


def test_pairs_win_where_the_mean_is_dear_and_lose_where_islands_differ() -> None:
    _, unit, box = centres.prepared("breast-cancer", centres.table("breast-cancer", Path()))
    found = centres.scores(box, centres.at_random(box.rows), 6, (0.3,))
    assert centres.lead(found, centres.PADDED, centres.NORMALISE, 0.3) > 0.1
    assert centres.lead(found, centres.PADDED, centres.PAIRS, 0.3) >= 0
    apart = centres.scores(unit, centres.by_first_component(unit.rows), 6, (2.0,))
    assert centres.lead(apart, centres.NORMALISE, centres.PADDED, 2.0) > 0.1


def test_captured_variance_is_measured_against_the_rows_as_they_are() -> None:
    for case in centres.prepared("wine", centres.table("wine", Path())):
        best = centres.scores(case, centres.at_random(case.rows), 2, (1e5,))[centres.CLIP][1e5]
        assert 0.9 < np.mean(best) <= 1 + 1e-12
    assert case.row_norm == 13**0.5
    assert np.abs(case.rows).max() == 1.0
    assert np.linalg.norm(case.rows, axis=1).max() <= case.row_norm


def test_a_lead_within_two_standard_errors_is_none() -> None:
    def found(one: list[float], other: list[float]) -> centres.Scores:
        return {"a": dict.fromkeys(centres.EPSILONS, one), "b": dict.fromkeys(centres.EPSILONS, other)}

    clear, vague = found([0.5, 0.52], [0.3, 0.31]), found([0.5, 0.72], [0.5, 0.61])
    assert round(centres.lead(clear, "a", "b", 1.0), 3) == 0.205
    assert round(centres.lead(clear, "b", "a", 1.0), 3) == -0.205
    assert centres.lead(vague, "a", "b", 1.0) == 0.0
    said = centres.tally([clear, vague], "b", "a").splitlines()
    assert said[0] == "'b' beside 'a', 2 tables"
    assert said[1] == (
        "  epsilon 0.1  of 2: ahead in  0, by up to 0.000; behind in  1, by up to 0.205; on average -0.130"
    )


# ---- how much is noise ----


def test_the_stated_angle_holds_in_the_whole_mechanism() -> None:
    seen: list[stated.Seen] = []
    for name, epsilon in (("diabetes", 0.3), ("diabetes", 2.0), ("wine", 2.0)):
        for found, _ in stated.cell(name, stated.loaded(name, Path()), epsilon, 4):
            seen += found
    assert len(seen) == 3 * 3 * 4 * 4  # cells, ways of rows, runs, k
    assert stated.share(seen) >= 0.9
    lines = stated.tightness(seen)
    assert "cells have a median angle below 30 degrees" in lines[0]


def test_a_cell_that_is_stated_too_tightly_is_seen() -> None:
    right = stated.Seen("x", 1.0, "normalise", 1, 10.0, 15.0, 14.0)
    wrong = right._replace(stated=9.0)
    assert stated.share([right, right, right, wrong]) == 0.75
    assert stated.middle([right, right, wrong]) == (10.0, 15.0, 14.0)
    assert stated.largest_angle(np.eye(3)[:, :1], np.eye(3)[:, 1:2]) == 90.0


def test_an_oracle_states_what_noise_does_and_no_statement_is_below_the_least() -> None:
    """One pair of eigenvalues: the angle is nearly the size of a normal number over their gap."""
    rng = np.random.default_rng(6)
    known = oracles.releases(np.array([400.0, 360.0]), [1], 4000, rng)
    gap = np.degrees(1 / 40 / np.sqrt(2))
    assert np.median(known.angles) == pytest.approx(0.674 * gap, rel=0.06)
    everybody = np.ones(len(known.angles))
    q95, q90 = (oracles.percentile(known.angles[:, 0], everybody, share) for share in (0.95, 0.9))
    assert q95 == pytest.approx(1.96 * gap, rel=0.06)
    # 2.9 times the median: no statement that is as sure at every gap is within twice.
    assert q95 > 2.7 * np.median(known.angles)
    seen = oracles.releases(np.array([400.0, 360.0]), [1], 2, rng)
    said = oracles.statements(known, seen, 0, [1])
    assert said["knows"] == [rounded_up(q95)]
    assert said["loose"][0] <= said["gap"][0]
    # Silent in half of all runs, it may be wrong in a tenth of the others: the 90th percentile is left.
    some = oracles.Releases(*(part[:600] for part in known))
    assert oracles.least([some]) == pytest.approx(q90, rel=0.15)
    one = oracles.Cell(
        "x", 1.0, 10.0, dict.fromkeys(oracles.WHO, 21.0), 19.0, {w: [True] for w in oracles.WHO}
    )
    assert [one.within("gap"), one.within("least")] == [False, True]
    assert "where Atoll is beyond twice (1 cells), gap is too in 1" in oracles.summary([one])
