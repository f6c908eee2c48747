"""Private set intersection: which rows do all islands have? (By Diffie and Hellman; Meadows 1986.)

Islands hold columns of the same people, each under an id. Every island i has a secret k_i and the hashes H(x)
of its ids as elements of Ristretto255.

    1  Every island sends its list {k_i H(x)} round all islands; each multiplies by its own secret and sorts.
    2  The last one sends {K H(x)}, K the product of all secrets, to the matcher.
    3  The matcher keeps what is in every list, sorts it, and sends it to all islands: the common rows.
    4  For every island the common list goes back the way its list came: each island gives, for what it sent,
       what it had received.
    5  {k_i H(x)} of the common rows is back with island i, in the order that all islands have.
    6  Islands prove to each other that they found the same ids in the same order. Each pair agrees on a key
       with G, the hash of all these ids, in the place of a generator (SPEKE; Jablon 1996): a G and b G
       travel, and
       then digests of a b G. So an island to which other rows were returned finds out, and whoever returned
       them learns of these rows whether one guess of all of them was right, and no more.

Sorting by elements is a shuffle to all who lack one secret, so nobody can follow a row from list to list.

Adversary: everyone follows the protocol but keeps what they see; islands may collude with each other, the
matcher with no island. (Together they would learn how many of each group of their rows, those that the same
of them have, an honest island has too; with a group of one row, whether it has that row.) Learns: an island
which of its rows are common, and how many rows others have; the matcher how many rows are common to which
islands, of no row whose it is.

A role believes nothing that it can check: elements are refused unless they are such, lists unless they have
their length, the common list unless all islands were told the same, and unless each of it is a row of one's
own, with the id that all others have there.
What is not detected: an island that brings ids it only guesses (it learns which of these all others
have), or that takes part with other ids than it has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from hmac import compare_digest
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from atoll.codec import Message, encode
from atoll.crypto import intersection
from atoll.crypto.intersection import ELEMENT_BYTES, elements_of
from atoll.data.ids import RULES, fingerprint, normalised
from atoll.errors import DataError, MessageError, StudyError, one_of
from atoll.network import Compared, Network, Record
from atoll.protocols.agreement import COMPARISON_BYTES, compare, comparisons
from atoll.protocols.base import Disclosure, Expectation, Learned, Output, Protection, Protocol, learned
from atoll.protocols.own import Own
from atoll.randomness import fresh_seed
from atoll.secure_sums.graph import neighbours
from atoll.study.address import Address
from atoll.study.model import Parameters, Study

PROVIDER, MATCHER = "provider", "matcher"

ANALYSIS = "alignment"
_CONFIRMED = "atoll/alignment/same ids/v1"

OUTPUTS = {
    "rows": Output(
        ("rows", "fingerprint"),
        (PROVIDER,),
        "to every island, which of its own rows are common, in the order that all have",
    ),
    "order": Output(
        ("order", "common"),
        (PROVIDER, MATCHER),
        "how many rows are common, and a digest that names their order",
    ),
}


class AlignmentParameters(Parameters, frozen=True):
    """``on``: the column of ids, at every island; ``normalise``: the rules by which ids are made alike."""

    on: str
    normalise: tuple[str, ...] = ("trim",)


class List(Message, frozen=True):
    """Island -> next island, or the matcher: the list of one island under the secrets of those it passed."""

    owner: int
    elements: bytes


class Common(Message, frozen=True):
    """Matcher -> islands: what is in every list, under all secrets, in one order for all."""

    elements: bytes


class Returned(Message, frozen=True):
    """Island -> the one before: the common list on its way back to one island, one secret fewer each time."""

    owner: int
    elements: bytes


class OwnIds(Message, frozen=True):
    """Island -> islands: a G, the hash of its common ids under a fresh secret."""

    element: bytes


class SameIds(Message, frozen=True):
    """Island -> island: a digest of a b G, which only whoever has the same ids can have."""

    digest: bytes


# ---- steps ----


def common_elements(lists: Sequence[bytes]) -> bytes:
    """What is in every list, sorted."""
    kept = elements_of(lists[0])
    for other in lists[1:]:
        kept = np.intersect1d(kept, elements_of(other), assume_unique=True)
    return kept.tobytes()


class Passed(NamedTuple):
    """A list as it went through here: what was sent on, sorted, and for each of it what had come."""

    sent: intersection.Elements
    had: intersection.Elements

    def before(self, returned: bytes, sender: Address) -> bytes:
        """What had come, for what comes back; only what was sent on can."""
        due = elements_of(returned)
        places = np.minimum(np.searchsorted(self.sent, due), len(self.sent) - 1)
        if not np.array_equal(self.sent[places], due):
            raise MessageError(
                f"{sender} returned rows that it was never sent",
                hint="an island or the matcher did not follow the protocol: nothing was aligned",
            )
        return self.had[places].tobytes()


def pass_on(seed: bytes, elements: bytes) -> Passed:
    """Every element times one's own secret, sorted."""
    if not elements:
        raise MessageError("a list without any row came round")
    raised = elements_of(intersection.raised(seed, elements))
    order = np.argsort(raised)
    return Passed(raised[order], elements_of(elements)[order])


