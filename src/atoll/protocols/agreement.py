"""Providers compare what a server or coordinator told each of them, past whoever told it.

Needed where two providers that were told different things would answer for different sums: a joint mean that
is another for one provider shows that provider's own rows, and columns in another order are another
covariance. Not needed where the study itself says what is due, or where noise covers whatever is asked.

Everybody compares with everybody; beyond 101 providers each with 100 neighbours, in a sparse graph:
equal answers spread along the honest, whom 99 colluders leave connected.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from atoll.codec import encode
from atoll.errors import PartyLeft
from atoll.network import Network
from atoll.secure_sums.graph import MAX_NEIGHBOURS, neighbours
from atoll.study.address import Address

COMPARISON_BYTES = 85
"""Of one message, about."""


async def compare(
    net: Network, topic: str, told: object, members: Sequence[Address], *, may_leave: int = 0
) -> None:
    """Go on only if the other members were told the same; of one's neighbours so many may have left."""
    near = [*neighbours(members.index(net.me), len(members)), members.index(net.me)]
    group = [members[i] for i in sorted(near)]
    absent: set[Address] = set()
    digest = hashlib.sha256(encode(told)).digest()
    agreed = await net.agree(topic, digest, group, absent=absent)
    missing = [member.party for member in group if member not in agreed]
    if len(missing) > may_leave:
        raise PartyLeft(f"{', '.join(missing[:5])} left before comparing {topic}", hint="start a new run")


def comparisons(members: int) -> int:
    """Messages of one comparison."""
    return members * min(members - 1, MAX_NEIGHBOURS)
