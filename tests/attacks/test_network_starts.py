"""A hub, a stranger or a party that deviates, when a run starts across machines.

Each attack is refused before anything of the run exists.
"""

from __future__ import annotations

import msgspec
import pytest
from msgspec import structs
from tests.support.examples import pppca
from tests.support.sites import identities, identity, pinned

from atoll import codec
from atoll.errors import AtollError, MessageError, RunError
from atoll.runtime.nats.starts import (
    LONGEST_LIFETIME,
    Approval,
    Given,
    Opened,
    Proposal,
    Proposed,
    Signed,
    approve,
    begin,
    open_signed,
    propose,
    read_approval,
    read_proposal,
    run_id,
    sign,
)

NOW = 1_800_000_000
STUDY = pinned(pppca().study)
KEYS = identities(STUDY)
SUBMITTER = "consumer"


def proposed() -> Proposed:
    return propose(KEYS[SUBMITTER], STUDY, "to know more", now=NOW)


def reread(proposal: Proposal, by: str = SUBMITTER) -> Proposed:
    return read_proposal(open_signed(sign(KEYS[by], proposal)), now=NOW)


def outer(of: Proposed) -> Signed:
    signed: Signed = codec.decode(of.signed, Signed)
    return signed


# ---- a study altered after it was signed, or after it was approved ----


def test_a_hub_that_alters_a_proposed_study_is_noticed_by_the_signature() -> None:
    signed = outer(proposed())
    position = signed.body.index(b"to know more")
    for place in (position, len(signed.body) - 1, 40):
        body = bytearray(signed.body)
        body[place] ^= 1
        with pytest.raises(MessageError):
            open_signed(codec.encode(structs.replace(signed, body=bytes(body))))


def test_an_approval_is_no_approval_of_an_altered_study() -> None:
    """The submitter itself sends one study to the approver and another to the rest."""
    honest = proposed()
    given, _ = approve(KEYS["hospital-0"], honest, now=NOW)
    other_study = pinned(structs.replace(pppca().study, parameters={**STUDY.parameters, "n_components": 1}))
    other = propose(KEYS[SUBMITTER], other_study, "to know more", now=NOW)
    assert other.study.digest != honest.study.digest
    with pytest.raises(MessageError, match="belongs to another proposal"):
        read_approval(other, open_signed(given.signed), now=NOW)


def test_an_approval_of_one_digest_does_not_pass_for_another() -> None:
    of = proposed()
    given, _ = approve(KEYS["server"], of, now=NOW)
    lying = structs.replace(given.approval, digest="0" * 64)
    with pytest.raises(MessageError, match="approved another study"):
        read_approval(of, open_signed(sign(KEYS["server"], lying)), now=NOW)


def test_a_study_that_means_something_else_here_is_refused() -> None:
    """An option that the submitter's version fills in otherwise: the digest is recomputed, not believed."""
    of = proposed()
    plain = msgspec.json.decode(of.proposal.study)
    del plain["parameters"]["standardize"]
    shorter = msgspec.json.encode(plain, order="sorted")
    with pytest.raises(MessageError, match="means something else here"):
        reread(structs.replace(of.proposal, study=shorter))
    loose = msgspec.json.format(of.proposal.study, indent=1)
    with pytest.raises(MessageError, match="means something else here"):
        reread(structs.replace(of.proposal, study=loose))


def test_a_study_of_another_version_is_refused() -> None:
    of = proposed()
    plain = msgspec.json.decode(of.proposal.study)
    for change in ({"version": 99}, {"format": 1}):
        newer = msgspec.json.encode({**plain, **change}, order="sorted")
        with pytest.raises(AtollError, match=r"version 99|format 1"):
            reread(structs.replace(of.proposal, study=newer))


# ---- forged senders ----


def test_a_stranger_cannot_propose() -> None:
    with pytest.raises(MessageError, match="names no party with the key"):
        read_proposal(open_signed(sign(identity("stranger"), proposed().proposal)), now=NOW)


def test_a_party_cannot_approve_for_another() -> None:
    of = proposed()
    given, _ = approve(KEYS["server"], of, now=NOW)
    forged = sign(KEYS["hospital-0"], given.approval)
    with pytest.raises(MessageError, match="another party than the one that signed"):
        read_approval(of, open_signed(forged), now=NOW)


def test_a_signature_is_not_moved_to_another_signer() -> None:
    of = proposed()
    given, _ = approve(KEYS["server"], of, now=NOW)
    signed: Signed = codec.decode(given.signed, Signed)
    for raw in (KEYS["hospital-0"].public.raw, identity("stranger").public.raw):
        with pytest.raises(MessageError, match="a signature is not that of"):
            open_signed(codec.encode(structs.replace(signed, signer=raw)))


