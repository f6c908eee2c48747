"""Steps of roles in plain words, for whoever watches a run."""

from __future__ import annotations

_WORDS = {
    # an island's own table
    "check_table": "check the table",
    "checked_rows": "check the rows",
    "moments": "compute mean and scatter",
    "own_sums": "add up own rows",
    "gen_scatter": "move the scatter to the joint mean",
    "local_components": "find own components",
    "own_pca": "find own components",
    "prepare": "find own components",
    "gen_noisy": "add noise",
    "noisy_moments": "add noise",
    "perturb": "add noise",
    # secure sums
    "gen_share": "cut into shares",
    "gen_share_sum": "add shares",
    "gen_masked": "hide under masks",
    "unmask": "take masks away",
    "recorded_key": "make a key",
    "recorded_share": "make a share of a key",
    "aggregate": "join shares of a key",
    "decryption_share": "help to open the total",
    "open_aggregate": "open the total",
    "integers": "open the number of rows",
    # secret matrices
    "encode_right": "prepare the own matrix",
    "read_ciphertext": "read an encrypted matrix",
    "assemble": "join encrypted parts",
    "multiply": "multiply by the own matrix",
    "refresh": "take noise out of a product",
    "clear": "open a masked product",
    "cleared": "open a masked product",
    "second": "add up parts of a product",
    "use_public": "compute on public numbers",
    "use_secret": "compute on secret numbers",
    "sha256": "check what is sent",
    "sha": "check what is sent",
    "digest": "check what is sent",
    "fingerprint": "check what the others sent",
    "fingerprints": "check what the others sent",
    "key_fingerprints": "check the keys",
    "sum_fingerprints": "check the sums",
    "seen": "check what the others sent",
    # the joint result
    "finish": "finish the result",
    "merge": "join components",
    "decompose_private": "find the components",
    "transfer_matrix": "find the components",
    "project": "project the rows",
}


def plain(step: str) -> str:
    """The step called ``step`` in plain words; one that has none is shown as it is called."""
    return _WORDS.get(step, step.replace("_", " "))
