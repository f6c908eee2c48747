"""Whoever carries messages alters one field of one: the run ends with an error, or the reason stands here.

Every field of the first message of every kind is altered in every way that its type allows (cut, longer,
another number, a name twice ...). What is listed is all that passes, and why it may. A check that is lost
anywhere in a protocol lets something else pass.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.support.altered import unnoticed
from tests.support.examples import EXAMPLES, Example, mediated, summation

# A key, seed or share for pairs that is changed, and still is one, makes a wrong sum and shows nothing; it
# is refused only where it happens to be too large. The network seals messages between two parties: only these
# two can change them.
SECRET = {"ShareSeed", "MaskKey", "MaskBackup", "MixKeys", "Unmasking"}


def _certain(names: set[str]) -> set[str]:
    """Without what is noticed or not by chance."""
    return {name for name in names if not (name.split()[0] in SECRET and name.endswith(": a bit"))}


SEED = {"ShareSeed contributor>contributor seed: a bit"}
KEY = {"MaskKey contributor>contributor key: a bit"}
# What nobody needs while everybody stays.
SPARE = {
    f"{kind} {field}: {how}"
    for kind, field in (
        ("MaskBackup contributor>contributor", "key_share"),
        ("MaskedInput contributor>receiver", "key"),
        ("Unmasking contributor>receiver", "self_shares: first"),
    )
    for how in ("a bit", "cut", "longer")
} | {"MaskBackup contributor>contributor self_share: a bit"}


def _of_mix(broker: str, *, onion: bool) -> set[str]:
    """Masks are between contributors, layers for everybody: a mediator's mask key is for nobody."""
    spare = {
        f"MixKeys {way} mask: {how}"
        for way in (f"contributor>{broker}", f"{broker}>contributor")
        for how in ("a bit", "cut", "longer")
    }
    # The mediator puts no layer on, so the key it is told for one may be any key.
    layer = {f"MixKeys contributor>{broker} layer: a bit"} if onion else set()
    return {"MixKeys contributor>contributor mask: a bit"} | spare | layer


SUMS: dict[str, tuple[Callable[[], Example], set[str]]] = {
    "shares": (lambda: summation("shares", n=3), SEED),
    "masks": (lambda: summation("masks", n=3), KEY),
    "masks-dropouts": (lambda: summation("masks", {"dropouts": 1}, 5), KEY | SPARE),
    "masks-sparse": (lambda: summation("masks", {"graph": "sparse"}, 12), KEY),
    "lattice": (lambda: summation("lattice", n=3), set()),
    "lattice-server": (lambda: summation("lattice", {"key": "server"}, 3), set()),
    "mix": (lambda: summation("mix", n=3), _of_mix("receiver", onion=True)),
    "mix-elgamal": (lambda: summation("mix", {"form": "elgamal"}, 3), _of_mix("receiver", onion=False)),
    "mix-parallel": (lambda: summation("mix", {"parallel": True}, 3), _of_mix("receiver", onion=True)),
    "mix-mediated": (lambda: mediated(summation("mix", n=3)), _of_mix("mediator", onion=True)),
}


# What only its owner knows: a name that its column has, or a number that nobody else can compute. The order
# of rows means nothing where rows are split.
ORDER = "Columns {}>{} order: other words"


def _told(server: str, to: str, *, islands: bool = True) -> set[str]:
    """How many rows there are, to one who can count its own at the most."""
    said = {f"SampleCount {server}>{to} n_samples: one {how}" for how in ("more", "less")}
    return said | ({f"SampleCount {server}>{to} islands: one fewer"} if islands else set())


OF_COLUMNS = {
    "Joint server>provider widths: first for last",  # where others begin is nothing to this island
    "OwnPart provider>provider names: first: other words",
    "OwnPart provider>consumer names: first: other words",
    "Fit provider>consumer values: one fewer",
    "CommonRows server>consumer n_samples: one more",
    "CommonRows server>consumer n_samples: one less",
}
CLASSES = {
    f"Rest server>consumer classes: {how}"  # a consumer knows no class but those that it is told
    for how in ("one fewer", "first: other words")
}
PROTOCOLS: dict[str, set[str]] = {
    "meta": _told("server", "provider")
    | {ORDER.format("provider", "server")}
    | {f"LocalComponents provider>server n: one {how}" for how in ("more", "less")},
    "privatelocal": _told("owner", "owner") | {ORDER.format("owner", "data_user")},
    "pppca-ellipses": {ORDER.format("provider", "server")},
    # A consumer has no table: columns and classes are those that it is told, and numbers may have any type.
    "pppca-shares": _told("server", "consumer")
    | {ORDER.format("provider", "server")}
    | {f"Model server>consumer columns: {how}" for how in ("first for last", "first: other words")}
    | {f"Projection provider>consumer {what}: other numbers" for what in ("scores", "labels")}
    | {
        f"Projection provider>consumer classes: {how}"
        for how in ("one twice", "first for last", "first: other words")
    },
    "dpdpca-shares": _told("data_user", "owner")
    | {ORDER.format("owner", "proxy")}
    | {f"AgreedColumns proxy>data_user {how}" for how in ("names: first: other words", "named: turned")},
    "gradient-descent": {
        *(ORDER.format("provider", "server"), "Columns provider>server named: turned"),
        *("Model server>consumer values: one fewer", "Fit server>consumer values: one fewer"),
        *(
            f"Model server>consumer values: first: {how}"
            for how in ("one fewer", "one twice", "first for last", "first: other words")
        ),
        *(f"CommonRows server>consumer n_samples: one {how}" for how in ("more", "less")),
    },
    "gradient-descent-columns": OF_COLUMNS
    | {f"Over provider>server step: one {h}" for h in ("more", "less")},
    "least-squares-columns": OF_COLUMNS | {"ShareSeed provider>provider seed: a bit"},
    "kmeans-columns": OF_COLUMNS - {"Joint server>provider widths: first for last"},
    "classifier-columns-held": OF_COLUMNS | CLASSES | {"ShareSeed provider>provider seed: a bit"},
}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_an_altered_message_of_a_protocol_ends_it(name: str) -> None:
    # Some of what is listed is noticed by chance: a table of one row less may be a wrong one elsewhere too.
    assert _certain(set(unnoticed(EXAMPLES[name]()))) <= _certain(PROTOCOLS[name])


@pytest.mark.parametrize("name", SUMS)
def test_an_altered_message_of_a_sum_ends_it(name: str) -> None:
    made, may_pass = SUMS[name]
    assert _certain(set(unnoticed(made()))) == _certain(may_pass)
