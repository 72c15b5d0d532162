"""Rules that differ only in the attempts share circuits and keys: a game under one must be none under the other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mastermind.errors import RefusedStepError, RejectedEvidenceError
from mastermind.game.play import Table
from mastermind.game.reveal import TURN_COUNT
from mastermind.game.steps import game_id
from mastermind.game.transcript import VerifyingKeys
from mastermind.rules import Rules
from mastermind.zk.artifacts import KeySet
from mastermind.zk.verify import NativeVerifier
from tests.game.games import Played

LONGER = Rules.parse("4x8u8")
NATIVE = NativeVerifier()


@pytest.fixture(scope="module")
def longer_keys(hit_and_blow: KeySet) -> VerifyingKeys:
    """The keys of other rules with the very same circuits for all steps."""
    return VerifyingKeys(LONGER, VerifyingKeys.of(hit_and_blow, Rules.parse("hit-and-blow")).keys, "development")


def test_rep_2_a_game_cannot_be_moved_to_rules_with_other_attempts(
    short_game: Played, keys: VerifyingKeys, longer_keys: VerifyingKeys
) -> None:
    short_game.transcript.verify(keys, NATIVE)
    moved = replace(short_game.transcript, rules=LONGER)
    assert moved.key_set_id == longer_keys.id
    with pytest.raises(RejectedEvidenceError) as caught:
        moved.verify(longer_keys, NATIVE)
    assert caught.value.step == 1


def test_rep_2_nor_can_a_certificate(short_game: Played, keys: VerifyingKeys, longer_keys: VerifyingKeys) -> None:
    certificate = short_game.table.certify(short_game.transcript, short_game.master, short_game.kept)
    certificate.verify(keys, NATIVE)
    with pytest.raises(RejectedEvidenceError):
        replace(certificate, rules=LONGER).verify(longer_keys, NATIVE)


def test_rep_2_the_id_of_a_game_depends_on_all_rules() -> None:
    others = [Rules.parse(spelling) for spelling in ("4x8u7", "4x8u8", "4x8r7", "4x7u7", "3x8u7")]
    assert len({game_id(rules, 1, 2, 3) for rules in others}) == len(others)


def test_the_master_answers_under_the_rules_of_the_opening_only(short_game: Played, hit_and_blow: KeySet) -> None:
    """A breaker joins the opening under other rules; all proofs are real, and the master still gives no clue."""
    table = Table(LONGER, hit_and_blow, short_game.table.prover)
    opening = replace(short_game.cut(1), rules=LONGER)
    joined = table.join_game(opening, short_game.breaker)
    guessed = table.make_guess(joined, short_game.breaker, (0, 1, 2, 3))
    kept = replace(short_game.kept, game_id=None, answered=())
    with pytest.raises(RefusedStepError):
        table.give_clue(guessed, short_game.master, kept, lambda _: None)


def test_no_rules_have_a_turn_with_the_count_of_an_opening() -> None:
    longest = Rules(1, 2, True, 42)
    assert 2 * longest.attempts + 1 < TURN_COUNT
