"""Proposals, approvals and the run that they make: what is bound to what."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import structs
from tests.support.examples import pppca
from tests.support.sites import identities, pinned

from atoll import codec
from atoll.crypto.identity import Identity
from atoll.errors import MessageError, RunError, StudyError
from atoll.runtime.nats import starts
from atoll.runtime.nats.starts import (
    Approval,
    Cancel,
    Decline,
    Ended,
    Given,
    Proposal,
    Proposed,
    approve,
    begin,
    open_signed,
    propose,
    read_answer,
    read_approval,
    read_proposal,
    run_id,
    sign,
)

NOW = 1_800_000_000
STUDY = pinned(pppca().study)
KEYS = identities(STUDY)
SUBMITTER = "consumer"


def proposed(**options: object) -> Proposed:
    return propose(KEYS[SUBMITTER], STUDY, "why not", now=NOW, **options)  # type: ignore[arg-type]


def everybody(of: Proposed) -> tuple[dict[str, Given], dict[str, bytes]]:
    given, private = {}, {}
    for name, key in KEYS.items():
        given[name], private[name] = approve(key, of, now=NOW)
    return given, private


def test_what_is_proposed_arrives_as_it_is() -> None:
    of = proposed()
    again = read_proposal(open_signed(of.signed), now=NOW)
    assert again.study == STUDY
    assert again.study.digest == STUDY.digest
    assert again.id == of.id
    assert again.submitter.name == SUBMITTER
    assert again.proposal.reason == "why not"


def test_all_parties_begin_the_same_run_with_keys_of_their_own() -> None:
    of = proposed()
    given, private = everybody(of)
    begun = {name: begin(key, of, given, private[name]) for name, key in KEYS.items()}
    assert len({start.run_id for start in begun.values()}) == 1
    assert len({start.journal_key for start in begun.values()}) == len(begun)
    assert all(start.me == name for name, start in begun.items())
    start = begun["hospital-0"]
    assert start.fingerprint("server") == KEYS["server"].fingerprint
    assert len(start.topic) == 32
    assert private["hospital-0"].hex() not in repr(start)


@pytest.mark.parametrize("rehearse", [False, True])
def test_a_rehearsal_begins_as_one(rehearse: bool) -> None:
    """A party that took it for a run would read its table, and release what is made of it."""
    of = proposed(rehearse=rehearse)
    given, private = everybody(of)
    for name, key in KEYS.items():
        assert begin(key, of, given, private[name]).rehearse is rehearse


def test_every_run_of_a_party_has_a_journal_key_of_its_own() -> None:
    keys = set()
    for _ in range(2):
        of = proposed()
        given, private = everybody(of)
        keys.add(begin(KEYS["server"], of, given, private["server"]).journal_key)
    assert len(keys) == 2


def test_a_proposed_study_pins_every_party_whoever_wrote_it() -> None:
    """A submitter's Atoll that looks for no fingerprints is not believed: one key would answer for two."""
    first, second, *rest = STUDY.parties
    for changed in (None, second.fingerprint, "abc"):
        parties = (structs.replace(first, fingerprint=changed), second, *rest)
        study = structs.replace(STUDY, parties=parties)
        with pytest.raises(StudyError, match="fingerprint"):
            starts.read_study(study.canonical())


def test_another_nonce_of_anybody_is_another_run() -> None:
    of = proposed()
    given, _ = everybody(of)
    approvals = {name: one.approval for name, one in given.items()}
    first = run_id(of, approvals)
    again, _ = approve(KEYS["server"], of, now=NOW)
    assert run_id(of, {**approvals, "server": again.approval}) != first
    assert run_id(proposed(), approvals) != first


def test_nothing_begins_without_everybodys_approval() -> None:
    of = proposed()
    given, private = everybody(of)
    del given["hospital-1"]
    with pytest.raises(RunError, match="hospital-1 has not approved"):
        begin(KEYS["server"], of, given, private["server"])


