"""Transcripts with real proofs: accepted as played, refused when anything at all is changed, replayed or moved."""

from __future__ import annotations

import json
import os
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from mastermind.errors import (
    InvalidCodeError,
    InvalidInputError,
    MalformedEvidenceError,
    RefusedStepError,
    RejectedEvidenceError,
    ToolFailedError,
    WitnessError,
)
from mastermind.field import COORDINATE_MODULUS, MODULUS
from mastermind.game.circuits import open_game_inputs
from mastermind.game.play import Table
from mastermind.game.secret_files import GameSecret, PlayerKey
from mastermind.game.steps import CIRCUITS, GameState, Refusal, Step, game_id, join_message
from mastermind.game.transcript import MAX_BYTES, ProvedStep, Transcript, VerifyingKeys
from mastermind.packing import pack_code
from mastermind.rules import Clue, Rules
from mastermind.zk.artifacts import BuiltCircuit, KeySet
from mastermind.zk.curve import G1Point, G2Point
from mastermind.zk.evidence import Proof, VerifyingKey
from mastermind.zk.prove import NativeProver, ProvedStatement
from mastermind.zk.verify import NativeVerifier, Verifier
from tests.game.games import Played
from tests.game.tamper import Path as Place
from tests.game.tamper import encode, mutations
from tests.support.proofs import made_over

NATIVE = NativeVerifier()
STEPS = ("open_game", "join_game", "make_guess", "give_clue", "make_guess", "give_clue")
#: On the twist, outside the subgroup of G2.
OUTSIDE = G2Point(
    (1, 0),
    (
        18278151005453108793778860132295291098363647455926340152056652516292830556603,
        5912654199736721486680175016176231956195085055698687135131307249486702594212,
    ),
)


def state_of(data: bytes, keys: VerifyingKeys, verifier: Verifier = NATIVE) -> GameState:
    return Transcript.parse(data).verify(keys, verifier)


def rejection(transcript: Transcript, keys: VerifyingKeys, verifier: Verifier = NATIVE) -> tuple[int | None, str]:
    """The step at which a transcript is rejected, and the reason. It travels through its file form."""
    with pytest.raises(RejectedEvidenceError) as caught:
        state_of(encode(transcript.to_json()), keys, verifier)
    return caught.value.step, caught.value.reason


def with_signals(transcript: Transcript, changes: Mapping[tuple[int, int], int]) -> Transcript:
    """A transcript with other public signals at (step, index), its proofs as they were."""
    steps = list(transcript.steps)
    for (at, index), value in changes.items():
        signals = list(steps[at].step.public_signals)
        signals[index] = value
        steps[at] = replace(steps[at], step=replace(steps[at].step, public_signals=tuple(signals)))
    return replace(transcript, steps=tuple(steps))


def with_proof(transcript: Transcript, at: int, proof: Proof) -> Transcript:
    steps = list(transcript.steps)
    steps[at] = replace(steps[at], proof=proof)
    return replace(transcript, steps=tuple(steps))


def spliced(head: Transcript, tail: Transcript, at: int) -> Transcript:
    return replace(head, steps=(*head.steps[:at], *tail.steps[at:]))


def signal(transcript: Transcript, at: int, index: int) -> int:
    return transcript.steps[at].step.public_signals[index]


# As played


def test_a_game_is_accepted_by_every_verifier(short_game: Played, keys: VerifyingKeys, verifier: Verifier) -> None:
    state = short_game.transcript.verify(keys, verifier)
    assert (state.winner, state.turn_count) == ("breaker", 5)
    assert state.guesses == ((5, 7, 2, 6), (1, 0, 4, 7))
    assert state.clues == (Clue(0, 1), Clue(4, 0))
    assert (state.master_id, state.breaker_id) == (short_game.master.id, short_game.breaker.id)


def test_a_false_clue_is_rejected_by_every_verifier(
    short_game: Played, keys: VerifyingKeys, verifier: Verifier
) -> None:
    false = with_signals(short_game.cut(4), {(3, 4): 1})
    with pytest.raises(RejectedEvidenceError) as caught:
        false.verify(keys, verifier, since=3)
    assert (caught.value.step, caught.value.reason) == (3, "invalid proof")


def test_every_kind_of_step_is_in_the_game(short_game: Played) -> None:
    assert tuple(proved.step.kind for proved in short_game.transcript.steps) == STEPS
    assert set(STEPS) == set(CIRCUITS)


def test_each_beginning_of_a_transcript_is_accepted(short_game: Played, keys: VerifyingKeys) -> None:
    """An earlier transcript is a true one; that a player does not go back to it is tested below."""
    counts = []
    for steps in range(len(STEPS) + 1):
        data = encode(short_game.cut(steps).to_json())
        assert Transcript.parse(data) == short_game.cut(steps)
        counts.append(state_of(data, keys).turn_count)
    assert counts == [0, 1, 1, 2, 3, 4, 5]


