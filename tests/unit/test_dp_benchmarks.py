"""What the benchmarks of differential privacy may claim."""

from benchmarks.dp_utility import EPSILONS, OURS, PEERS, compared, complaints, verdict


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
