"""A threshold of the providers: who stops, comes back, lies or colludes once outputs have been dealt."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.support.examples import sfpca_later_of_two, table
from tests.support.taps import Tap, resumed, tapped
from tests.support.threshold_runs import ENOUGH, NAMES, PARTIES, first, five, provider, stopped, whole

import atoll
from atoll import codec
from atoll.codec import Decoder, Message
from atoll.crypto import products as go
from atoll.crypto import shamir
from atoll.errors import MessageError, PartyLeft, RunError
from atoll.estimators.encrypted_model import EncryptedModel
from atoll.protocols import protocol_of
from atoll.protocols.own import Own
from atoll.protocols.pca.sfpca.kept import Kept
from atoll.protocols.pca.sfpca.later import LaterParameters, own_share
from atoll.protocols.pca.sfpca.messages import Finished
from atoll.runtime.inbox import Event, Left
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.replay import replay
from atoll.secret_matrices import messages as mm
from atoll.study.address import Address

# ---- stops ----


def test_whoever_stops_after_dealing_is_missed_by_nobody() -> None:
    known, _ = whole()
    for gone in (["island-0", "island-4"], ["island-1", "island-2"]):
        crash = {
            name: first(mm.DealtShare, name) + PARTIES - 1 for name in gone
        }  # it has dealt, and says no more
        outputs, error, _ = stopped(five(), crash)
        assert error is None
        # Sessions differ in their rotations, and in the noise over digits that are not released.
        assert np.abs(outputs["components"] - known["components"]).max() < 1e-6
        assert np.abs(outputs["offset"] - known["offset"]).max() < 1e-4


def test_who_stops_before_it_has_dealt_to_all_leaves_too_few_shares() -> None:
    _, error, tap = stopped(
        five(), {"island-0": first(mm.DealtShare, "island-0") + 2}
    )  # two members have its part
    assert isinstance(error, PartyLeft)
    assert "2 of 5 providers have a share of the outputs, 3 are needed" in str(error)
    assert "a run without one would show its part" in str(error)  # the spectrum was opened by then
    assert not any(kind is mm.ReleasedPoint for kind, *_ in tap.shares)


def test_a_third_stop_is_one_too_many() -> None:
    crash = {name: first(mm.DealtShare, name) + PARTIES - 1 for name in NAMES[:3]}
    _, error, _ = stopped(five(), crash)
    assert isinstance(error, PartyLeft)


def test_nothing_was_opened_is_said_where_it_is_so() -> None:
    _, error, tap = stopped(five(), {"island-3": first(mm.EncryptedShare, "island-3")})
    assert isinstance(error, PartyLeft)
    assert "nothing was opened: start a new run, or another study without who left" in str(error)
    assert not any(kind is mm.OpenedShare for kind, *_ in tap.shares)


@pytest.mark.parametrize("seed", range(6))
def test_two_stops_at_random_end_in_the_output_or_in_a_clear_error(seed: int) -> None:
    """`python -m benchmarks.sfpca_stops` does it two hundred times."""
    draw, (known, tap) = random.Random(seed), whole()
    crash = {
        name: draw.randint(1, len(tap.outboxes[provider(name)]))
        if seed % 2
        else first(mm.DealtShare, name) + at
        for at, name in enumerate(draw.sample(NAMES, 2), 2)
    }
    outputs, error, seen = stopped(five(), crash)
    assert all(len(bodies) == 1 for bodies in seen.shares.values())
    if error is None:
        assert np.abs(outputs["components"] - known["components"]).max() < 1e-6
    else:
        assert isinstance(error, PartyLeft)
        assert error.hint


# ---- who comes back, and who runs again ----


def test_a_member_runs_again_and_sends_the_same_shares() -> None:
    example = five()
    tap = tapped(example)
    again = provider("island-2")
    learned, sent = resumed(example, tap, again, example.own["island-2"])
    assert sent == tap.outboxes[again]
    assert "components" in learned.outputs


def sooner(
    inbox: list[Event], gone: Address, before: type[Message], decoder: Decoder[Message]
) -> list[Event]:
    """The same history, but for a sender that was given up before its message of a kind, and came back."""
    out: list[Event] = []
    for event in inbox:
        is_due = not isinstance(event, Left) and event.sender == gone
        if is_due and isinstance(decoder.decode(event.data), before) and Left(gone) not in out:
            out.append(Left(gone))
        out.append(event)
    # What it sent comes when nobody waits for it any more.
    late = [e for e in out[out.index(Left(gone)) :] if not isinstance(e, Left) and e.sender == gone]
    return [event for event in out if event not in late] + late


def test_who_comes_back_after_it_was_given_up_changes_nothing() -> None:
    """Given up before its share of an output came, then back: the output is that of the others' shares."""
    example, (_, shares) = five(), whole()
    tap, me, gone = tapped(example), Address("consumer", "consumer"), provider("island-1")
    inbox = sooner(list(tap.inboxes[me]), gone, mm.ReleasedPoint, shares.decoder)
    assert Left(gone) in inbox
    before, _ = resumed(example, tap, me, Own())
    after, _ = resumed(example, tap, me, Own(), inbox)
    assert np.array_equal(before.outputs["components"], after.outputs["components"])
    assert np.array_equal(before.outputs["offset"], after.outputs["offset"])