def test_proofs_checked_before_can_be_left_out(short_game: Played, keys: VerifyingKeys) -> None:
    false = with_proof(short_game.transcript, 3, short_game.transcript.steps[5].proof)
    assert false.verify(keys, NATIVE, since=4).solved
    with pytest.raises(RejectedEvidenceError):
        false.verify(keys, NATIVE, since=3)


@pytest.mark.parametrize("at", range(len(STEPS)))
def test_sil_4_each_answer_of_the_verifier_counts(at: int, short_game: Played, keys: VerifyingKeys) -> None:
    class NoToOne(NativeVerifier):
        def verify(self, key: VerifyingKey, public_signals: Sequence[int], proof: Proof) -> bool:
            return proof != short_game.transcript.steps[at].proof and super().verify(key, public_signals, proof)

    assert rejection(short_game.transcript, keys, NoToOne()) == (at, "invalid proof")


# Changed in one place


def is_in_step(path: Place, at: int) -> bool:
    return path[:2] == ("steps", at)


def verdict(data: bytes, keys: VerifyingKeys) -> tuple[str, Any]:
    """What comes of reading and verifying: which class of refusal, and the field or the step that it names."""
    try:
        state_of(data, keys)
    except MalformedEvidenceError as error:
        return "malformed", error.field
    except RejectedEvidenceError as error:
        return "rejected", error.step
    return "accepted", None


@pytest.mark.parametrize("at", range(len(STEPS)))
def test_every_change_in_a_step_is_refused(at: int, short_game: Played, keys: VerifyingKeys) -> None:
    document = short_game.transcript.to_json()
    kinds: Counter[str] = Counter()
    for mutation in mutations(document, lambda path: is_in_step(path, at)):
        kind, where = verdict(mutation.data, keys)
        kinds[kind] += 1
        assert kind != "accepted", mutation
        if kind == "malformed":
            # A number of more digits than any number may have is refused with the file.
            assert where.startswith(f"steps[{at}]") or (where == "file" and mutation.change == "as int"), mutation
        else:
            # A later step may be the first that does not fit: nothing else says what an opening has to be.
            assert where >= at, mutation
    assert kinds["malformed"] > 300
    assert kinds["rejected"] > 2
    assert verdict(encode(document), keys) == ("accepted", None)


def test_every_change_outside_the_steps_is_refused(short_game: Played, keys: VerifyingKeys) -> None:
    document = short_game.transcript.to_json()
    beginnings = {"empty", f"without {len(STEPS) - 1}"}
    kinds: Counter[str] = Counter()
    for mutation in mutations(document, lambda path: len(path) < 2):
        kind, where = verdict(mutation.data, keys)
        kinds[kind] += 1
        if mutation.path == ("steps",) and mutation.change in beginnings:
            assert kind == "accepted", mutation
            continue
        assert kind != "accepted", mutation
        if kind == "rejected":
            # Other rules or other keys concern the whole; else a step is out of its place.
            assert (where is None) == (mutation.path != ("steps",)), mutation
    assert kinds["accepted"] == len(beginnings)
    assert kinds["malformed"] > 40
    assert kinds["rejected"] > 20


@pytest.mark.parametrize(
    "name", ["format", "rules", "key_set_id", "steps", "step", "public", "proof", "nonce", "pi_a", "curve"]
)
def test_a_name_that_occurs_twice_is_refused(name: str, short_game: Played, keys: VerifyingKeys) -> None:
    """Two readers of one file might see different games."""
    text = json.dumps(short_game.transcript.to_json())
    twice = text.replace(f'"{name}": ', f'"{name}": "0", "{name}": ', 1)
    assert twice != text
    assert verdict(twice.encode(), keys) == ("malformed", "file")


def test_a_file_cut_anywhere_is_refused(short_game: Played, keys: VerifyingKeys) -> None:
    data = encode(short_game.transcript.to_json())
    for length in range(0, len(data), 97):
        assert verdict(data[:length], keys) == ("malformed", "file")


@pytest.mark.parametrize("data", [b"", b"null", b"[]", b"7", b'"x"', b"{}", b"\xff\xfe", b'{"format": NaN}', b"<html>"])
def test_vin_7_junk_is_refused(data: bytes, keys: VerifyingKeys) -> None:
    assert verdict(data, keys)[0] == "malformed"


