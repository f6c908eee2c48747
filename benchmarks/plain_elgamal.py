"""ElGamal as the secure-sum paper has it, to compare with: 2048-bit residues, one encryption inside another.

For tests and benchmarks only: no constant time, no proofs. An outer layer encrypts both halves of the inner
ciphertext, so every layer doubles the number of group elements.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from gmpy2 import mpz, powmod

# RFC 3526, group 14: a safe prime, p = 2q + 1; 4 generates the squares, a group of prime order q.
P = mpz(
    "0xFFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DD"
    "EF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7ED"
    "EE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3DC2007CB8A163BF0598DA48361C55D39A69163FA8FD24CF5F"
    "83655D23DCA3AD961C62F356208552BB9ED529077096966D670C354E4ABC9804F1746C08CA18217C32905E462E36CE3B"
    "E39E772C180E86039B2783A2EC07A28FB5C55DF06F4C52C9DE2BCBF6955817183995497CEA956AE515D2261898FA0510"
    "15728E5A8AACAA68FFFFFFFFFFFFFFFF"
)
Q = (P - 1) // 2
G = mpz(4)

Elements = tuple[mpz, ...]


def keygen() -> tuple[mpz, mpz]:
    """A secret exponent, and the public key."""
    secret = mpz(secrets.randbelow(int(Q) - 1) + 1)
    return secret, powmod(G, secret, P)


def embed(value: int) -> mpz:
    """A number below q as a square: itself, or its negative."""
    m = mpz(value) + 1
    return m if powmod(m, Q, P) == 1 else P - m


def extract(element: mpz) -> int:
    return int(element if element <= Q else P - element) - 1


def wrap(value: int, keys: Sequence[mpz]) -> Elements:
    """One layer for each key, the first innermost."""
    elements: Elements = (embed(value),)
    for key in keys:
        layered: list[mpz] = []
        for m in elements:
            d = mpz(secrets.randbelow(int(Q) - 1) + 1)
            layered += [powmod(G, d, P), m * powmod(key, d, P) % P]
        elements = tuple(layered)
    return elements


def strip(elements: Elements, secret: mpz) -> Elements:
    """The same without the outermost layer."""
    pairs = zip(elements[::2], elements[1::2], strict=True)
    return tuple(b * powmod(a, Q - secret, P) % P for a, b in pairs)


def mixed(values: Sequence[Sequence[int]]) -> list[int]:
    """Values of several parties through all layers: in turn, shuffled, and read by a mediator."""
    mediator, parties = keygen(), [keygen() for _ in values]
    keys = [mediator[1], *(public for _, public in parties)]
    batch = [wrap(value, keys) for own in values for value in own]
    for secret, _ in reversed(parties):
        batch = [strip(elements, secret) for elements in batch]
        secrets.SystemRandom().shuffle(batch)
    return [extract(strip(elements, mediator[0])[0]) for elements in batch]