def test_who_gave_up_a_dealer_has_no_share_even_if_the_dealer_comes_back() -> None:
    """Two members must not count different dealers: one that misses a part says so, and sends no share."""
    example, (_, shares) = five(), whole()
    tap, me, gone = tapped(example), provider("island-3"), provider("island-1")
    inbox = sooner(list(tap.inboxes[me]), gone, mm.DealtShare, shares.decoder)
    protocol = protocol_of("sfpca")
    _, sent = replay(protocol, example.study, me, example.own["island-3"], tap.records[me].drawn, inbox)
    messages = [shares.decoder.decode(data) for _, data in sent]
    points = [m for m in messages if isinstance(m, mm.ReleasedPoint)]
    assert len(points) == 2 * PARTIES  # of two outputs, to all others: that it has none
    assert not any(m.body for m in points)


def test_nobody_waits_for_the_share_of_who_has_none() -> None:
    """One stops when all but one have its part: the three who have it are enough, until another one stops."""
    crash = {"island-4": first(mm.DealtShare, "island-4") + 3}
    outputs, error, _ = stopped(five(), crash)
    assert error is None
    assert np.abs(outputs["components"] - whole()[0]["components"]).max() < 1e-6
    _, error, _ = stopped(five(), crash | {"island-2": first(mm.ReleasedPoint, "island-2")})
    assert isinstance(error, PartyLeft)
    assert "2 shares of an output came, 3 are needed" in str(error)


def test_nobody_is_told_who_is_left() -> None:
    """There is no list of survivors, so no two of them: after dealing, the coordinator tells providers
    nothing."""
    example, (_, shares) = five(), whole()
    tap = tapped(example)
    for name in NAMES:
        senders = [e.sender.role for e in tap.received(provider(name))]
        kinds = [type(shares.decoder.decode(e.data)) for e in tap.received(provider(name))]
        assert "coordinator" not in senders[kinds.index(mm.DealtShare) :]


def test_the_coordinator_stays_until_nobody_waits_any_more() -> None:
    """Between machines it says who has left: if it ended first, all would wait for a lost member for ever."""
    example, (_, shares) = five(), whole()
    tap, me = tapped(example), Address("coordinator", "coordinator")
    for waiting in (provider("island-3"), Address("consumer", "consumer")):
        inbox = [
            event
            for event in tap.inboxes[me]
            if event.sender != waiting
            or isinstance(event, Left)
            or not isinstance(shares.decoder.decode(event.data), Finished)
        ]
        assert len(inbox) == len(tap.inboxes[me]) - 1
        with pytest.raises(RunError, match="ends before Finished"):
            resumed(example, tap, me, Own(), inbox)
        resumed(example, tap, me, Own(), [*inbox, Left(waiting)])


# ---- who works together ----


@cache
def kept() -> EncryptedModel:
    X = np.tile(table(), (12, 1))
    islands = dict(zip(NAMES, np.array_split(X, PARTIES), strict=True))
    pca = atoll.PCA(
        2, protocol="sfpca", bounds=64.0, threshold=ENOUGH, release="encrypted", accept_determined=True
    )
    return pca.fit(islands).encrypted_


def share(name: str) -> Kept:
    return codec.decode(kept().share_of(provider(name)), Kept)