def test_vin_1_each_signal_plus_r_is_refused(short_game: Played, keys: VerifyingKeys) -> None:
    for at, proved in enumerate(short_game.transcript.steps):
        for index, value in enumerate(proved.step.public_signals):
            changed = with_signals(short_game.transcript, {(at, index): value + MODULUS})
            assert verdict(encode(changed.to_json()), keys) == ("malformed", f"steps[{at}].public")
            # Below the reader, the step machine looks again.
            with pytest.raises(RejectedEvidenceError) as caught:
                changed.state()
            assert (caught.value.step, caught.value.reason) == (at, Refusal.MALFORMED)


@pytest.mark.parametrize("at", range(len(STEPS)))
def test_vin_2_a_signal_less_is_refused(at: int, short_game: Played, keys: VerifyingKeys) -> None:
    step = short_game.transcript.steps[at]
    short = replace(step, step=replace(step.step, public_signals=step.step.public_signals[:-1]))
    steps = (*short_game.transcript.steps[:at], short, *short_game.transcript.steps[at + 1 :])
    assert rejection(replace(short_game.transcript, steps=steps), keys) == (at, Refusal.MALFORMED)


VIN_5: dict[str, Callable[[dict[str, Any]], None]] = {
    "another protocol": lambda proof: proof.update(protocol="plonk"),
    "another curve": lambda proof: proof.update(curve="bls12381"),
    "a scaled point": lambda proof: proof.update(pi_a=scaled(proof["pi_a"])),
    "a point without z": lambda proof: proof.update(pi_a=proof["pi_a"][:2]),
    "a G2 point without z": lambda proof: proof.update(pi_b=proof["pi_b"][:2]),
    "the point at infinity": lambda proof: proof.update(pi_c=["0", "1", "0"]),
}


def scaled(point: list[str]) -> list[str]:
    """The same point in other projective coordinates: [4x, 8y, 2]."""
    return [str(int(point[0]) * 4 % COORDINATE_MODULUS), str(int(point[1]) * 8 % COORDINATE_MODULUS), "2"]


@pytest.mark.parametrize("change", VIN_5)
@pytest.mark.parametrize("at", range(len(STEPS)))
def test_vin_5_a_proof_in_another_form_is_refused(
    at: int, change: str, short_game: Played, keys: VerifyingKeys
) -> None:
    document = short_game.transcript.to_json()
    VIN_5[change](document["steps"][at]["proof"])
    assert verdict(encode(document), keys) == ("malformed", f"steps[{at}].proof")


# Changed below the step machine: the histories agree, and only a proof can tell


def test_rep_8_each_signal_of_each_step_is_bound_to_its_proof(short_game: Played, keys: VerifyingKeys) -> None:
    for proved in short_game.transcript.steps[:4]:
        key, signals, proof = keys.statement(proved)
        assert NATIVE.verify(key, signals, proof)
        for index, value in enumerate(signals):
            other = [*signals[:index], (value + 1) % MODULUS, *signals[index + 1 :]]
            assert not NATIVE.verify(key, other, proof), (proved.step.kind, index)


def test_a_clue_changed_everywhere_is_rejected(short_game: Played, keys: VerifyingKeys) -> None:
    changed = with_signals(short_game.transcript, {(3, 4): 1, (4, 5): 1})
    assert changed.state().clues[0] == Clue(1, 0)
    assert rejection(changed, keys) == (3, "invalid proof")


def test_a_guess_changed_everywhere_is_rejected(short_game: Played, keys: VerifyingKeys) -> None:
    game = short_game.transcript
    code = pack_code(game.rules, (5, 7, 6, 2))
    history = signal(game, 4, 4) - signal(game, 2, 3) + code
    changed = with_signals(game, {(2, 3): code, (2, 4): code, (3, 3): code, (4, 4): history})
    assert changed.state().guesses[0] == (5, 7, 6, 2)
    assert rejection(changed, keys) == (2, "invalid proof")


def test_another_master_everywhere_is_rejected(short_game: Played, keys: VerifyingKeys) -> None:
    changed = with_signals(short_game.transcript, {(0, 1): PlayerKey(5).id})
    assert changed.state().solved
    assert rejection(changed, keys) == (0, "invalid proof")


def test_another_breaker_everywhere_is_rejected(short_game: Played, keys: VerifyingKeys) -> None:
    """Another player takes the place of the breaker, or the breaker another nonce; every game id follows."""
    game = short_game.transcript
    nonce = game.steps[1].step.nonce
    assert nonce is not None
    for breaker, new_nonce in ((PlayerKey(5).id, nonce), (short_game.breaker.id, nonce + 1)):
        joined = game_id(game.rules, signal(game, 0, 0), breaker, new_nonce)
        changes = {(at, 0): joined for at in range(2, 6)} | {(2, 1): breaker, (4, 1): breaker}
        changed = with_signals(game, changes | {(1, 0): breaker, (1, 1): join_message(joined, new_nonce)})
        steps = list(changed.steps)
        steps[1] = replace(steps[1], step=replace(steps[1].step, nonce=new_nonce))
        changed = replace(changed, steps=tuple(steps))
        assert changed.state().solved
        assert rejection(changed, keys) == (1, "invalid proof")