def test_a_run_has_the_key_that_was_approved() -> None:
    of = proposed()
    given, private = everybody(of)
    with pytest.raises(RunError, match="not the one that was approved"):
        begin(KEYS["server"], of, given, private["hospital-0"])


def test_control_messages_are_read_by_their_receiver_alone() -> None:
    of = proposed()
    frame = starts.seal(of.signed, KEYS["server"].public)
    assert starts.unseal(KEYS["server"], frame).digest == of.id
    with pytest.raises(MessageError, match="cannot be opened"):
        starts.unseal(KEYS["hospital-0"], frame)


@pytest.mark.parametrize("kind", [Decline, Cancel])
def test_answers_are_their_partys(kind: type) -> None:
    of = proposed()
    extra = ("owner",) if kind is Decline else ()
    good = kind(of.id, SUBMITTER, *extra)
    assert read_answer(of, open_signed(sign(KEYS[SUBMITTER], good)), kind).party == SUBMITTER
    with pytest.raises(MessageError, match="another party than the one that signed"):
        read_answer(of, open_signed(sign(KEYS["server"], good)), kind)
    elsewhere = kind(bytes(32), SUBMITTER, *extra)
    with pytest.raises(MessageError, match="another proposal"):
        read_answer(of, open_signed(sign(KEYS[SUBMITTER], elsewhere)), kind)


def test_only_its_submitter_cancels_a_proposal() -> None:
    of = proposed()
    with pytest.raises(MessageError, match="only its submitter"):
        read_answer(of, open_signed(sign(KEYS["server"], Cancel(of.id, "server"))), Cancel)


def test_between_machines_every_party_has_a_fingerprint_of_its_own() -> None:
    first, second, *rest = STUDY.parties
    without = structs.replace(STUDY, parties=(structs.replace(first, fingerprint=None), second, *rest))
    with pytest.raises(StudyError, match="'hospital-0' has no fingerprint"):
        propose(KEYS[SUBMITTER], without, "")
    twice = structs.replace(
        STUDY, parties=(structs.replace(first, fingerprint=second.fingerprint), second, *rest)
    )
    with pytest.raises(StudyError, match="has the fingerprint of 'hospital-0'"):
        propose(KEYS[SUBMITTER], twice, "")
    short = structs.replace(STUDY, parties=(structs.replace(first, fingerprint="abc"), second, *rest))
    with pytest.raises(StudyError, match="64 hexadecimal"):
        propose(KEYS[SUBMITTER], short, "")


@pytest.mark.parametrize(
    ("ours", "theirs", "spoken"),
    [((1,), (1,), 1), ((1, 2), (2, 3), 2), ((1, 2), (1,), 1), ((1, 2, 3), (3, 2, 4), 3)],
)
def test_the_newest_common_version_is_spoken(
    ours: tuple[int, ...], theirs: tuple[int, ...], spoken: int
) -> None:
    assert starts.common_version({"us": ours, "them": theirs}) == spoken


def test_times_are_as_docs_say() -> None:
    assert starts.LIFETIME == 604_800  # a week
    assert starts.LONGEST_LIFETIME == 7_776_000  # 90 days
    assert starts.SKEW == 300


def test_versions_without_one_in_common_are_refused_by_name() -> None:
    with pytest.raises(RunError, match="them 3; us 1, 2"):
        starts.common_version({"us": (1, 2), "them": (3,)})


def test_malformed_control_messages_are_refused() -> None:
    of = proposed()
    given, _ = everybody(of)
    good = given["server"].approval
    for change in ({"nonce": b""}, {"ephemeral": bytes(31)}):
        bad = structs.replace(good, **change)
        with pytest.raises(MessageError, match="malformed"):
            read_approval(of, open_signed(sign(KEYS["server"], bad)), now=NOW)
    for junk in (b"", b"\xc1", codec.encode({"type": "Signed"}), of.signed[:-1], of.signed + b"\0"):
        with pytest.raises(MessageError):
            open_signed(junk)


