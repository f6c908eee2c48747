"""Recipe: encrypted matrices times matrices in the clear, under a key that all providers share.

What callers need of :mod:`atoll.crypto.hazmat`: rings and their limits, matrices of exact integers,
key shares, encryption, products, the refresh that clears a product's noise, and fingerprints. Its rules stand
with the caller: a common seed serves one matrix and one key, and :meth:`Secret.refresh` is called once for
one ciphertext. :mod:`atoll.secret_matrices` keeps them; nothing else makes keys or shares.
"""

from __future__ import annotations

from atoll.crypto.hazmat.golib import Buffer
from atoll.crypto.hazmat.integers import Integers, combine, from_ints, smudge, to_ints, widened
from atoll.crypto.hazmat.product import (
    Ahead,
    Ciphertext,
    Fingerprint,
    ProductSum,
    PublicKey,
    Right,
    Secret,
    assemble,
    clear_total,
    multiply,
    second_half,
)
from atoll.crypto.hazmat.rings import (
    Clearing,
    Layout,
    Ring,
    family,
    limits,
    most_entries,
    noise_bits,
    rings,
    streamed_right,
    vector_path,
    vector_paths,
)

__all__ = [
    "Ahead",
    "Buffer",
    "Ciphertext",
    "Clearing",
    "Fingerprint",
    "Integers",
    "Layout",
    "ProductSum",
    "PublicKey",
    "Right",
    "Ring",
    "Secret",
    "assemble",
    "clear_total",
    "combine",
    "family",
    "from_ints",
    "limits",
    "most_entries",
    "multiply",
    "noise_bits",
    "rings",
    "second_half",
    "smudge",
    "streamed_right",
    "to_ints",
    "vector_path",
    "vector_paths",
    "widened",
]