def negated(proof: Proof) -> Proof:
    return replace(proof, a=G1Point(proof.a.x, COORDINATE_MODULUS - proof.a.y))


def exchanged(proof: Proof) -> Proof:
    return replace(proof, a=proof.c, c=proof.a)


PROOF_CHANGES: dict[str, Callable[[Proof, Proof], Proof]] = {
    "A negated": lambda proof, _: negated(proof),
    "A and C exchanged": lambda proof, _: exchanged(proof),
    "A of another step": lambda proof, other: replace(proof, a=other.a),
    "B of another step": lambda proof, other: replace(proof, b=other.b),
    "C of another step": lambda proof, other: replace(proof, c=other.c),
    "proof of another step": lambda _, other: other,
}


@pytest.mark.parametrize("change", PROOF_CHANGES)
@pytest.mark.parametrize("at", range(len(STEPS)))
def test_another_well_formed_proof_is_rejected(at: int, change: str, short_game: Played, keys: VerifyingKeys) -> None:
    steps = short_game.transcript.steps
    other = steps[{2: 4, 3: 5, 4: 2, 5: 3}.get(at, 1 - at)].proof  # of the same circuit where there are two
    changed = with_proof(short_game.transcript, at, PROOF_CHANGES[change](steps[at].proof, other))
    assert rejection(changed, keys) == (at, "invalid proof")


@pytest.mark.parametrize("at", range(len(STEPS)))
def test_vin_6_a_point_outside_the_subgroup_is_rejected(at: int, short_game: Played, keys: VerifyingKeys) -> None:
    changed = with_proof(short_game.transcript, at, replace(short_game.transcript.steps[at].proof, b=OUTSIDE))
    assert rejection(changed, keys) == (at, "malformed proof")


# Replayed


def test_rep_1_a_seen_proof_made_over_is_not_another_move(
    short_game: Played, keys: VerifyingKeys, tmp_path: Path
) -> None:
    answered = short_game.cut(4)
    clue = answered.steps[3]
    over = replace(clue, proof=made_over(clue.proof))
    assert over.proof != clue.proof
    # In the place of the first it is the same move; after it, there is no turn for it.
    assert state_of(encode(with_proof(answered, 3, over.proof).to_json()), keys) == answered.state()
    assert rejection(answered.with_step(over), keys) == (4, Refusal.OUT_OF_TURN)
    # And a file that goes on from one does not become a file that goes on from the other.
    answered.write_new(tmp_path / "game.json")
    with pytest.raises(InvalidInputError):
        with_proof(short_game.cut(5), 3, over.proof).append_to(tmp_path / "game.json")
    assert Transcript.read(tmp_path / "game.json") == answered


@pytest.mark.parametrize("at", range(2, 6))
def test_rep_2_steps_of_another_game_of_the_same_players_do_not_fit(
    at: int, short_game: Played, second_game: Played, keys: VerifyingKeys
) -> None:
    first, second = short_game.transcript, second_game.transcript
    assert rejection(spliced(first, second, at), keys) == (at, Refusal.WRONG_GAME)
    # Relabelled as steps of the first game, their proofs are still of the second.
    relabelled = with_signals(spliced(first, second, at), {(later, 0): signal(first, 2, 0) for later in range(at, 6)})
    assert relabelled.state() == first.state()
    assert rejection(relabelled, keys) == (at, "invalid proof")


def test_rep_2_the_join_of_one_game_starts_only_that_game(
    short_game: Played, second_game: Played, keys: VerifyingKeys
) -> None:
    joins = (short_game.transcript.steps[1].step, second_game.transcript.steps[1].step)
    assert len({join.nonce for join in joins} | {join.public_signals[1] for join in joins}) == 4
    mixed = replace(joins[0], nonce=joins[1].nonce)
    steps = (short_game.transcript.steps[0], replace(short_game.transcript.steps[1], step=mixed))
    assert rejection(replace(short_game.transcript, steps=steps), keys) == (1, Refusal.WRONG_MESSAGE)


