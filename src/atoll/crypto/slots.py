"""Recipe: computing on encrypted vectors of real numbers in slots, under a key that all providers share.

What callers need of :mod:`atoll.crypto.hazmat`: sets of parameters, key parts and keys, ciphertexts and what
can be done with them, refreshing, opening, handing to a receiver, and shares.

    common, seed = fresh_seed(), fresh_seed()          # the first is everybody's, the second one's own
    secret = Secret.generate(sets()[0], fresh_seed())
    part = secret.public_part(common, seed)            # and of the relinearisation key, and of rotation keys
    keys = Keys(secret.set, common, [total(secret.set, parts) for parts in everybodys_parts])

Its rules stand with the caller, who keeps a record: a party makes one refresh part, one opening part, one
switching part or one share part of a ciphertext, and never two different ones; a seed serves one call, a
common seed one set of keys, one refresh or one encryption of shares. A ciphertext that a party's own numbers
went into is re-randomised before it leaves. Masks and openings are for parties that follow the protocol:
whoever has a made-up ciphertext refreshed or opened learns of the key.
"""

from __future__ import annotations

from atoll.crypto.hazmat.slot_secrets import (
    SHARE_WORDS,
    Secret,
    Shares,
    from_inputs,
    opened,
    opened_all,
    public_share,
    refreshed,
    refreshed_all,
    switched,
    total,
)
from atoll.crypto.hazmat.slots import (
    HEADER_BYTES,
    OPENING,
    PUBLIC,
    REFRESH,
    RELINEARISATION_1,
    RELINEARISATION_2,
    RESIDUE_BYTES,
    ROTATION,
    SHARE,
    SWITCHING,
    Ciphertext,
    Encoded,
    Factor,
    Keys,
    Pair,
    Set,
    Values,
    encoded_all,
    find,
    read_all,
    sets,
)

__all__ = [
    "HEADER_BYTES",
    "OPENING",
    "PUBLIC",
    "REFRESH",
    "RELINEARISATION_1",
    "RELINEARISATION_2",
    "RESIDUE_BYTES",
    "ROTATION",
    "SHARE",
    "SHARE_WORDS",
    "SWITCHING",
    "Ciphertext",
    "Encoded",
    "Factor",
    "Keys",
    "Pair",
    "Secret",
    "Set",
    "Shares",
    "Values",
    "encoded_all",
    "find",
    "from_inputs",
    "opened",
    "opened_all",
    "public_share",
    "read_all",
    "refreshed",
    "refreshed_all",
    "sets",
    "switched",
    "total",
]