def test_a_hub_that_hands_out_its_own_key_as_a_partys_is_refused() -> None:
    """Its key has another fingerprint than the study pins, whatever name it gives the key."""
    of = proposed()
    hub = identity("the hub")
    given, _ = approve(KEYS["server"], of, now=NOW)
    with pytest.raises(MessageError, match="names no party with the key"):
        read_approval(of, open_signed(sign(hub, given.approval)), now=NOW)
    # Nor half of the key: a party's signing key with the hub's sealing key is another fingerprint.
    mixed = KEYS["server"].public.signing + hub.public.sealing
    signed: Signed = codec.decode(given.signed, Signed)
    halfway = open_signed(codec.encode(structs.replace(signed, signer=mixed)))
    with pytest.raises(MessageError, match="names no party with the key"):
        read_approval(of, halfway, now=NOW)


def test_an_approval_does_not_pass_for_a_proposal_nor_the_other_way() -> None:
    of = proposed()
    given, _ = approve(KEYS["server"], of, now=NOW)
    with pytest.raises(MessageError, match="no proposal"):
        read_proposal(open_signed(given.signed), now=NOW)
    with pytest.raises(MessageError, match="no approval"):
        read_approval(of, open_signed(of.signed), now=NOW)


# ---- replay, and one approval for two runs ----


def test_an_approval_is_not_replayed_to_a_second_proposal_of_the_same_study() -> None:
    first, second = proposed(), proposed()
    assert first.study.digest == second.study.digest
    assert first.id != second.id
    given, _ = approve(KEYS["server"], first, now=NOW)
    with pytest.raises(MessageError, match="belongs to another proposal"):
        read_approval(second, open_signed(given.signed), now=NOW)


def test_an_approval_does_not_serve_two_runs() -> None:
    """Another party approves twice: the runs differ, and the first approval's key fits one only."""
    of = proposed()
    given: dict[str, Given] = {}
    private: dict[str, bytes] = {}
    for name, key in KEYS.items():
        given[name], private[name] = approve(key, of, now=NOW)
    again, _ = approve(KEYS["hospital-0"], of, now=NOW)
    first = begin(KEYS["server"], of, given, private["server"])
    second = begin(KEYS["server"], of, {**given, "hospital-0": again}, private["server"])
    assert first.run_id != second.run_id
    assert first.journal_key != second.journal_key
    assert first.topic != second.topic


def test_a_proposal_resigned_is_the_same_proposal() -> None:
    """The id names the content: whoever repeats it under another signature starts nothing new."""
    of = proposed()
    assert Opened(of.proposal, KEYS[SUBMITTER].public, sign(KEYS["server"], of.proposal)).digest == of.id


# ---- time and versions ----


def test_expired_proposals_and_approvals_are_refused() -> None:
    of = proposed()
    given, _ = approve(KEYS["server"], of, now=NOW)
    late = of.proposal.expires
    with pytest.raises(MessageError, match="expired"):
        read_proposal(open_signed(of.signed), now=late)
    with pytest.raises(MessageError, match="expired"):
        approve(KEYS["server"], of, now=late)
    with pytest.raises(MessageError, match="expired"):
        read_approval(of, open_signed(given.signed), now=late)
    brief = structs.replace(given.approval, expires=NOW)
    with pytest.raises(MessageError, match="expired"):
        read_approval(of, open_signed(sign(KEYS["server"], brief)), now=NOW)


def test_a_proposal_cannot_live_for_ever() -> None:
    of = proposed()
    for change in (
        {"expires": NOW + LONGEST_LIFETIME + 1},
        {"made": NOW + 301, "expires": NOW + LONGEST_LIFETIME},
    ):
        with pytest.raises(MessageError, match="dated in the future"):
            reread(structs.replace(of.proposal, **change))


@pytest.mark.parametrize("spoken", [(), (99,)])
def test_other_versions_are_refused_before_any_key_is_made(spoken: tuple[int, ...]) -> None:
    of = proposed()
    with pytest.raises(RunError, match="no version of the wire format in common"):
        reread(structs.replace(of.proposal, wire=spoken))
    given, _ = approve(KEYS["server"], of, now=NOW)
    other = structs.replace(given.approval, wire=spoken)
    with pytest.raises(RunError, match="no version of the wire format in common"):
        read_approval(of, open_signed(sign(KEYS["server"], other)), now=NOW)


def test_every_field_of_an_approval_decides_the_run() -> None:
    of = proposed()
    approvals = {name: approve(key, of, now=NOW)[0].approval for name, key in KEYS.items()}
    first = run_id(of, approvals)
    one = approvals["server"]
    for change in (
        {"nonce": bytes(32)},
        {"ephemeral": bytes(32)},
        {"wire": (1, 2)},
        {"atoll": "0"},
        {"expires": NOW + 1},
    ):
        changed: Approval = structs.replace(one, **change)
        assert run_id(of, {**approvals, "server": changed}) != first