def test_a_proposal_lives_as_long_as_it_says_and_no_longer() -> None:
    of = proposed(lifetime=60)
    assert of.proposal.expires == NOW + 60
    assert read_proposal(open_signed(of.signed), now=NOW + 59)
    with pytest.raises(MessageError, match="expired"):
        read_proposal(open_signed(of.signed), now=NOW + 60)
    with pytest.raises(StudyError, match="cannot wait"):
        proposed(lifetime=0)


def test_approvals_say_which_key_and_study() -> None:
    of = proposed()
    given, _ = everybody(of)
    one = given["server"].approval
    assert isinstance(one, Approval)
    assert (one.proposal, one.digest, one.party) == (of.id, STUDY.digest, "server")
    stranger = Identity.new()
    with pytest.raises(MessageError, match="names no party"):
        approve(stranger, of, now=NOW)


def signed_again(proposal: Proposal) -> Proposed:
    return read_proposal(open_signed(sign(KEYS[SUBMITTER], proposal)), now=NOW)


def test_a_proposal_has_a_whole_nonce_and_a_reason_of_limited_length() -> None:
    good = proposed().proposal
    assert signed_again(good).proposal.nonce == good.nonce
    for change in ({"nonce": bytes(31)}, {"nonce": bytes(33)}, {"reason": "x" * (starts.MAX_REASON + 1)}):
        with pytest.raises(MessageError, match="a proposal is malformed"):
            signed_again(structs.replace(good, **change))
    with pytest.raises(StudyError, match="the reason has"):
        propose(KEYS[SUBMITTER], STUDY, "x" * (starts.MAX_REASON + 1), now=NOW)


def test_a_proposed_study_is_json_of_limited_length(monkeypatch: pytest.MonkeyPatch) -> None:
    good = proposed().proposal
    with pytest.raises(MessageError, match="a proposed study is malformed"):
        signed_again(structs.replace(good, study=good.study[:-1]))
    monkeypatch.setattr(starts, "MAX_STUDY", len(good.study))
    signed_again(good)
    monkeypatch.setattr(starts, "MAX_STUDY", len(good.study) - 1)
    with pytest.raises(MessageError, match="a proposed study is too large"):
        signed_again(good)


def test_a_control_message_has_one_way_to_be_written() -> None:
    """Two ways would be two digests of one message, and two ids of one proposal."""
    body = codec.encode(proposed().proposal)
    fields = msgspec.msgpack.decode(body)
    other = msgspec.msgpack.encode(dict(reversed(fields.items())) if isinstance(fields, dict) else fields)
    if other == body:  # an array: its integers have a longer form
        at = body.index(msgspec.msgpack.encode(NOW))
        number = msgspec.msgpack.encode(NOW)
        other = body[:at] + b"\xcf" + NOW.to_bytes(8, "big") + body[at + len(number) :]
    signed = starts.Signed(other, KEYS[SUBMITTER].public.raw, KEYS[SUBMITTER].sign(starts._CONTEXT, other))
    with pytest.raises(MessageError, match="not written in its one way"):
        open_signed(codec.encode(signed))


def test_a_frame_that_is_too_large_is_not_opened() -> None:
    with pytest.raises(MessageError, match="a control message is too large"):
        starts.unseal(KEYS["server"], bytes(starts._LIMIT + starts._BLOCK + 1025))


@pytest.mark.parametrize("kind", [Decline, Cancel, Ended])
def test_an_answer_is_of_the_kind_that_is_due(kind: type) -> None:
    of = proposed()
    said = Decline(of.id, SUBMITTER, "declined", "") if kind is not Decline else Cancel(of.id, SUBMITTER)
    with pytest.raises(MessageError, match=f"this is no {kind.__name__}"):
        read_answer(of, open_signed(sign(KEYS[SUBMITTER], said)), kind)
