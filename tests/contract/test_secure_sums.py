"""Every secure sum: exact for any sign and size; nothing but the sum is seen; leaving is survived."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import SUMS, summation

import atoll
from atoll import fixedpoint, randomness, secure_sums
from atoll.codec import Decoder, Message
from atoll.errors import AtollError, PartyLeft, RangeOverflow
from atoll.protocols import protocol_of
from atoll.protocols.own import owned
from atoll.runtime.engine import Observer
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.local.faults import Faults
from atoll.secure_sums import masks, shares
from atoll.secure_sums.graph import MAX_NEIGHBOURS, neighbours
from atoll.study.address import Address


def exact_sum(vectors: list[np.ndarray]) -> np.ndarray:
    """What the grid gives: each value rounded to it, added without error."""
    total = fixedpoint.Accumulator(vectors[0].size)
    for vector in vectors:
        total.add(fixedpoint.encode(vector))
    return fixedpoint.decode(total.total())


def rounded_once(vectors: list[np.ndarray]) -> np.ndarray:
    """The doubles nearest to the exact sums."""
    return np.array([float(sum(map(Fraction, column))) for column in np.stack(vectors, axis=1).tolist()])


def options_for(options: dict[str, Any], n: int) -> dict[str, Any]:
    return {} if options.get("dropouts") and n < 4 else options


@pytest.mark.parametrize(("method", "options"), SUMS)
@given(data=st.data())
@settings(max_examples=15)
def test_sums_are_exact_on_the_grid(method: str, options: dict[str, Any], data: st.DataObject) -> None:
    n_islands = data.draw(st.integers(2, 9))
    length = data.draw(st.integers(1, 40))
    size = 10.0 ** data.draw(st.integers(-12, 24))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    vectors = [rng.normal(size=length) * size for _ in range(n_islands)]
    total = atoll.secure_sum(vectors, method, **options_for(options, n_islands))
    # The published form keeps every digit of a double and rounds once, at the end (0.1.0 did so too). What
    # the grid decodes is rounded on the way as well, and may be a unit in the last place away.
    published = options.get("encoding") == "exponent"
    np.testing.assert_array_equal(total, (rounded_once if published else exact_sum)(vectors))
    np.testing.assert_array_max_ulp(total, exact_sum(vectors), maxulp=1)


@pytest.mark.parametrize(("method", "options"), SUMS)
def test_fifty_islands(method: str, options: dict[str, Any]) -> None:
    vectors = [np.array([1.5, -2.25, 1e9, i / 7]) for i in range(50)]
    np.testing.assert_array_equal(atoll.secure_sum(vectors, method, **options), exact_sum(vectors))


@pytest.mark.parametrize("method", list(secure_sums.METHODS))
def test_long_vectors_are_streamed_in_blocks(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atoll.secure_sums.base.BLOCK_VALUES", 1000)
    vectors = [np.random.default_rng(i).normal(size=4321) for i in range(3)]
    np.testing.assert_array_equal(atoll.secure_sum(vectors, method), exact_sum(vectors))


@pytest.mark.parametrize(("method", "options"), SUMS)
def test_any_element_of_the_group_may_be_added_where_a_method_says_so(
    method: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranges are found with uniform elements: where they wrapped elsewhere, a sum would say how many."""
    words = np.random.default_rng(3).integers(0, 1 << 64, (5, fixedpoint.LIMBS, 40), dtype=np.uint64)
    given, seen = iter(words), list[Any]()
    decode = fixedpoint.decode
    monkeypatch.setattr(fixedpoint, "encode", lambda _, **__: next(given))
    monkeypatch.setattr(fixedpoint, "decode", lambda limbs: (seen.append(limbs), decode(limbs))[1])
    study = summation(method, options, 5).study
    vectors = [np.zeros(40)] * 5
    if not secure_sums.chosen(study).wraps:
        if options.get("encoding") != "exponent":  # which takes doubles, and not the grid
            with pytest.raises(RangeOverflow):
                atoll.secure_sum(vectors, method, **options)
        return
    atoll.secure_sum(vectors, method, **options)
    total = fixedpoint.Accumulator(40)
    for vector in words:
        total.add(vector)
    np.testing.assert_array_equal(seen[-1], total.total())


@pytest.mark.parametrize("method", list(secure_sums.METHODS))
def test_shapes_are_kept_and_overflow_is_an_error(method: str) -> None:
    assert atoll.secure_sum([np.ones((2, 3, 4))] * 3, method).shape == (2, 3, 4)
    with pytest.raises(RangeOverflow):
        atoll.secure_sum([[1.0], [fixedpoint.bound(3)], [1.0]], method)


