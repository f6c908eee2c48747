"""The mixing secure sum: the paper's message counts, forms, orders and mediators."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.support.examples import Example, mediated, pppca, summation
from tests.support.lying import lying

import atoll
from atoll import fixedpoint, randomness, secure_sums
from atoll.codec import Message
from atoll.data.island import Island
from atoll.errors import AtollError, ParameterError, StudyError
from atoll.network import Network, Record
from atoll.protocols.base import Learned, Protocol
from atoll.protocols.own import Own, owned
from atoll.review.study import review_study
from atoll.runtime.execute import run_study
from atoll.runtime.local.engine import LocalEngine
from atoll.secure_sums.mix import session
from atoll.secure_sums.mix.segments import cut
from atoll.secure_sums.mix.session import Mix, MixOptions, orders, parts
from atoll.study.address import Address
from atoll.study.model import Parameters, Party, Study


def counts(example: Example) -> Counter[str]:
    return Counter(run_study(example.study, example.own).result.transcript.kinds)


@pytest.mark.parametrize("n", [2, 3, 5, 20])
def test_a_sum_takes_the_papers_number_of_messages(n: int) -> None:
    found = counts(summation("mix", n=n))
    keys = found.pop("MixKeys")
    assert keys == n * (n + 1)
    assert found == {"MixInput": n, "MixBatch": n, "MixedBatch": 1}  # 2N + 1
    assert found.total() == 2 * n + 1
    # A mediator of its own tells the receiver, and is told when there are no more sums.
    found = counts(mediated(summation("mix", n=n)))
    assert found == {
        "MixKeys": keys,
        "MixInput": n,
        "MixBatch": n,
        "MixedBatch": 1,
        "MixTotal": 1,
        "MixOver": 1,
    }


@pytest.mark.parametrize("n", [2, 4])
def test_where_all_contributors_get_the_sum_it_takes_3n_plus_1(n: int) -> None:
    async def contributor(net: Network, study: Study, own: Own, record: Record) -> Learned:
        everyone = study.who("contributor")
        sums = secure_sums.session(study, net, record, contributors=everyone, receivers=everyone, longest=2)
        await sums.open()
        await sums.contribute("v", fixedpoint.encode(own.table.features(own.table.columns).ravel()))
        total = await sums.total("v", 2)
        await sums.close()
        return Learned({"total": fixedpoint.decode(total)})

    protocol = Protocol(
        name="everybody",
        title="",
        roles={"contributor": contributor},
        data_roles=frozenset({"contributor"}),
        messages=(),
        parameters=Parameters,
        outputs={},
        learns=lambda _: [],
        adversary="",
        single_roles=frozenset(),
    )
    names = [f"i{k}" for k in range(n)]
    study = Study(
        name="t",
        protocol="everybody",
        secure_sum="mix",
        parties=(*(Party(name, ("contributor",)) for name in names), Party("m", ("mediator",))),
    )
    islands = {name: Island.from_array(np.array([[1.0, k]]), name=name) for k, name in enumerate(names)}
    outcome = LocalEngine().run(protocol, study, owned(islands))
    for address, learned in outcome.learned.items():
        if address.role == "contributor":
            assert learned.outputs["total"].tolist() == [n, sum(range(n))]
    sent = Counter(outcome.transcript.kinds)
    assert sum(sent[kind] for kind in ("MixInput", "MixBatch", "MixedBatch", "MixTotal")) == 3 * n + 1


def test_rotated_orders_share_the_values_among_them() -> None:
    assert orders(4, 40, True) == [(0, 1, 2, 3), (1, 2, 3, 0), (2, 3, 0, 1), (3, 0, 1, 2)]
    assert orders(4, 40, False) == orders(4, 3, True) == [(0, 1, 2, 3)]
    assert parts(10, 4) == [slice(0, 2), slice(2, 5), slice(5, 7), slice(7, 10)]
    found = counts(summation("mix", {"parallel": True}, n=4))
    assert found == {"MixKeys": 20, "MixInput": 4, "MixBatch": 16, "MixedBatch": 4}


@pytest.mark.parametrize("form", ["onion", "elgamal"])
@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("islands", [2, 3, 20])
def test_every_form_and_order_is_exact(form: str, parallel: bool, islands: int) -> None:
    values = islands if parallel and form == "onion" else 3
    vectors = [np.random.default_rng(k).normal(size=values) * 10.0 ** (k - 5) for k in range(islands)]
    total = atoll.secure_sum(vectors, "mix", form=form, parallel=parallel, segments=2 + islands % 2)
    np.testing.assert_array_equal(total, atoll.secure_sum(vectors, "shares"))


@pytest.mark.parametrize("cut", ["fractions", "random"])
def test_the_papers_cuts_are_exact_too(cut: str) -> None:
    vectors = [np.array([1.5, -2.25, 0.0, 1e9]) * k for k in (1, -2, 7)]
    np.testing.assert_array_equal(
        atoll.secure_sum(vectors, "mix", blind=False, cut=cut), atoll.secure_sum(vectors)
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"segments": 1}, "cannot be cut into 1 segments"),
        ({"blind": False}, "cut = 'uniform' does not go with blind = false"),
        ({"cut": "random"}, "does not go with blind = true"),
        ({"blind": False, "cut": "random", "spread_bits": 400}, "spread_bits = 400"),
        ({"form": "onions"}, "onions"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(AtollError, match=words):
        atoll.secure_sum([[1.0], [2.0]], "mix", **options)


def test_a_mediator_may_not_be_an_island_and_needs_a_mix() -> None:
    example = summation("mix")
    doubled = (Party("island-0", ("contributor", "mediator")), *example.study.parties[1:])
    with pytest.raises(StudyError, match="cannot be both mediator and contributor"):
        run_study(structs.replace(example.study, parties=doubled), example.own)
    with pytest.raises(StudyError, match="unknown role 'mediator'"):
        run_study(mediated(pppca("shares")).study, pppca("shares").own)


def test_pca_by_mixing_is_the_same_pca() -> None:
    tables = [np.random.default_rng(k).normal(size=(30, 5)) for k in range(3)]
    plain = atoll.PCA(2, accept_determined=True).fit(tables)
    for options in ({}, {"form": "elgamal", "parallel": True}):
        mixed = atoll.PCA(2, secure_sum="mix", mix=options, accept_determined=True).fit(tables)
        np.testing.assert_allclose(mixed.components_, plain.components_, atol=1e-12)
    with pytest.raises(ParameterError, match="mix"):
        atoll.PCA(2, mix={"segments": 3}).fit(tables)


def test_review_says_what_the_mediator_learns_and_what_mixing_adds() -> None:
    review = review_study(mediated(pppca("mix")).study, 4)
    assert "one of the 3 islands works together with it" in (review.trust or "")
    (mediator,) = [role for role in review.roles if role.role == "mediator"]
    assert mediator.parties == ("broker",)


def test_without_blinding_nobody_is_withstood_and_that_is_said() -> None:
    blind, plain = MixOptions(), MixOptions(blind=False, cut="fractions")
    assert Mix.withstands(5, blind, adder_apart=True) == 3
    assert Mix.withstands(5, plain, adder_apart=True) == 0
    assert Mix.trust(5, blind).startswith(
        "What a single island adds stays hidden from the mediator, even if up to 3 of"
    )
    assert Mix.trust(5, plain).startswith("Not blinded: the mediator sees every segment")


def test_every_block_is_blinded_and_cut_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the difference of two blocks, or of their segments, is that of an island's values."""
    contexts, seeds = [], []
    blinded, cut_up = session.gen_masked, session.cut

    def gen_masked(values: Any, me: int, partners: Any, own: Any, context: str) -> Any:
        contexts.append((me, context))
        return blinded(values, me, partners, own, context)

    def cut(*args: Any) -> Any:
        seeds.append(args[-1])
        return cut_up(*args)

    monkeypatch.setattr(session, "gen_masked", gen_masked)
    monkeypatch.setattr(session, "cut", cut)
    monkeypatch.setattr(session, "BLOCK_VALUES", 1)
    total = atoll.secure_sum([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], "mix")
    np.testing.assert_array_equal(total, [9.0, 12.0])
    assert len(set(contexts)) == len(contexts) == 6
    assert len(set(seeds)) == len(seeds) == 6


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (lambda items: items[:-1], "5 items came where 6 were due"),
        (lambda items: (*items[:-1], items[0]), "an item came twice"),
        (lambda items: (*items[:-1], items[-1] + b"0"), "an item does not have the"),
    ],
)
def test_a_batch_that_would_show_whose_items_are_whose_is_not_stripped(
    change: Any, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lie(sender: Address, to: Address, message: Any) -> Message:
        first = type(message) is session.MixBatch and sender.role == "receiver"
        return structs.replace(message, items=change(message.items)) if first else message

    lying(monkeypatch, lie)
    with pytest.raises(AtollError, match=f"hop 1 of 3 .*{wrong}"):
        atoll.secure_sum([[1.0], [2.0], [3.0]], "mix")


def test_a_batch_is_taken_from_whoever_is_before_in_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three orders, the second island has order 2 from the mediator, and 0 from the third island."""

    def lie(sender: Address, to: Address, message: Any) -> Message:
        swapped = type(message) is session.MixBatch and sender.role == "receiver" and to.party == "island-1"
        return structs.replace(message, order=0) if swapped else message

    lying(monkeypatch, lie)
    with pytest.raises(AtollError, match="/receiver sent a batch of order 0, which is not due from it"):
        atoll.secure_sum(np.eye(3), "mix", parallel=True, form="elgamal")


@pytest.mark.parametrize(
    ("form", "field", "change", "wrong"),
    [
        ("onion", "session", lambda s: s + "x", "island-1/contributor is in another session"),
        ("onion", "receivers", lambda told: (*told, "x/receiver"), "or sums for other receivers"),
        ("onion", "layer", lambda key: key[:-1], "a key of 31 bytes came where 32 are due"),
        ("elgamal", "layer", lambda key: key[:64] + bytes(32), "proof of possession does not fit"),
    ],
)
def test_keys_of_another_session_or_without_a_proof_are_refused(
    form: str, field: str, change: Any, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lie(sender: Address, to: Address, message: Any) -> Message:
        if type(message) is not session.MixKeys or sender.party != "island-1":
            return message
        return structs.replace(message, **{field: change(getattr(message, field))})

    lying(monkeypatch, lie)
    with pytest.raises(AtollError, match=wrong):
        atoll.secure_sum([[1.0], [2.0], [3.0]], "mix", form=form)


def test_an_input_that_says_another_number_of_values_is_not_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    def lie(sender: Address, to: Address, message: Any) -> Message:
        other = type(message) is session.MixInput and sender.party == "island-1"
        return structs.replace(message, n=message.n + 1) if other else message

    lying(monkeypatch, lie)
    with pytest.raises(AtollError, match="island-1/contributor sent an input of another shape than 1 values"):
        atoll.secure_sum([[1.0], [2.0], [3.0]], "mix")


def test_no_two_segments_of_a_value_are_alike() -> None:
    values = fixedpoint.encode([1.0, -2.0])
    segments = cut(values, 5, "uniform", 150, b"s" * 32)
    assert len({segment.tobytes() for segment in segments}) == 5


def test_a_session_has_a_mediator_that_contributes_nothing() -> None:
    who = summation("mix").study.who("contributor")
    with pytest.raises(ParameterError, match="the mediator of a mix cannot be a contributor"):
        Mix(None, None, contributors=who, receivers=who[:1], session="s", longest=1)


@pytest.mark.parametrize("form", ["onion", "elgamal"])
def test_no_key_of_a_mix_serves_for_layers_and_for_masks(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is shown how a layer comes off would have the masks, which alone hide the numbers."""
    made, real = list[bytes](), randomness.derive

    def derive(seed: bytes, *domain: str | bytes | int) -> bytes:
        key = real(seed, *domain)
        if domain in (("layer",), ("mask",)):
            made.append(key)
        return key

    monkeypatch.setattr(randomness, "derive", derive)
    example = summation("mix", {"form": form})
    run_study(example.study, example.own)
    assert len(made) == len(set(made)) == 2 * 5  # four islands and the receiver
