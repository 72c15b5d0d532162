"""Certificates with real proofs: what they show, how small they are, and that no field of one can be changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from mastermind.errors import MalformedEvidenceError, RefusedStepError, RejectedEvidenceError
from mastermind.field import MODULUS
from mastermind.game.certificate import MAX_BYTES, Certificate
from mastermind.game.play import Table
from mastermind.game.secret_files import PlayerKey
from mastermind.game.steps import GameState, Refusal
from mastermind.game.transcript import VerifyingKeys, write_json
from mastermind.packing import pack_clues, pack_guesses
from mastermind.rules import Clue, Rules
from mastermind.zk.artifacts import KeySet
from mastermind.zk.evidence import Proof, VerifyingKey
from mastermind.zk.prove import NativeProver
from mastermind.zk.verify import NativeVerifier, Verifier
from tests.game.games import Played
from tests.game.tamper import encode, mutations

NATIVE = NativeVerifier()
THREE_KB = 3000


@dataclass(frozen=True)
class Certified:
    game: Played
    certificate: Certificate


def certify(game: Played, steps: int | None = None) -> Certificate:
    transcript = game.transcript if steps is None else game.cut(steps)
    return game.table.certify(transcript, game.master, game.kept)


@pytest.fixture(scope="session")
def certified(short_game: Played) -> Certified:
    """Of the solved two-turn game."""
    return Certified(short_game, certify(short_game))


def through_a_file(certificate: Certificate) -> Certificate:
    read = Certificate.parse(encode(certificate.to_json()))
    assert read == certificate
    return read


def rejection(certificate: Certificate, keys: VerifyingKeys, verifier: Verifier = NATIVE) -> str:
    with pytest.raises(RejectedEvidenceError) as caught:
        through_a_file(certificate).verify(keys, verifier)
    return caught.value.reason


def verdict(data: bytes, keys: VerifyingKeys) -> tuple[str, str]:
    """Whether it is accepted, malformed or rejected, and the field or the reason."""
    try:
        Certificate.parse(data).verify(keys, NATIVE)
    except MalformedEvidenceError as error:
        return "malformed", error.field
    except RejectedEvidenceError as error:
        return "rejected", error.reason
    return "accepted", ""


# What it shows


def test_it_shows_the_game_to_every_verifier(certified: Certified, keys: VerifyingKeys, verifier: Verifier) -> None:
    state = through_a_file(certified.certificate).verify(keys, verifier)
    assert state == certified.game.transcript.state()
    assert state.winner == "breaker"


def shown(game: Played, steps: int | None = None) -> GameState:
    """What the certificate of a game so far shows; the transcript must show the same."""
    certificate = through_a_file(certify(game, steps))
    state = certificate.verify(game.table.keys, NATIVE)
    transcript = game.transcript if steps is None else game.cut(steps)
    assert state == transcript.state()
    return state


def test_a_game_after_one_turn(short_game: Played) -> None:
    state = shown(short_game, 4)
    assert (state.turn_count, state.over, state.winner, state.next_step) == (3, False, None, "make_guess")


@pytest.mark.parametrize("turns", range(2, 7))
def test_a_game_in_progress(turns: int, lost_game: Played) -> None:
    state = shown(lost_game, 2 + 2 * turns)
    assert (state.turn_count, state.winner) == (1 + 2 * turns, None)


def test_a_game_solved_with_the_first_guess(quick_game: Played) -> None:
    assert shown(quick_game).winner == "breaker"


def test_a_solution_with_the_last_attempt_is_the_breakers_win(late_game: Played) -> None:
    state = shown(late_game)
    assert (state.turn_count, state.solved, state.winner) == (15, True, "breaker")


def test_attempts_used_up_are_the_masters_win(lost_game: Played) -> None:
    state = shown(lost_game)
    assert (state.turn_count, state.solved, state.winner) == (15, False, "master")


def test_clu_1_and_clu_2_with_repeated_colours(classic_game: Played) -> None:
    state = shown(classic_game)
    assert state.clues == (Clue(1, 1), Clue(0, 0), Clue(1, 3), Clue(4, 0))
    assert state.winner == "breaker"


def test_it_is_made_from_one_transcript_as_often_as_one_likes(certified: Certified, keys: VerifyingKeys) -> None:
    again = certify(certified.game)
    assert again.game_proof != certified.certificate.game_proof
    assert replace(again, game_proof=certified.certificate.game_proof) == certified.certificate
    assert again.verify(keys, NATIVE) == certified.certificate.verify(keys, NATIVE)


@pytest.mark.parametrize(
    ("name", "turns"),
    [("short_game", 1), ("lost_game", 7), pytest.param("deluxe_game", 12, marks=pytest.mark.thorough)],
)
def test_it_has_less_than_3_kb_however_long_the_game(
    name: str, turns: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    game: Played = request.getfixturevalue(name)
    certificate = certify(game, 2 + 2 * turns)
    write_json(tmp_path / "certificate.json", certificate.to_json())
    assert (tmp_path / "certificate.json").stat().st_size < THREE_KB
    state = Certificate.read(tmp_path / "certificate.json").verify(game.table.keys, NATIVE)
    assert len(state.clues) == turns


def test_the_largest_values_fit_too(certified: Certified) -> None:
    names = ("solution_hash", "master_id", "breaker_id", "nonce", "guess_history", "clue_history")
    values: dict[str, Any] = dict.fromkeys(names, MODULUS - 1)
    largest = replace(certified.certificate, **values)
    assert len(encode(through_a_file(largest).to_json())) < THREE_KB


# Changed


def test_every_change_in_any_field_is_refused(certified: Certified, keys: VerifyingKeys) -> None:
    document = certified.certificate.to_json()
    kinds: Counter[str] = Counter()
    for mutation in mutations(document):
        kind, why = verdict(mutation.data, keys)
        kinds[kind] += 1
        assert kind != "accepted", mutation
        if kind == "malformed" and mutation.path:
            assert why.startswith(str(mutation.path[0])) or (why == "file" and mutation.change == "as int"), mutation
    assert kinds["malformed"] > 700
    assert kinds["rejected"] > 10
    assert verdict(encode(document), keys) == ("accepted", "")


@pytest.mark.parametrize("name", ["solution_hash", "master_id", "breaker_id", "nonce"])
def test_each_id_is_bound_by_a_proof(name: str, certified: Certified, keys: VerifyingKeys) -> None:
    value = getattr(certified.certificate, name)
    assert rejection(replace(certified.certificate, **{name: value - 1}), keys) == "invalid proof"


class OnlyUnder(NativeVerifier):
    """Believes whatever is proved under any other key."""

    def __init__(self, key: VerifyingKey) -> None:
        self._key = key

    def verify(self, key: VerifyingKey, public_signals: Sequence[int], proof: Proof) -> bool:
        return key != self._key or super().verify(key, public_signals, proof)


BOTH = ("make_guess", "certify_game")
FALSE_CLAIMS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "another solution": ({"solution_hash": 5}, BOTH),
    "another master": ({"master_id": 5}, ("certify_game",)),
    "another breaker": ({"breaker_id": 5}, BOTH),
    "another join": ({"nonce": 5}, BOTH),
    "another first guess": ({"guesses": [(5, 7, 6, 2), (1, 0, 4, 7)]}, BOTH),
    "another last guess": ({"guesses": [(5, 7, 2, 6), (1, 0, 7, 4)]}, BOTH),
    "another first clue": ({"clues": [(1, 0), (4, 0)]}, BOTH),
    "another last clue": ({"clues": [(0, 1), (2, 2)], "is_solved": 0}, ("certify_game",)),
}


@pytest.mark.parametrize("claim", FALSE_CLAIMS)
def test_each_false_claim_is_refuted_by_each_proof_that_is_about_it(
    claim: str, certified: Certified, keys: VerifyingKeys
) -> None:
    """Both proofs bind the game and what both players saw; the last clue and the master only the second one."""
    changes = dict(FALSE_CLAIMS[claim][0])
    rules = certified.certificate.rules
    if "guesses" in changes:
        changes["guess_history"] = pack_guesses(rules, changes.pop("guesses"))
    if "clues" in changes:
        changes["clue_history"] = pack_clues(rules, [Clue(*clue) for clue in changes.pop("clues")])
    false = replace(certified.certificate, **changes)
    refuting = []
    for circuit in BOTH:
        verifier = OnlyUnder(keys.keys[circuit])
        assert certified.certificate.verify(keys, verifier)
        try:
            false.verify(keys, verifier)
        except RejectedEvidenceError as error:
            assert error.reason == "invalid proof"  # noqa: PT017 (which of them rejects is the point)
            refuting.append(circuit)
    assert tuple(refuting) == FALSE_CLAIMS[claim][1]


@pytest.mark.parametrize("turn_count", [0, 1, 2, 4, 6, 14, 16, 17, 19, 1 << 64, MODULUS - 1])
def test_turn_counts_of_no_certificate_are_rejected(turn_count: int, certified: Certified, keys: VerifyingKeys) -> None:
    """Even, before the first clue, or after the last attempt."""
    assert rejection(replace(certified.certificate, turn_count=turn_count), keys) == "wrong turn count"


@pytest.mark.parametrize("turn_count", [3, 7, 15])
def test_turn_counts_of_other_games_are_rejected(turn_count: int, certified: Certified, keys: VerifyingKeys) -> None:
    assert rejection(replace(certified.certificate, turn_count=turn_count), keys) == "histories"


def test_turns_that_were_not_played_are_rejected(classic_game: Played) -> None:
    """Where colours may repeat, an unplayed turn looks like a guess of the first colour without a peg."""
    certificate = certify(classic_game, 4)
    certificate.verify(classic_game.table.keys, NATIVE)
    longer = replace(certificate, turn_count=5)
    assert rejection(longer, classic_game.table.keys) == "invalid proof"


@pytest.mark.parametrize("is_solved", [0, 2, MODULUS - 1])
def test_is_solved_says_what_the_last_clue_says(is_solved: int, certified: Certified, keys: VerifyingKeys) -> None:
    assert rejection(replace(certified.certificate, is_solved=is_solved), keys) == "is_solved"


def test_a_game_in_progress_is_not_solved(short_game: Played, keys: VerifyingKeys) -> None:
    certificate = certify(short_game, 4)
    assert rejection(replace(certificate, is_solved=1), keys) == "is_solved"


def test_a_game_that_goes_on_after_the_solution_is_rejected(certified: Certified, keys: VerifyingKeys) -> None:
    clues = pack_clues(certified.certificate.rules, [Clue(4, 0), Clue(4, 0)])
    assert rejection(replace(certified.certificate, clue_history=clues), keys) == "histories"


@pytest.mark.parametrize("clue", [(3, 1), (2, 3), (5, 0), (0, 7)])
def test_clu_5_a_clue_that_no_guess_has_is_rejected(
    clue: tuple[int, int], certified: Certified, keys: VerifyingKeys
) -> None:
    history = clue[0] + 8 * clue[1] + (4 << 6)
    assert rejection(replace(certified.certificate, clue_history=history), keys) == "histories"


def test_an_illegal_guess_is_rejected(certified: Certified, keys: VerifyingKeys) -> None:
    history = certified.certificate.guess_history
    twice = history & ~7 | 7  # 5 7 2 6 becomes 7 7 2 6
    assert rejection(replace(certified.certificate, guess_history=twice), keys) == "histories"


@pytest.mark.parametrize("shift", [24, 200])
def test_a_guess_beyond_the_turns_is_rejected(shift: int, certified: Certified, keys: VerifyingKeys) -> None:
    history = certified.certificate.guess_history + (1 << shift)
    assert rejection(replace(certified.certificate, guess_history=history), keys) == "histories"


# Put together from other parts


def test_rep_6_the_proof_of_an_older_guess_does_not_do(certified: Certified, keys: VerifyingKeys) -> None:
    steps = certified.game.transcript.steps
    assert steps[4].proof == certified.certificate.guess_proof
    assert rejection(replace(certified.certificate, guess_proof=steps[2].proof), keys) == "invalid proof"


def test_an_older_certificate_shows_the_older_state_only(certified: Certified, keys: VerifyingKeys) -> None:
    older, newer = certify(certified.game, 4), certified.certificate
    assert older.verify(keys, NATIVE).turn_count == 3
    for mixed in (
        replace(newer, game_proof=older.game_proof),
        replace(newer, guess_proof=older.guess_proof),
        replace(older, game_proof=newer.game_proof),
        replace(older, guess_proof=newer.guess_proof),
    ):
        assert rejection(mixed, keys) == "invalid proof"


def test_rep_2_parts_of_another_game_of_the_same_players_do_not_fit(
    certified: Certified, second_game: Played, keys: VerifyingKeys
) -> None:
    """Same players, code, salt and guesses: the two certificates differ in the nonce and the proofs alone."""
    first, second = certified.certificate, certify(second_game)
    second.verify(keys, NATIVE)
    parts: dict[str, Any] = {"nonce": second.nonce, "guess_proof": second.guess_proof, "game_proof": second.game_proof}
    assert replace(first, **parts) == second
    for name, part in parts.items():
        assert rejection(replace(first, **{name: part}), keys) == "invalid proof"


def test_the_two_proofs_exchanged_are_rejected(certified: Certified, keys: VerifyingKeys) -> None:
    first = certified.certificate
    exchanged = replace(first, guess_proof=first.game_proof, game_proof=first.guess_proof)
    assert rejection(exchanged, keys) == "invalid proof"


def test_other_keys_are_rejected(certified: Certified, other_keys: KeySet, keys: VerifyingKeys) -> None:
    theirs = VerifyingKeys.of(other_keys, keys.rules)
    assert rejection(certified.certificate, theirs) == "other keys"
    assert rejection(replace(certified.certificate, key_set_id=theirs.id), theirs) == "invalid proof"
    for circuit in BOTH:
        mixed = replace(keys, keys={**keys.keys, circuit: theirs.keys[circuit]})
        assert rejection(replace(certified.certificate, key_set_id=mixed.id), mixed) == "invalid proof"


def test_other_rules_are_rejected(certified: Certified, keys: VerifyingKeys) -> None:
    assert rejection(replace(certified.certificate, rules=Rules.parse("4x8u8")), keys) == "other rules"


# Made


@pytest.mark.parametrize("steps", [1, 2, 3, 5])
def test_it_is_made_after_a_clue_only(steps: int, short_game: Played) -> None:
    certify(short_game, 4)
    with pytest.raises(RefusedStepError) as caught:
        certify(short_game, steps)
    assert caught.value.refusal == Refusal.OUT_OF_TURN


def test_only_the_master_makes_it(short_game: Played, table: Table) -> None:
    kept = short_game.kept
    for master, record, refusal in (
        (short_game.breaker, kept, Refusal.WRONG_PLAYER),
        (PlayerKey.new(), kept, Refusal.WRONG_PLAYER),
        (short_game.master, replace(kept, salt=kept.salt - 1), Refusal.WRONG_SOLUTION),
        (short_game.master, replace(kept, secret=(1, 0, 7, 4)), Refusal.WRONG_SOLUTION),
    ):
        with pytest.raises(RefusedStepError) as caught:
            table.certify(short_game.transcript, master, record)
        assert caught.value.refusal == refusal


def test_a_certificate_under_other_keys_is_not_made(
    short_game: Played, other_keys: KeySet, native_prover: NativeProver
) -> None:
    theirs = Table(short_game.table.rules, other_keys, native_prover)
    with pytest.raises(RejectedEvidenceError) as caught:
        theirs.certify(short_game.transcript, short_game.master, short_game.kept)
    assert caught.value.reason == "other keys"


# Read


def test_the_bound_on_its_size(certified: Certified, tmp_path: Path) -> None:
    path, data = tmp_path / "certificate.json", encode(certified.certificate.to_json())
    path.write_bytes(data.ljust(MAX_BYTES))
    assert Certificate.read(path) == certified.certificate
    path.write_bytes(data.ljust(MAX_BYTES + 1))
    with pytest.raises(MalformedEvidenceError) as caught:
        Certificate.read(path)
    assert caught.value.field == "file"


def test_a_file_cut_anywhere_is_refused(certified: Certified, keys: VerifyingKeys) -> None:
    data = encode(certified.certificate.to_json())
    for length in range(len(data)):
        assert verdict(data[:length], keys) == ("malformed", "file")


def test_a_transcript_is_no_certificate_nor_the_other_way_round(certified: Certified, keys: VerifyingKeys) -> None:
    assert verdict(encode(certified.game.cut(2).to_json()), keys) == ("malformed", "format")
