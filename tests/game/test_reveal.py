"""Opening the secret: only after the end, only the right one, and never a step of the game."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from mastermind.errors import MalformedEvidenceError, RefusedStepError, RejectedEvidenceError
from mastermind.game.certificate import Certificate
from mastermind.game.play import Table
from mastermind.game.reveal import MAX_BYTES, TURN_COUNT, Reveal
from mastermind.game.secret_files import PlayerKey
from mastermind.game.steps import Refusal, Step
from mastermind.game.transcript import ProvedStep, Transcript, VerifyingKeys
from mastermind.packing import pack_code
from mastermind.rules import Rules
from mastermind.zk.artifacts import KeySet
from mastermind.zk.verify import NativeVerifier, Verifier
from tests.game.games import Played
from tests.game.tamper import encode, mutations

NATIVE = NativeVerifier()
SECRET = (1, 0, 4, 7)


@pytest.fixture(scope="session")
def opened(lost_game: Played) -> Reveal:
    return lost_game.table.reveal(lost_game.transcript, lost_game.master, lost_game.kept)


def rejection(reveal: Reveal, transcript: Transcript, keys: VerifyingKeys) -> str:
    read = Reveal.parse(encode(reveal.to_json()))
    assert read == reveal
    with pytest.raises(RejectedEvidenceError) as caught:
        read.verify(transcript, keys, NATIVE)
    return caught.value.reason


def test_it_opens_the_secret_of_a_lost_game(opened: Reveal, lost_game: Played, keys: VerifyingKeys) -> None:
    assert Reveal.parse(encode(opened.to_json())).verify(lost_game.transcript, keys, NATIVE) == SECRET


def test_it_opens_the_secret_to_every_verifier(quick_game: Played, keys: VerifyingKeys, verifier: Verifier) -> None:
    reveal = quick_game.table.reveal(quick_game.transcript, quick_game.master, quick_game.kept)
    assert reveal.verify(quick_game.transcript, keys, verifier) == SECRET


@pytest.mark.parametrize("steps", range(1, 16))
def test_nothing_is_opened_before_the_end(steps: int, opened: Reveal, lost_game: Played, keys: VerifyingKeys) -> None:
    before = lost_game.cut(steps)
    with pytest.raises(RefusedStepError) as caught:
        lost_game.table.reveal(before, lost_game.master, lost_game.kept)
    assert caught.value.refusal == Refusal.NOT_OVER
    # Nor believed: the twin of this opening is accepted at the end.
    assert rejection(opened, before, keys) == "game not over"


def test_only_the_master_opens_it(lost_game: Played, table: Table) -> None:
    kept = lost_game.kept
    for master, record, refusal in (
        (lost_game.breaker, kept, Refusal.WRONG_PLAYER),
        (PlayerKey.new(), kept, Refusal.WRONG_PLAYER),
        (lost_game.master, replace(kept, secret=(1, 0, 7, 4)), Refusal.WRONG_SOLUTION),
        (lost_game.master, replace(kept, salt=kept.salt - 1), Refusal.WRONG_SOLUTION),
    ):
        with pytest.raises(RefusedStepError) as caught:
            table.reveal(lost_game.transcript, master, record)
        assert caught.value.refusal == refusal


def test_another_secret_is_rejected(opened: Reveal, lost_game: Played, keys: VerifyingKeys) -> None:
    """Codes that all clues of the game fit as well: nothing but the commitment tells them from the secret."""
    rules = lost_game.table.rules
    clue = lost_game.transcript.state().clues[0]
    others = [code for code in itertools.permutations(range(8), 4) if rules.score(code, (5, 7, 2, 6)) == clue]
    assert SECRET in others
    for other in others[::25]:
        if other == SECRET:
            continue
        assert rejection(replace(opened, secret=other), lost_game.transcript, keys) == "invalid proof"


def test_every_change_in_any_field_is_refused(opened: Reveal, lost_game: Played, keys: VerifyingKeys) -> None:
    document = opened.to_json()
    kinds: Counter[str] = Counter()
    for mutation in mutations(document):
        try:
            Reveal.parse(mutation.data).verify(lost_game.transcript, keys, NATIVE)
        except MalformedEvidenceError as error:
            kinds["malformed"] += 1
            shown = str(mutation.path[0]) if mutation.path else ""
            # A number of more digits than any number may have is refused with the file.
            assert error.field.startswith(shown) or error.field == "file", mutation  # noqa: PT017
        except RejectedEvidenceError:
            kinds["rejected"] += 1
        else:
            pytest.fail(f"accepted: {mutation}")
    assert kinds["malformed"] > 300
    assert kinds["rejected"] > 10
    assert Reveal.parse(encode(document)).verify(lost_game.transcript, keys, NATIVE) == SECRET


def test_rep_2_it_opens_no_other_game_of_the_same_secret(
    lost_game: Played, short_game: Played, second_game: Played, keys: VerifyingKeys
) -> None:
    reveal = short_game.table.reveal(short_game.transcript, short_game.master, short_game.kept)
    reveal.verify(short_game.transcript, keys, NATIVE)
    for other in (second_game, lost_game):
        assert other.transcript.verify(keys, NATIVE).over
        assert rejection(reveal, other.transcript, keys) == "invalid proof"


def test_a_clue_of_the_game_is_no_opening(short_game: Played, keys: VerifyingKeys) -> None:
    """The clue to the solving guess proves the same score of the same code - in its turn."""
    clue = short_game.transcript.steps[5]
    assert clue.step.public_signals[3] == pack_code(keys.rules, SECRET)
    false = Reveal(keys.rules, keys.id, SECRET, clue.proof)
    assert rejection(false, short_game.transcript, keys) == "invalid proof"


def test_an_opening_is_no_clue_of_the_game(short_game: Played, keys: VerifyingKeys) -> None:
    reveal = short_game.table.reveal(short_game.transcript, short_game.master, short_game.kept)
    clue = short_game.transcript.steps[5].step
    after_every_turn = TURN_COUNT
    for turn_count, reason in ((4, "invalid proof"), (after_every_turn, Refusal.WRONG_TURN_COUNT)):
        signals = (*clue.public_signals[:2], turn_count, *clue.public_signals[3:])
        forged = short_game.cut(5).with_step(ProvedStep(Step("give_clue", signals), reveal.proof))
        with pytest.raises(RejectedEvidenceError) as caught:
            forged.verify(keys, NATIVE)
        assert (caught.value.step, caught.value.reason) == (5, reason)
        # The opening does prove the statement that no step may make.
        valid = NATIVE.verify(keys.keys["give_clue"], signals, reveal.proof)
        assert valid == (turn_count == after_every_turn)


@pytest.mark.parametrize("rules", ["1x2r1", "2x3r3", "4x8u7", "4x6r10", "5x8r12", "1x2r42"])
def test_no_turn_of_a_game_has_the_turn_count_of_an_opening(rules: str) -> None:
    parsed = Rules.parse(rules)
    assert TURN_COUNT % 2 == 0
    assert 2 * parsed.attempts + 1 < TURN_COUNT


def test_an_opening_of_a_false_game_is_rejected(opened: Reveal, lost_game: Played, keys: VerifyingKeys) -> None:
    steps = list(lost_game.transcript.steps)
    steps[3] = replace(steps[3], proof=steps[5].proof)
    assert rejection(opened, replace(lost_game.transcript, steps=tuple(steps)), keys) == "invalid proof"


def test_other_keys_are_rejected(opened: Reveal, lost_game: Played, other_keys: KeySet, keys: VerifyingKeys) -> None:
    theirs = VerifyingKeys.of(other_keys, keys.rules)
    assert rejection(replace(opened, key_set_id=theirs.id), lost_game.transcript, keys) == "other keys"
    assert rejection(replace(opened, rules=Rules.parse("4x8u8")), lost_game.transcript, keys) == "other rules"


def test_the_bound_on_its_size(opened: Reveal, tmp_path: Path) -> None:
    path, data = tmp_path / "reveal.json", encode(opened.to_json())
    path.write_bytes(data.ljust(MAX_BYTES))
    assert Reveal.read(path) == opened
    path.write_bytes(data.ljust(MAX_BYTES + 1))
    with pytest.raises(MalformedEvidenceError) as caught:
        Reveal.read(path)
    assert caught.value.field == "file"


def test_an_opening_is_no_certificate(opened: Reveal) -> None:
    with pytest.raises(MalformedEvidenceError) as caught:
        Certificate.parse(encode(opened.to_json()))
    assert caught.value.field == "format"
