"""What PPPCA's server tells providers, and what they can check of it.

Not checkable by a provider: whether n and the mean are those of the joint table (it sees its own part only),
and whether T holds the leading eigenvectors of a covariance that only the server has.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from atoll.codec import Message
from atoll.data.statistics import Moments, about
from atoll.errors import PartyLeft
from atoll.network import Network
from atoll.protocols import checked
from atoll.protocols.agreement import compare
from atoll.protocols.pca.released import PROVIDER, SERVER
from atoll.secure_sums import may_leave
from atoll.study.address import Address
from atoll.study.model import Study


class JointMean(Message, frozen=True):
    """Server -> provider: the number of rows n, the islands that it counts where some may leave, the mean."""

    n: int
    islands: tuple[str, ...] | None
    mean: np.ndarray[Any, Any]


class Transfer(Message, frozen=True):
    """Server -> provider: the components T, and the divisors when columns are standardised."""

    components: np.ndarray[Any, Any]
    scale: np.ndarray[Any, Any] | None


async def receive_mean(net: Network, study: Study, local: Moments, present: frozenset[Address]) -> JointMean:
    """The joint mean, the same for everybody: another one for one provider would show its rows.

    The scatter about a mean that is off by delta, for one provider only, differs by its n_i and column sums.
    """
    server, providers = study.the(SERVER), study.who(PROVIDER)
    joint = await net.receive(JointMean, server)
    checked.check_floats(joint.mean, local.mean.shape, "a joint mean", server)
    if not local.n <= joint.n < checked.MAX_ROWS:
        raise checked.refuse(server, f"{joint.n} as the number of all rows to one who has {local.n} of them")
    staying = [address for address in providers if address in present]
    if joint.islands != (tuple(a.party for a in staying) if may_leave(study) else None):
        raise checked.refuse(server, "a list of islands that are not those whose sum was opened")
    try:
        await compare(net, "the joint mean", (joint.n, joint.islands, joint.mean), staying)
    except PartyLeft as error:
        raise PartyLeft(
            f"{error.message}, after an earlier sum was opened",
            hint="run again with the same islands, or not at all: a run without it would show its part",
        ) from None
    return joint


def check_transfer(
    T: Transfer, k: int | float | None, standardize: bool, local: Moments, joint: JointMean, server: Address
) -> None:
    """Orthonormal components, and divisors that are no smaller than this island's rows alone make them."""
    d = len(joint.mean)
    checked.check_components(T.components, k, d, server)
    if (T.scale is not None) != standardize:
        raise checked.refuse(server, "divisors where none were due" if T.scale is not None else "no divisors")
    if T.scale is not None:
        checked.check_scale(T.scale, d, server)
        _, scatter = about(local, joint.mean)
        least = np.sqrt(np.maximum(np.diag(scatter), 0.0) / joint.n)
        # A column that hardly varies counts as constant, with the divisor 1.
        if ((T.scale < least * (1 - 1e-6)) & (T.scale != 1.0)).any():
            raise checked.refuse(server, "divisors that are smaller than the rows here make them")