def own_rows(blinded: bytes, back: bytes, me: Address) -> npt.NDArray[np.int64]:
    """The rows that come back, in the common order; each must be a row of one's own."""
    mine, due = elements_of(blinded), elements_of(back)
    order = np.argsort(mine)
    places = np.minimum(np.searchsorted(mine, due, sorter=order), len(mine) - 1)
    rows = order[places]
    if not np.array_equal(mine[rows], due) or len(np.unique(rows)) < len(rows):
        raise MessageError(
            f"{me} was sent rows that it does not have as common ones",
            hint="an island or the matcher did not follow the protocol: nothing was aligned",
        )
    return rows.astype(np.int64)


def order_of(study: Study, common: bytes) -> str:
    """The name of an order: all islands of one alignment have the same, and no other alignment has it."""
    return hashlib.sha256(b"atoll/alignment/v1\0" + study.digest.encode() + common).hexdigest()


def confirmation(key: bytes, sender: Address, its: bytes, receiver: Address, theirs: bytes) -> bytes:
    """What the sender shows the receiver to prove that it has the key; nobody else can use it."""
    return hashlib.sha256(encode((_CONFIRMED, key, str(sender), its, str(receiver), theirs))).digest()


# ---- roles ----


async def provider(net: Network, study: Study, own: Own, record: Record) -> Learned:
    p, islands, matcher = study.read_parameters(AlignmentParameters), study.who(PROVIDER), study.the(MATCHER)
    ids = normalised(own.table, p.on, p.normalise)
    if not ids:
        raise DataError(f"{own.table.name}: there are no rows to align")
    seed = record("secret of the intersection", fresh_seed)
    blinded = await net.compute(intersection.blinded, seed, ids, study.digest)
    passed = await _send_round(net, seed, blinded, islands, matcher)  # lines 1 and 2
    common = (await net.receive(Common, matcher)).elements  # line 3
    await compare(net, "the common rows", common, islands)
    returned = await _send_back(net, common, passed, islands)  # line 4
    rows = own_rows(blinded, returned, net.me)  # line 5
    found = fingerprint([ids[row] for row in rows])
    await _compare_ids(net, record("secret of the comparison", fresh_seed), found, study)  # line 6
    known = {
        "rows": {net.me.party: rows},
        "fingerprint": {net.me.party: found},
        "order": order_of(study, common),
        "common": len(rows),
    }
    return learned(study, net.me, OUTPUTS, known)


async def _send_round(
    net: Network, seed: bytes, blinded: bytes, islands: Sequence[Address], matcher: Address
) -> dict[int, Passed]:
    """One's own list sets out; every other passes through here and goes on. Lists that passed, by owner."""
    here, n = islands.index(net.me), len(islands)
    after, before = islands[(here + 1) % n], islands[here - 1]
    await net.send(after, List(here, intersection.sorted_bytes(blinded)))
    passed: dict[int, Passed] = {}
    for hop in range(1, n):
        arrived = await net.receive(List, before)
        owner = _check_owner(arrived.owner, (here - hop) % n, before)
        passed[owner] = await net.compute(pass_on, seed, arrived.elements)
        await net.send(matcher if hop == n - 1 else after, List(owner, passed[owner].sent.tobytes()))
    return passed


async def _send_back(
    net: Network, common: bytes, passed: Mapping[int, Passed], islands: Sequence[Address]
) -> bytes:
    """The common list goes back to each island whose list passed here; one's own comes back last."""
    here, n = islands.index(net.me), len(islands)
    after, before = islands[(here + 1) % n], islands[here - 1]
    # The list of the island after this one went all the way round: here it ended, and here it turns.
    owner, returned, sender = (here + 1) % n, common, after
    for hop in range(1, n):
        await net.send(before, Returned(owner, passed[owner].before(returned, sender)))
        arrived = await net.receive(Returned, after)
        owner = _check_owner(arrived.owner, (here + 1 + hop) % n, after)
        returned = arrived.elements
        if len(returned) != len(common):
            raise MessageError(f"{after} sent another number of rows than are common")
    return returned


