"""The certificate: constant-size evidence for a whole game so far (PROTOCOL section 3).

Two proofs: the newest `make_guess` binds the breaker to all guesses and to the clues seen before it; `certify_game`
proves every clue. Public signals that follow from others are not stored but derived, so a certificate cannot
contradict itself; `game_id` is recomputed from the join nonce.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mastermind.errors import InvalidInputError, RejectedEvidenceError
from mastermind.game.steps import GameState, game_id
from mastermind.game.transcript import (
    VerifyingKeys,
    read_element,
    read_fields,
    read_file,
    read_key_set_id,
    read_proof,
    read_rules,
    require_proofs,
)
from mastermind.packing import unpack_clues, unpack_guesses
from mastermind.rules import CLUE_BITS, Rules
from mastermind.zk.evidence import Proof
from mastermind.zk.verify import Verifier

FORMAT = "mastermind certificate 1"
#: Two proofs and nine field elements need less than 3 KB.
MAX_BYTES = 1 << 12

_ELEMENTS = (
    "solution_hash",
    "master_id",
    "breaker_id",
    "nonce",
    "turn_count",
    "guess_history",
    "clue_history",
    "is_solved",
)


@dataclass(frozen=True)
class Certificate:
    """A certificate as read; `verify` says what it shows.

    Attributes:
        nonce: the join nonce.
        turn_count: after the last clue: odd, at least 3.
        guess_history, clue_history: packed.
        is_solved: 0 or 1.
        guess_proof: of the newest `make_guess`.
        game_proof: of `certify_game`.
    """

    rules: Rules
    key_set_id: str
    solution_hash: int
    master_id: int
    breaker_id: int
    nonce: int
    turn_count: int
    guess_history: int
    clue_history: int
    is_solved: int
    guess_proof: Proof
    game_proof: Proof

    @classmethod
    def parse(cls, data: bytes) -> Certificate:
        """Read a certificate. Raises MalformedEvidenceError."""
        names = {"rules", "key_set_id", "guess_proof", "game_proof", *_ELEMENTS}
        fields = read_fields(data, FORMAT, names, MAX_BYTES)
        return cls(
            rules=read_rules(fields["rules"]),
            key_set_id=read_key_set_id(fields["key_set_id"]),
            **{name: read_element(fields, name) for name in _ELEMENTS},
            guess_proof=read_proof(fields["guess_proof"], "guess_proof"),
            game_proof=read_proof(fields["game_proof"], "game_proof"),
        )

    @classmethod
    def read(cls, path: Path) -> Certificate:
        """Read a certificate file. Raises MalformedEvidenceError."""
        return read_file(path, cls.parse, MAX_BYTES)

    def to_json(self) -> dict[str, Any]:
        """The object that `parse` reads."""
        return {
            "format": FORMAT,
            "rules": self.rules.spelling,
            "key_set_id": self.key_set_id,
            **{name: str(getattr(self, name)) for name in _ELEMENTS},
            "guess_proof": self.guess_proof.to_json(),
            "game_proof": self.game_proof.to_json(),
        }

    def verify(self, keys: VerifyingKeys, verifier: Verifier) -> GameState:
        """Check the certificate in constant time and return the state of the game it shows.

        Raises:
            RejectedEvidenceError: it shows nothing; `reason` says why.
        """
        keys.require(self.rules, self.key_set_id)
        state = self._state()
        assert state.game_id is not None
        guess_bits = self.rules.peg_bits * self.rules.pegs
        last = len(state.guesses) - 1
        guess_signals = (
            state.game_id,
            self.breaker_id,
            self.turn_count - 2,
            self.guess_history >> guess_bits * last,
            self.guess_history,
            self.clue_history & (1 << CLUE_BITS * last) - 1,
        )
        game_signals = (
            state.game_id,
            self.solution_hash,
            self.master_id,
            self.turn_count,
            self.guess_history,
            self.clue_history,
            self.is_solved,
        )
        require_proofs(
            verifier,
            [
                ("the newest guess", (keys.keys["make_guess"], guess_signals, self.guess_proof), None),
                ("the clues", (keys.keys["certify_game"], game_signals, self.game_proof), None),
            ],
        )
        return state

    def _state(self) -> GameState:
        """The state that the signals describe. Raises RejectedEvidenceError when none could have them."""
        turns, odd = divmod(self.turn_count, 2)
        if not odd or not 1 <= turns <= self.rules.attempts:
            raise RejectedEvidenceError(
                f"a certificate is made after a clue, not at turn count {self.turn_count}", reason="wrong turn count"
            )
        try:
            guesses = unpack_guesses(self.rules, self.guess_history, turns)
            clues = unpack_clues(self.rules, self.clue_history, turns)
        except InvalidInputError as error:
            raise RejectedEvidenceError(f"its histories are not those of {turns} turns", reason="histories") from error
        if any(clue.hits == self.rules.pegs for clue in clues[:-1]):
            raise RejectedEvidenceError("it goes on after the solution", reason="histories")
        if self.is_solved != int(clues[-1].hits == self.rules.pegs):
            raise RejectedEvidenceError("is_solved is not what the last clue says", reason="is_solved")
        return GameState(
            self.rules,
            master_id=self.master_id,
            solution_hash=self.solution_hash,
            breaker_id=self.breaker_id,
            game_id=game_id(self.rules, self.solution_hash, self.breaker_id, self.nonce),
            turn_count=self.turn_count,
            guesses=guesses,
            clues=clues,
        )