@pytest.mark.parametrize(("options", "n"), [({}, 4), ({"dropouts": 1}, 4), ({"dropouts": 2}, 12)])
@pytest.mark.parametrize("blocks", [1, 3])
def test_masks_cost_what_is_predicted(
    options: dict[str, Any], n: int, blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atoll.secure_sums.base.BLOCK_VALUES", 5 if blocks == 1 else 2)
    example = summation("masks", options, n)
    expected = secure_sums.expected(example.study, n, [5])
    transcript = LocalEngine().run(protocol_of("sum"), example.study, example.own).transcript
    # To each neighbour: key, backup, comparison; with the receiver: five messages (one without dropouts).
    literal = n * (3 * (n - 1) + 5) * blocks if options else n * (n - 1 + blocks)
    assert transcript.messages == expected.messages == literal
    assert transcript.rounds == expected.rounds == (6 * blocks + 1 if options else 2)
    sent = [cost.bytes_sent for address, cost in transcript.roles.items() if "receiver" not in str(address)]
    assert max(sent) == pytest.approx(expected.bytes_per_contributor, rel=0.03)
    assert transcript.bytes == pytest.approx(expected.bytes_total, rel=0.03)


# ---- what is seen ----


class Bodies(Observer):
    """Collects the bytes of all vectors on the wire."""

    def __init__(self, decoder: Decoder[Message]) -> None:
        self.decoder = decoder
        self.seen: dict[Address, list[bytes]] = defaultdict(list)

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        message = self.decoder.decode(data)
        body = getattr(message, "body", None)
        if body is not None:
            self.seen[sender].append(body.tobytes())


@pytest.mark.parametrize(("method", "options"), [("shares", {}), ("masks", {}), ("masks", {"dropouts": 1})])
def test_what_a_contributor_sends_looks_uniform(method: str, options: dict[str, Any]) -> None:
    length = 1_000_000 // fixedpoint.BYTES_PER_VALUE + 1
    example = summation(method, options)
    islands = {name: atoll.Island.from_array(np.ones((1, length)), name=name) for name in example.islands}
    study = type(example.study)(
        **{f: getattr(example.study, f) for f in example.study.__struct_fields__ if f != "parameters"},
        parameters={"length": length},
    )
    protocol = protocol_of("sum")
    tap = Bodies(Decoder[Message](protocol.all_messages(study)))
    LocalEngine().run(protocol, study, owned(islands), observer=tap)
    assert len(tap.seen) == 4
    for bodies in tap.seen.values():
        counts = np.bincount(np.frombuffer(b"".join(bodies), np.uint8), minlength=256)
        expected = counts.sum() / 256
        assert counts.sum() >= 1_000_000
        assert np.sum((counts - expected) ** 2 / expected) < 380  # 255 degrees of freedom, p about 1e-6


def test_any_but_one_of_the_shares_say_nothing() -> None:
    """Whatever the value, the shares that others hold are the same bytes; the last one is uniform."""
    seeds = [randomness.derive(bytes(32), "test", i) for i in range(4)]
    n = 50_000
    zeros, ones = fixedpoint.encode(np.zeros(n)), fixedpoint.encode(np.full(n, 1e9))
    held = [shares.share(seed, "b", n) for seed in seeds]
    for value in (zeros, ones):
        last = shares.last_share(value, seeds, "b")
        np.testing.assert_array_equal(shares.reconstruct([*held, last], n), value)
        # Without one of the held shares, what is left is uniform: it says nothing about the value.
        partial = shares.reconstruct([*held[1:], last], n)
        counts = np.bincount(np.frombuffer(partial.tobytes(), np.uint8), minlength=256)
        expected = counts.sum() / 256
        assert np.sum((counts - expected) ** 2 / expected) < 380


def test_masks_vanish_only_in_the_whole_sum() -> None:
    """A receiver with all inputs but one, or with one input alone, sees noise."""
    n, M = 1000, 4
    keys = [randomness.derive(bytes(32), "key", i) for i in range(M)]
    publics = [masks.public_key(key) for key in keys]
    value = fixedpoint.encode(np.ones(n))
    sent = []
    for u in range(M):
        seeds = {v: masks.pair_seed(keys[u], publics[v]) for v in range(M) if v != u}
        sent.append(masks.gen_masked(value, u, seeds, None, "b"))
    np.testing.assert_array_equal(fixedpoint.decode(shares.reconstruct(sent, n)), np.full(n, float(M)))
    for part in (sent[:1], sent[:3], sent[1:]):
        seen = fixedpoint.decode(shares.reconstruct(part, n))
        assert np.abs(seen).min() > 1e3


@pytest.mark.parametrize("n", [5, 101, 102, 250])
def test_the_graph_of_comparisons_stays_connected_whoever_colludes(n: int) -> None:
    """Symmetric, and no choice of 99 colluders (tried: a run of them, and random ones) cuts it."""
    graph = {u: set(neighbours(u, n)) for u in range(n)}
    assert all(u in graph[v] for u in graph for v in graph[u])
    assert all(len(graph[u]) == min(n - 1, MAX_NEIGHBOURS) for u in graph)
    colluders = min(n - 2, MAX_NEIGHBOURS - 1)
    rng = np.random.default_rng(0)
    half = colluders // 2
    opposite = [*range(half), *((n // 2 + i) % n for i in range(colluders - half))]
    for gone in (range(colluders), opposite, *(rng.permutation(n)[:colluders] for _ in range(50))):
        left = set(range(n)) - set(gone)
        reached, frontier = set(), [next(iter(left))]
        while frontier:
            u = frontier.pop()
            if u not in reached:
                reached.add(u)
                frontier += [v for v in graph[u] if v in left and v not in reached]
        assert reached == left


# ---- leaving ----


@pytest.mark.filterwarnings("ignore::atoll.errors.MissingIslands")
@pytest.mark.parametrize("dies_at", range(1, 20))
def test_a_contributor_may_leave_at_any_message(dies_at: int) -> None:
    """Masks with dropouts: the sum is over those who stayed to send theirs; never a wrong number."""
    vectors = {f"i{i}": np.array([10.0**i, -1.0]) for i in range(6)}
    engine = LocalEngine(faults=Faults(crash={"i2/contributor": dies_at}))
    total = atoll.secure_sum(vectors, "masks", dropouts=2, engine=engine)
    with_all = sum(vectors.values())
    assert total.tolist() in ([*with_all.tolist()], [*(with_all - vectors["i2"]).tolist()])
    # Five keys, five backups, one note that they are sent, then the input: it counts once that has left,
    # also if its owner leaves while the others compare who stayed (five messages), or before it answers.
    assert (total == with_all).all() == (dies_at > 12)


def test_two_may_leave_at_different_moments() -> None:
    vectors = {f"i{i}": np.array([10.0**i]) for i in range(6)}
    engine = LocalEngine(faults=Faults(crash={"i1/contributor": 8, "i4/contributor": 13}))
    with pytest.warns(atoll.errors.MissingIslands, match="i1 left"):
        assert atoll.secure_sum(vectors, "masks", dropouts=2, engine=engine)[0] == 111111 - 10


def test_more_leaving_than_allowed_is_an_error_that_names_them() -> None:
    vectors = {f"i{i}": np.array([10.0**i]) for i in range(6)}
    engine = LocalEngine(faults=Faults(crash={"i1/contributor": 2, "i4/contributor": 7}))
    with pytest.raises(PartyLeft, match=r"2 contributors left \(i1/contributor, i4/contributor\)"):
        atoll.secure_sum(vectors, "masks", dropouts=1, engine=engine)


@pytest.mark.parametrize("method", ["shares", "masks", "mix"])
def test_without_dropouts_a_leaving_contributor_ends_the_run(method: str) -> None:
    engine = LocalEngine(faults=Faults(crash={"island-1/contributor": 2}))
    with pytest.raises(PartyLeft, match="island-1/contributor left before sending"):
        atoll.secure_sum([[1.0], [2.0], [3.0]], method, engine=engine)


def test_pca_goes_on_without_an_island_that_left_early_and_stops_when_it_left_late() -> None:
    rng = np.random.default_rng(0)
    tables = {f"i{i}": rng.normal(size=(20, 3)) for i in range(5)}
    options: dict[str, Any] = {"secure_sum": "masks", "dropouts": 1, "accept_determined": True}
    for dies_at in (3, 6, 14):  # comparing the columns, sending keys, after its backups
        early = LocalEngine(faults=Faults(crash={"i3/provider": dies_at}))
        with pytest.warns(atoll.errors.MissingIslands, match="i3 left"):
            left = atoll.PCA(2, engine=early, **options).fit(tables)
        assert left.islands_ == ["i0", "i1", "i2", "i4"]
    stayed = atoll.PCA(2, accept_determined=True).fit({name: X for name, X in tables.items() if name != "i3"})
    np.testing.assert_allclose(left.components_, stayed.components_, atol=1e-12)
    # While who stayed is compared, while the mean is, and when the keys of the second sum are due.
    for dies_at in (17, 22, 26):
        late = LocalEngine(faults=Faults(crash={"i3/provider": dies_at}))
        with pytest.raises(PartyLeft, match=r"i3 left .*after an earlier sum was opened"):
            atoll.PCA(2, engine=late, **options).fit(tables)


def test_unknown_options_are_refused() -> None:
    with pytest.raises(AtollError, match="dropout"):
        atoll.secure_sum([[1.0], [2.0]], "shares", dropout=1)


def test_the_stated_collusion_bound_counts_dropouts() -> None:
    options = secure_sums.read_options(masks.Masks, {"dropouts": 3})
    assert "up to 5 of the 10 islands" in masks.Masks.trust(10, options)
    with pytest.raises(AtollError, match="cannot lose 5"):
        masks.Masks.check(10, secure_sums.read_options(masks.Masks, {"dropouts": 5}))


def test_two_sums_at_once_give_blas_its_threads_back() -> None:
    from threading import Thread

    from threadpoolctl import threadpool_info

    def threads() -> list[int]:
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before = threads()
    runs = [Thread(target=atoll.secure_sum, args=([np.ones(10_000)] * 3,)) for _ in range(4)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert threads() == before