def test_rep_4_a_copied_commitment_is_of_no_use(short_game: Played, table: Table, keys: VerifyingKeys) -> None:
    """A thief publishes the master's opening first; even told secret and salt, it is not the thief's."""
    thief, breaker, opening = PlayerKey.new(), PlayerKey.new(), short_game.cut(1)
    kept = short_game.opened
    # Under the thief's own name it needs another proof, and there is none.
    assert rejection(with_signals(opening, {(0, 1): thief.id}), keys) == (0, "invalid proof")
    inputs = open_game_inputs(table.rules, kept.secret, kept.salt, thief.key)
    assert inputs["solution_hash"] != signal(opening, 0, 0)
    table.prover.prove(table.key_set["open_game"], inputs)
    with pytest.raises(WitnessError):
        table.prover.prove(table.key_set["open_game"], {**inputs, "solution_hash": signal(opening, 0, 0)})
    # Copied as it is, it can be joined, but the thief cannot answer.
    copied = table.make_guess(table.join_game(opening, breaker), breaker, (5, 7, 2, 6))
    with pytest.raises(RefusedStepError) as caught:
        table.give_clue(copied, thief, kept, no_record)
    assert caught.value.refusal == Refusal.WRONG_PLAYER
    # Nor pass on what the master answers elsewhere.
    relayed = copied.with_step(short_game.transcript.steps[3])
    assert rejection(relayed, keys) == (3, Refusal.WRONG_GAME)
    assert rejection(with_signals(relayed, {(3, 0): signal(copied, 2, 0)}), keys) == (3, "invalid proof")
    # The master's own game is as good as before.
    assert short_game.transcript.verify(keys, NATIVE).solved


def no_record(record: GameSecret) -> None:
    raise AssertionError("nothing is answered here")


@dataclass
class Turn:
    """A game at its first guess, and what the master has stored."""

    table: Table
    game: Played
    records: list[GameSecret]

    def answer(self, transcript: Transcript, table: Table | None = None) -> Transcript:
        return (table or self.table).give_clue(transcript, self.game.master, self.records[-1], self.records.append)


@pytest.fixture
def turn(short_game: Played, table: Table) -> Turn:
    return Turn(table, short_game, [short_game.opened])


def refused(turn: Turn, transcript: Transcript) -> str:
    """Why the master does not answer; nothing is stored then."""
    before = len(turn.records)
    with pytest.raises(RefusedStepError) as caught:
        turn.answer(transcript)
    assert len(turn.records) == before
    return caught.value.refusal


def test_rep_6_another_guess_in_an_answered_turn_is_not_answered(turn: Turn) -> None:
    joined = turn.game.cut(2)
    first = turn.table.make_guess(joined, turn.game.breaker, (5, 7, 2, 6))
    second = turn.table.make_guess(joined, turn.game.breaker, (0, 1, 2, 3))
    turn.answer(first)
    assert refused(turn, second) == Refusal.ANSWERED_OTHERWISE
    # The twin: without the first answer, the second guess is as good.
    turn.records.append(turn.game.opened)
    assert turn.answer(second).state().clues == (Clue(0, 2),)


def test_rep_6_a_stale_transcript_is_not_played_on_from(turn: Turn) -> None:
    """After two answers the breaker goes back behind the first, and behind the second."""
    turn.answer(turn.game.cut(3))
    other = turn.table.make_guess(turn.game.cut(4), turn.game.breaker, (2, 3, 5, 6))
    turn.answer(other)
    for steps, guess in ((2, (5, 7, 2, 6)), (2, (0, 1, 2, 3)), (4, (1, 0, 4, 7))):
        stale = turn.table.make_guess(turn.game.cut(steps), turn.game.breaker, guess)
        assert refused(turn, stale) == Refusal.ANSWERED_OTHERWISE


def test_rep_6_another_join_of_the_same_opening_is_not_answered(turn: Turn) -> None:
    """Two breakers, or one twice, would get two sets of clues to one secret."""
    turn.answer(turn.game.cut(3))
    for breaker in (turn.game.breaker, PlayerKey.new()):
        fork = turn.table.make_guess(turn.table.join_game(turn.game.cut(1), breaker), breaker, (5, 7, 2, 6))
        assert refused(turn, fork) == Refusal.ANSWERED_OTHERWISE


def test_rep_6_the_same_guess_is_answered_again_after_a_crash(turn: Turn) -> None:
    """The record is stored first; a crash after that costs nobody the game."""

    class Crashing(NativeProver):
        def prove(self, circuit: BuiltCircuit, inputs: Mapping[str, object]) -> ProvedStatement:
            raise ToolFailedError("power cut", argv=["prover"], exit_code=1, stderr_tail="")

    with pytest.raises(ToolFailedError):
        turn.answer(turn.game.cut(3), replace(turn.table, prover=Crashing()))
    assert turn.records[-1].answered == ((5, 7, 2, 6),)
    other = turn.table.make_guess(turn.game.cut(2), turn.game.breaker, (0, 1, 2, 3))
    assert refused(turn, other) == Refusal.ANSWERED_OTHERWISE
    answers = [turn.answer(turn.game.cut(3)).steps[3].step for _ in range(2)]
    assert answers == [turn.game.transcript.steps[3].step] * 2


