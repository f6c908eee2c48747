"""The mixing secure sum, in topological order of its modules.

- :mod:`segments`: how values are cut before they are mixed
- :mod:`form`: what an encryption must bring to be used for layers
- :mod:`layers`: the default form: onions of X25519 and ChaCha20-Poly1305
- :mod:`elgamal`: the paper's form: ElGamal in Ristretto255, re-randomised at every hop
- :mod:`session`: messages and the session itself: prepare, anonymise, add up
"""

from __future__ import annotations

from atoll.secure_sums.mix.session import Mix

__all__ = ["Mix"]