def numbers(one: Kept) -> Any:
    body = one.components.tobytes()
    return shamir.numbers_from_bytes(body, len(body) // shamir.SHARE_BYTES)


def test_a_threshold_opens_the_components_and_one_fewer_has_nothing() -> None:
    true = kept().open()["components"]
    held = {share(name).point: numbers(share(name)) for name in NAMES}
    three = {point: held[point] for point in (1, 3, 4)}
    made = shamir.joined(three, ENOUGH) / 2.0 ** share("island-0").components_fraction
    assert np.abs(np.array(made, float).reshape(true.shape) - true).max() < 2**-40
    two = {point: held[point] for point in (1, 3)}
    line = shamir.centred(shamir._sum_at(two, [1, 3], 0))  # what fewer would have, had they been enough
    assert min(abs(a - b) for a, b in zip(line, shamir.joined(three, ENOUGH), strict=True)) >> 400
    for guess in (shamir.joined(three, ENOUGH), 0 * held[1]):  # the truth, and anything else: both fit
        completed = shamir._sum_at({0: guess % shamir.PRIME, **two}, [0, 1, 3], 4)
        assert (shamir.joined({**two, 4: completed}, ENOUGH) == guess).all()
    with pytest.raises(MessageError, match="2 shares do not give numbers of which 3"):
        shamir.joined(two, ENOUGH)


def test_no_inbox_of_a_minority_has_anything_that_depends_on_the_outputs() -> None:
    """What two members are dealt, by each honest dealer: uniform, whatever the dealer's numbers."""
    _, tap = whole()
    for dealer in NAMES[2:]:
        seen = [
            tap.decoder.decode(e.data)
            for name in NAMES[:2]
            for e in tap.received(provider(name))
            if e.sender == provider(dealer)
        ]
        dealt = [m for m in seen if isinstance(m, mm.DealtShare)]
        assert len(dealt) == 2
        values = np.concatenate([shamir.numbers_from_bytes(m.body, len(m.body) // 66) for m in dealt])
        assert min(int(v).bit_length() for v in values) > 490
        assert len(set(values)) == len(values)
        # The values of a line through the dealer's own number would be alike in both.
        assert all((2 * a - b) % shamir.PRIME >> 400 for a, b in zip(*np.split(values, 2), strict=True))


def test_masked_shares_for_a_later_product_say_nothing_to_a_minority() -> None:
    """The first member, who adds them up, with one that takes no part: two of five, where three are enough.

    With both their shares, an honest member's weighted share is a known multiple of the secret. Its mask is
    64 bits wider than the secret: of a multiple of 521 bits it hides next to nothing.
    """
    model, active = kept(), NAMES[:3]
    shares = {a: s for a, s in model._shares.items() if a.party in (*active, "coordinator")}
    later = EncryptedModel(model.study, shares, spy := Spy())
    later.project({"island-1": table()[:4]})
    held = {share(name).point: numbers(share(name)) for name in NAMES}
    truth = shamir.joined(held, ENOUGH)
    honest, points = provider("island-1"), [share(name).point for name in active]
    masked = next(
        m for s, m in spy.seen[provider("island-0")] if s == honest and isinstance(m, mm.MaskedPoint)
    )
    c = shamir.numbers_from_bytes(masked.body, len(truth))
    known = {0: truth % shamir.PRIME, 1: held[1], 5: held[5]}
    fitted = shamir._sum_at(known, [0, 1, 5], points[1]) * shamir.weights(points)[1]
    pairs = {
        (s.party, to.party): shamir.uniform(len(truth), m.seed, "atoll/pairs")
        for to, arrived in spy.seen.items()
        for s, m in arrived
        if isinstance(m, mm.PairSeed) and m.step == masked.step
    }
    seen = (c - fitted + pairs["island-0", "island-1"]) % shamir.PRIME
    assert min(int(v).bit_length() for v in seen) > 400
    # Without the mask of the two honest members, the truth would fit as nothing else does.
    assert max(int(v).bit_length() for v in (seen - pairs["island-1", "island-2"]) % shamir.PRIME) < 140


class Spy(LocalEngine):
    """An engine that keeps what every role received."""

    def run(self, protocol: Any, study: Any, own: Any, **options: Any) -> Any:
        tap = Tap()
        decoder = Decoder[Message](protocol.all_messages(study))
        outcome = super().run(protocol, study, own, observer=tap, **options)
        self.seen = {
            to: [(e.sender, decoder.decode(e.data)) for e in tap.received(to)] for to in list(tap.inboxes)
        }
        return outcome


# ---- the set of a later step ----


@pytest.mark.parametrize(
    ("points", "words"),
    [
        ((1,), "names 1 shares"),
        ((1, 1), "names 1 shares"),
        ((3, 1), "for another one"),
        (None, "names 0 shares"),
    ],
)
def test_a_later_step_names_enough_members_and_their_places(points: Any, words: str) -> None:
    """The set is part of the study, so of its digest: whoever was told another set is in another run."""
    example = sfpca_later_of_two({"components": ("provider",)})
    given = dict(example.study.parameters) | {"points": None if points is None else list(points)}
    study = structs.replace(example.study, parameters=given)
    assert study.digest != example.study.digest
    assert study.read_parameters(LaterParameters).points == points
    with pytest.raises(MessageError, match=words):
        own_share(example.own["island-0"], study, provider("island-0"))


def test_another_set_of_members_opens_the_same_numbers_from_the_same_shares() -> None:
    model = kept()
    opened = []
    for away in (("island-0", "island-1"), ("island-3", "island-4"), ("island-2",)):
        shares = {a: s for a, s in model._shares.items() if a.party not in away}
        opened.append(EncryptedModel(model.study, shares).open())
    for one in opened[1:]:
        assert np.array_equal(one["components"], opened[0]["components"])
        assert np.array_equal(one["offset"], opened[0]["offset"])


def test_masks_of_summands_are_wider_than_what_they_hide() -> None:
    assert go.limits().mask_margin == 64