def test_a_record_that_cannot_be_stored_means_no_clue(turn: Turn) -> None:
    proofs: list[str] = []

    class Watching(NativeProver):
        def prove(self, circuit: BuiltCircuit, inputs: Mapping[str, object]) -> ProvedStatement:
            proofs.append(circuit.spec.name)
            return super().prove(circuit, inputs)

    def full(_: GameSecret) -> None:
        raise OSError("disk full")

    watched = replace(turn.table, prover=Watching())
    with pytest.raises(OSError, match="disk full"):
        watched.give_clue(turn.game.cut(3), turn.game.master, turn.game.opened, full)
    assert proofs == []
    turn.answer(turn.game.cut(3), watched)
    assert proofs == ["give_clue"]


# Whose move it is


def test_moves_of_others_are_refused(short_game: Played, table: Table) -> None:
    stranger = PlayerKey.new()
    moves: list[tuple[Callable[[], object], Refusal]] = [
        (lambda: table.make_guess(short_game.cut(2), stranger, (5, 7, 2, 6)), Refusal.WRONG_PLAYER),
        (lambda: table.make_guess(short_game.cut(2), short_game.master, (5, 7, 2, 6)), Refusal.WRONG_PLAYER),
        (
            lambda: table.give_clue(short_game.cut(3), short_game.breaker, short_game.opened, no_record),
            Refusal.WRONG_PLAYER,
        ),
        (lambda: table.join_game(short_game.cut(2), stranger), Refusal.ALREADY_JOINED),
        (lambda: table.make_guess(short_game.cut(3), short_game.breaker, (5, 7, 2, 6)), Refusal.OUT_OF_TURN),
        (lambda: table.make_guess(short_game.cut(1), short_game.breaker, (5, 7, 2, 6)), Refusal.NOT_JOINED),
        (
            lambda: table.give_clue(short_game.cut(4), short_game.master, short_game.opened, no_record),
            Refusal.OUT_OF_TURN,
        ),
        (lambda: table.make_guess(short_game.transcript, short_game.breaker, (5, 7, 2, 6)), Refusal.GAME_OVER),
        (lambda: table.join_game(short_game.transcript, stranger), Refusal.GAME_OVER),
    ]
    for move, refusal in moves:
        with pytest.raises(RefusedStepError) as caught:
            move()
        assert caught.value.refusal == refusal


def test_a_clue_from_another_games_secret_is_refused(short_game: Played, table: Table) -> None:
    kept = short_game.opened
    for other in (replace(kept, salt=kept.salt - 1), replace(kept, secret=(1, 0, 7, 4))):
        with pytest.raises(RefusedStepError) as caught:
            table.give_clue(short_game.cut(3), short_game.master, other, no_record)
        assert caught.value.refusal == Refusal.WRONG_SOLUTION


@pytest.mark.parametrize(
    "guess", [(5, 7, 2), (5, 7, 2, 6, 0), (5, 7, 2, 5), (5, 7, 2, 8), (5, 7, 2, -1), (True, 7, 2, 6)]
)
def test_inp_3_an_illegal_guess_uses_no_turn(guess: tuple[int, ...], short_game: Played, table: Table) -> None:
    with pytest.raises(InvalidCodeError):
        table.make_guess(short_game.cut(2), short_game.breaker, guess)


def test_nobody_builds_on_a_false_transcript(short_game: Played, table: Table) -> None:
    def false(steps: int) -> Transcript:
        last = short_game.cut(steps).steps[-1]
        return with_proof(short_game.cut(steps), steps - 1, negated(last.proof))

    moves: list[tuple[int, Callable[[], object]]] = [
        (0, lambda: table.join_game(false(1), short_game.breaker)),
        (1, lambda: table.make_guess(false(2), short_game.breaker, (5, 7, 2, 6))),
        (2, lambda: table.give_clue(false(3), short_game.master, short_game.opened, no_record)),
        (3, lambda: table.certify(false(4), short_game.master, short_game.kept)),
        (5, lambda: table.reveal(false(6), short_game.master, short_game.kept)),
    ]
    for at, move in moves:
        with pytest.raises(RejectedEvidenceError) as caught:
            move()
        assert (caught.value.step, caught.value.reason) == (at, "invalid proof")


# Made with other keys


def test_a_game_under_other_keys_is_rejected(
    short_game: Played, other_keys: KeySet, keys: VerifyingKeys, native_prover: NativeProver
) -> None:
    theirs = Table(short_game.table.rules, other_keys, native_prover)
    transcript, _ = theirs.open_game(short_game.master, (1, 0, 4, 7))
    transcript = theirs.join_game(transcript, short_game.breaker)
    transcript.verify(theirs.keys, NATIVE)
    assert rejection(transcript, keys) == (None, "other keys")
    assert rejection(replace(transcript, key_set_id=keys.id), keys) == (0, "invalid proof")