async def _compare_ids(net: Network, seed: bytes, found: str, study: Study) -> None:
    """Go on only if the other islands have the same ids in the same order, of which nothing is shown."""
    islands = study.who(PROVIDER)
    peers = [islands[i] for i in neighbours(islands.index(net.me), len(islands))]
    mine = intersection.blinded(seed, [found], f"{study.digest}/common ids")
    await net.broadcast(peers, OwnIds(mine))
    theirs = {peer: bytes(one.element) for peer, one in (await net.gather(OwnIds, peers)).items()}
    keys = {}
    for peer, element in theirs.items():
        if len(element) != ELEMENT_BYTES:
            raise MessageError(f"{peer} sent {len(element)} bytes where one group element was due")
        keys[peer] = intersection.raised(seed, element)
        await net.send(peer, SameIds(confirmation(keys[peer], net.me, mine, peer, element)))
    for peer, shown in (await net.gather(SameIds, peers)).items():
        due = confirmation(keys[peer], peer, theirs[peer], net.me, mine)
        if not compare_digest(shown.digest, due):
            raise MessageError(
                f"{net.me} and {peer} found other rows to be common, or in another order",
                hint="an island did not follow the protocol: nothing was aligned",
            )


def _check_owner(owner: int, due: int, sender: Address) -> int:
    if owner != due:
        raise MessageError(f"{sender} sent the list of another island than was due")
    return owner


async def matcher(net: Network, study: Study, own: Own, record: Record) -> Learned:
    islands = study.who(PROVIDER)
    # The list of an island ends with the island before it.
    arrived = await net.gather(List, islands)
    lists = []
    for place, (sender, one) in enumerate(arrived.items()):
        _check_owner(one.owner, (place + 1) % len(islands), sender)
        lists.append(_checked_list(one.elements, sender))
    common = await net.compute(common_elements, lists)
    await net.broadcast(islands, Common(common))
    known = {"order": order_of(study, common), "common": len(common) // ELEMENT_BYTES}
    return learned(study, net.me, OUTPUTS, known)


def _checked_list(data: bytes, sender: Address) -> bytes:
    elements = elements_of(data)
    if not len(elements) or not (elements[:-1] < elements[1:]).all():
        raise MessageError(f"{sender} sent a list that is empty, not sorted, or has a row twice")
    return data


# ---- what it means and costs ----


def learns(study: Study) -> list[Disclosure]:
    islands = len(study.who(PROVIDER))
    counts = "how many rows each island has, how many are common"
    if islands > 2:
        counts += ", and for every group of islands how many are common to it; of no row whose it is"
    return [
        Disclosure(
            PROVIDER,
            "which of its own rows all islands have, and so that all others have these ids; how many rows "
            + (
                "the other island has"
                if islands == 2
                else "the other islands have, of no pair what they share"
            ),
            (List, Common, Returned, Compared, OwnIds, SameIds),
            ("rows", "fingerprint", "order", "common"),
        ),
        Disclosure(MATCHER, counts, (List,), ("order", "common")),
    ]


EXPECTED_ROWS = 10_000
"""What a review reckons with where nobody knows the numbers of rows."""


def expect(study: Study, columns: int) -> Expectation:
    """As if every island had the same rows, all of them common."""
    del columns
    n, size = len(study.who(PROVIDER)), EXPECTED_ROWS * ELEMENT_BYTES
    forward, back = n * n, n * (n - 1)
    compared = comparisons(n)
    # Once the common list, then elements and digests of the ids.
    whole = (forward + n + back) * size + 3 * compared * COMPARISON_BYTES
    return Expectation(
        messages=forward + n + back + 3 * compared,
        bytes_per_provider=(2 * n - 1) * size + 3 * (n - 1) * COMPARISON_BYTES,
        bytes_total=whole,
        memory_server=(n + 1) * size,
        rounds=2 * n + 3,
    )


def check(study: Study) -> None:
    p = study.read_parameters(AlignmentParameters)
    islands, party = study.who(PROVIDER), study.the(MATCHER).party
    # Of two islands the matcher counts what both learn anyway.
    if len(islands) > 2 and party in {island.party for island in islands}:
        raise StudyError(
            f"{party!r} is an island and the matcher: it would see how many rows each other two share",
            hint="give the role of the matcher to a party without a table",
            path=("party", [one.name for one in study.parties].index(party), "roles"),
        )
    for i, rule in enumerate(p.normalise):
        if rule not in RULES:
            raise StudyError(
                f"there is no rule for ids called {rule!r}",
                hint=one_of(rule, RULES),
                path=("parameters", "normalise", i),
            )


_PROTECTION = Protection(
    "Ids travel as elements of a group of prime order, under a secret of each island that they passed; "
    "without all secrets no guess of an id can be tested."
)

PROTOCOL = Protocol(
    name="align",
    analysis=ANALYSIS,
    title="Private set intersection",
    roles={PROVIDER: provider, MATCHER: matcher},
    data_roles=frozenset({PROVIDER}),
    single_roles=frozenset({MATCHER}),
    messages=(List, Common, Returned, Compared, OwnIds, SameIds),
    parameters=AlignmentParameters,
    outputs=OUTPUTS,
    learns=learns,
    adversary=(
        "Everyone follows the protocol but keeps what they see. The matcher colludes with no island: "
        "together they would learn how many rows of each group of their own the other islands have."
    ),
    protection=lambda _: _PROTECTION,
    uses_sum=False,
    partitions=("vertical",),
    expect=expect,
    check=check,
)
