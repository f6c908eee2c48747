"""The machines of provider and coordinator on vectors in slots, and what a receiver without one uses.

Rows as they travel, seen from a provider (P) and the coordinator (C):

    total, encrypted_total   P -> C  SentRow      its rows, re-randomised; C adds them up
    broadcast                C -> P  GivenRow     the same for everybody
    refresh                 [C -> P  AskedRow     the halves that parts are made from, unless P has the rows]
                             P -> P  Compared     digests of everything that was broadcast so far
                             P -> C  RefreshPart  C adds them up, and has the rows with all their levels
    opened                  [C -> P  AskedRow, R -> P  ReceiverKey]
                             P -> P  Compared
                             P -> C  SwitchingPart
                             C -> R  SwitchedRow  under the receivers' key
    opened_own               P -> P  OwnRow       halves of its own rows, re-randomised
                             P -> P  Compared
                             P -> P  OwnPart      to the owner alone
"""

from __future__ import annotations

from atoll.secret_matrices.slots.coordinator import Coordinator
from atoll.secret_matrices.slots.openings import Receiver
from atoll.secret_matrices.slots.provider import Provider

__all__ = ["Coordinator", "Provider", "Receiver"]
