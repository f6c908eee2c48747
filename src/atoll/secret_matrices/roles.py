"""The machines of provider and coordinator: products and openings as messages.

One product, seen from a provider (P) and the coordinator (C); parts in brackets only where the left
matrix is not yet encrypted:

    [P -> C  EncryptedShare    its share under its own key, common second half]
    [C -> P  EncryptedMatrix   the sum: first halves of the ciphertext, for those who multiply]
     P -> C  ProductPart       ciphertext times its share of the right matrix, re-randomised
     C -> P  SecondHalves      of the summed product
     P -> C  MaskedShare       decryption share under a mask; minus the mask, truncated, is its new share
     C -> one P  MaskedTotal   the masked result; truncated, it is the coordinator's share (:mod:`carried`)

A product may go ahead (``Job.ahead``): its second halves need nothing of the left matrix but the seed of its
second halves, and travel beside its encryption; the first half is added to the masked decryption share:

    [P -> C  EncryptedShare    as above]
     P -> C  SecondPart        second half of ciphertext times its share of the right matrix, re-randomised
    [C -> P  EncryptedMatrix   the sum of these parts alone]
     C -> P  SecondHalves      the sum of these parts alone
     P -> C  MaskedShare       decryption share and first half under a mask
     C -> P  MaskedTotal       the masked result, to all members

All members of the group know the coordinator's part of such a result, from the total, and add it themselves
where the next product needs it: the coordinator only adds up what providers sent. A total travels beside the
next sums. Each provider has told the others its part of it before it can read it, and goes on only if the
total is the sum of these parts, and no wider than masks are.

A provider sends a MaskedShare and the next EncryptedShare without waiting: a product costs two round trips,
or one, and one round among providers, who compare before a MaskedShare leaves (:mod:`checks`). A message
names its step; draws and digests of what leaves are recorded under it: a role that runs again sends the same
bytes.

A product is made under the key of the providers that hold a part of its factors. Whoever has something to
hide in it has a part of the key; and the rotations of fifty parties cost each of them six products, not 50.
Keys are sums of parts that everybody knows; each had to commit to its own before it saw another's.
"""

from __future__ import annotations

from atoll.secret_matrices.coordinator import Coordinator
from atoll.secret_matrices.provider import Provider

__all__ = ["Coordinator", "Provider"]