@pytest.mark.parametrize("circuit", ["open_game", "authorise", "make_guess", "give_clue"])
def test_one_other_key_is_enough(circuit: str, short_game: Played, other_keys: KeySet, keys: VerifyingKeys) -> None:
    mixed = replace(keys, keys={**keys.keys, circuit: other_keys[circuit].verifying_key})
    assert rejection(short_game.transcript, mixed) == (None, "other keys")
    at = [CIRCUITS[kind] for kind in ("open_game", "join_game", "make_guess", "give_clue")].index(circuit)
    assert rejection(replace(short_game.transcript, key_set_id=mixed.id), mixed) == (at, "invalid proof")


def test_keys_of_two_circuits_exchanged_are_other_keys(short_game: Played, keys: VerifyingKeys) -> None:
    """`open_game` and `authorise` have as many public signals as each other."""
    exchanged_keys = {**keys.keys, "open_game": keys.keys["authorise"], "authorise": keys.keys["open_game"]}
    mixed = replace(keys, keys=exchanged_keys)
    assert rejection(short_game.transcript, mixed) == (None, "other keys")
    assert rejection(replace(short_game.transcript, key_set_id=mixed.id), mixed) == (0, "invalid proof")


@pytest.mark.parametrize(
    "rules", ["classic", "hit-and-blow", "4x8u07", "04x8u7", "4X8U7", "4x8u7 ", "4x8u43", "9" * 100_000]
)
def test_rules_have_one_spelling(rules: str, short_game: Played, keys: VerifyingKeys) -> None:
    document = short_game.transcript.to_json()
    assert verdict(encode(document), keys) == ("accepted", None)
    with pytest.raises(MalformedEvidenceError) as caught:
        Transcript.parse(encode({**document, "rules": rules}))
    assert caught.value.field == "rules"
    assert len(str(caught.value)) < 300


def test_other_rules_are_rejected(short_game: Played, keys: VerifyingKeys) -> None:
    longer = replace(short_game.transcript, rules=Rules.parse("4x8u8"))
    assert rejection(longer, keys) == (None, "other rules")


def under_more_attempts(keys: VerifyingKeys, other_keys: KeySet) -> VerifyingKeys:
    """The keys for rules that differ in their attempts alone: only `certify_game` is another circuit then."""
    longer = Rules.parse("4x8u10")
    return VerifyingKeys(longer, {**keys.keys, "certify_game": other_keys["certify_game"].verifying_key}, keys.status)


def test_rep_2_a_game_cannot_be_relabelled_as_one_of_other_rules(
    lost_game: Played, other_keys: KeySet, keys: VerifyingKeys
) -> None:
    longer = under_more_attempts(keys, other_keys)
    relabelled = replace(lost_game.transcript, rules=longer.rules, key_set_id=longer.id)
    with pytest.raises(RejectedEvidenceError) as caught:
        state_of(encode(relabelled.to_json()), longer)
    assert (caught.value.step, caught.value.reason) == (1, Refusal.WRONG_MESSAGE)


# Bounds

#: Far below what any of these files would take if it were read.
QUICK_S = 2.0


def refused_quickly(path: Path) -> None:
    start = time.monotonic()
    with pytest.raises(MalformedEvidenceError):
        Transcript.read(path)
    assert time.monotonic() - start < QUICK_S


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "game.json"
    with path.open("wb") as file:
        file.truncate(1 << 34)
    refused_quickly(path)


def test_a_file_of_one_byte_too_many_is_refused(short_game: Played, tmp_path: Path) -> None:
    path, data = tmp_path / "game.json", encode(short_game.transcript.to_json())
    path.write_bytes(data.ljust(MAX_BYTES))
    assert Transcript.read(path) == short_game.transcript
    path.write_bytes(data.ljust(MAX_BYTES + 1))
    refused_quickly(path)


@pytest.mark.parametrize("opening", ["[", '{"steps":', '{"format": "mastermind transcript 1", "steps": ['])
def test_deep_nesting_is_refused(opening: str, tmp_path: Path) -> None:
    path = tmp_path / "game.json"
    path.write_text(opening * (MAX_BYTES // len(opening)))
    refused_quickly(path)
    text = '{"format": "mastermind transcript 1", "rules": "4x8u7", "key_set_id": "0", "steps": DEEP}'
    path.write_text(text.replace("DEEP", "[" * 100_000 + "]" * 100_000))
    refused_quickly(path)


@pytest.mark.parametrize("digits", [21, 200_000, 1_000_000])
@pytest.mark.parametrize("quoted", [True, False])
def test_long_numbers_are_refused(digits: int, quoted: bool, short_game: Played, tmp_path: Path) -> None:
    number = "9" * digits if digits != 21 or not quoted else "9" * 78
    document = short_game.transcript.to_json()
    document["steps"][3]["public"][4] = "NUMBER"
    path = tmp_path / "game.json"
    path.write_text(json.dumps(document).replace('"NUMBER"', f'"{number}"' if quoted else number))
    refused_quickly(path)


def test_more_steps_than_a_game_has_are_refused(lost_game: Played, keys: VerifyingKeys) -> None:
    document = lost_game.transcript.to_json()
    assert len(document["steps"]) == 16
    assert state_of(encode(document), keys).winner == "master"
    document["steps"].append(document["steps"][-2])
    with pytest.raises(MalformedEvidenceError) as caught:
        state_of(encode(document), keys)
    assert caught.value.field == "steps"


def test_the_longest_game_fits_the_bound(short_game: Played) -> None:
    """Forty-two attempts, the most that a history has room for."""
    longest = Rules(pegs=1, colours=2, repeats=True, attempts=42)
    nines = Step("make_guess", (MODULUS - 1,) * 6)
    step = ProvedStep(nines, short_game.transcript.steps[0].proof)
    transcript = Transcript(longest, "f" * 64, (step,) * (2 + 2 * 42))
    assert Transcript.parse(encode(transcript.to_json())) == transcript


@pytest.mark.parametrize("name", ["missing.json", "."])
def test_a_file_that_cannot_be_read_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(MalformedEvidenceError) as caught:
        Transcript.read(tmp_path / name)
    assert caught.value.field == "file"


# Written in one step, and only ever continued


def test_a_transcript_is_continued(short_game: Played, tmp_path: Path) -> None:
    path = tmp_path / "game.json"
    short_game.cut(1).write_new(path)
    for steps in range(2, 7):
        short_game.cut(steps).append_to(path)
        assert Transcript.read(path) == short_game.cut(steps)
    with pytest.raises(InvalidInputError):
        short_game.cut(1).write_new(path)
    assert Transcript.read(path) == short_game.transcript


@pytest.mark.parametrize("steps", [2, 4, 5])
def test_rep_6_a_file_that_has_changed_is_not_written_over(
    steps: int, short_game: Played, second_game: Played, tmp_path: Path
) -> None:
    """Somebody else was quicker, the file went on, or it is another game's."""
    path = tmp_path / "game.json"
    there = second_game.cut(steps)
    there.write_new(path)
    content = path.read_bytes()
    with pytest.raises(InvalidInputError):
        short_game.cut(4).append_to(path)
    assert path.read_bytes() == content
    second_game.transcript.append_to(path)


def test_a_shorter_transcript_is_not_written_over_a_longer_one(short_game: Played, tmp_path: Path) -> None:
    path = tmp_path / "game.json"
    short_game.transcript.write_new(path)
    with pytest.raises(InvalidInputError):
        short_game.cut(5).append_to(path)
    assert Transcript.read(path) == short_game.transcript


def test_a_damaged_file_is_not_written_over(short_game: Played, tmp_path: Path) -> None:
    path = tmp_path / "game.json"
    path.write_text("{")
    with pytest.raises(MalformedEvidenceError):
        short_game.transcript.append_to(path)
    assert path.read_text() == "{"


def test_of_two_who_append_at_once_one_does(short_game: Played, table: Table, tmp_path: Path) -> None:
    joined = short_game.cut(2)
    guesses = [table.make_guess(joined, short_game.breaker, guess) for guess in ((5, 7, 2, 6), (0, 1, 2, 3))]
    for turn in range(10):
        path = tmp_path / f"game{turn}.json"
        joined.write_new(path)
        start = threading.Barrier(2)
        written: list[Transcript] = []

        def append(transcript: Transcript, path: Path, start: threading.Barrier, written: list[Transcript]) -> None:
            start.wait()
            try:
                transcript.append_to(path)
            except InvalidInputError:
                return
            written.append(transcript)

        threads = [threading.Thread(target=append, args=(guess, path, start, written)) for guess in guesses]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [Transcript.read(path)] == written


def test_a_write_that_fails_leaves_the_old_file(
    short_game: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "game.json"
    short_game.cut(2).write_new(path)

    def fail(_: int) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="disk full"):
            short_game.cut(3).append_to(path)
    assert Transcript.read(path) == short_game.cut(2)
    assert {file.name for file in tmp_path.iterdir()} <= {"game.json", ".game.json.lock"}
    short_game.cut(3).append_to(path)


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_the_file_has_the_mode_that_the_user_asks_for(
    umask: int, mode: int, short_game: Played, tmp_path: Path
) -> None:
    """A transcript is for others to read, unlike what a temporary file starts as."""
    before = os.umask(umask)
    try:
        short_game.cut(1).write_new(tmp_path / "game.json")
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "game.json").stat().st_mode) == mode
