"""Opening the secret after the end, checked against the solution hash.

The solution hash also covers the master's key, which must stay secret for the next game. So the secret is opened by
a proof: that the score of *this* code is all hits. It is a `give_clue` proof with a turn count that no turn has, so
that an opening is never a step and a step never an opening.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mastermind.errors import InvalidInputError, MalformedEvidenceError, RejectedEvidenceError
from mastermind.game.steps import GameState
from mastermind.game.transcript import (
    Transcript,
    VerifyingKeys,
    read_fields,
    read_file,
    read_key_set_id,
    read_proof,
    read_rules,
    require_proofs,
)
from mastermind.packing import pack_clue, pack_code
from mastermind.rules import Clue, Code, Rules
from mastermind.zk.evidence import Proof
from mastermind.zk.verify import Verifier

FORMAT = "mastermind reveal 1"
MAX_BYTES = 1 << 12
#: The turn count of an opening: even, and beyond the last turn under any rules (a game has at most 42 attempts).
TURN_COUNT = 254


@dataclass(frozen=True)
class Reveal:
    """An opened secret as read; `verify` checks it against a game."""

    rules: Rules
    key_set_id: str
    secret: Code
    proof: Proof

    @classmethod
    def parse(cls, data: bytes) -> Reveal:
        """Read an opening. Raises MalformedEvidenceError."""
        fields = read_fields(data, FORMAT, {"rules", "key_set_id", "secret", "proof"}, MAX_BYTES)
        rules = read_rules(fields["rules"])
        secret = fields["secret"]
        try:
            code = rules.require_code(secret if isinstance(secret, list) else [], "secret")
        except InvalidInputError as error:
            raise MalformedEvidenceError(str(error), field="secret") from error
        return cls(rules, read_key_set_id(fields["key_set_id"]), code, read_proof(fields["proof"], "proof"))

    @classmethod
    def read(cls, path: Path) -> Reveal:
        """Read an opening from a file. Raises MalformedEvidenceError."""
        return read_file(path, cls.parse, MAX_BYTES)

    def to_json(self) -> dict[str, Any]:
        """The object that `parse` reads."""
        return {
            "format": FORMAT,
            "rules": self.rules.spelling,
            "key_set_id": self.key_set_id,
            "secret": list(self.secret),
            "proof": self.proof.to_json(),
        }

    def verify(self, transcript: Transcript, keys: VerifyingKeys, verifier: Verifier) -> Code:
        """Check the transcript and the opening; return the secret of that game.

        Raises:
            RejectedEvidenceError: either does not hold, or the game is not over.
        """
        state = transcript.verify(keys, verifier)
        if not state.over:
            raise RejectedEvidenceError("the game is not over", reason="game not over")
        return self.verify_against(state, keys, verifier)

    def verify_against(self, state: GameState, keys: VerifyingKeys, verifier: Verifier) -> Code:
        """Check the opening against a game whose transcript has been verified, over or not.

        Raises:
            RejectedEvidenceError: it does not open this game.
        """
        keys.require(self.rules, self.key_set_id)
        if state.game_id is None:
            raise RejectedEvidenceError("nobody has joined the game", reason="not joined")
        signals = opening_signals(state, self.secret)
        require_proofs(verifier, [("this secret", (keys.keys["give_clue"], signals, self.proof), None)])
        return self.secret


def opening_signals(state: GameState, secret: Code) -> tuple[int, int, int, int, int]:
    """The public signals of the proof that opens a joined game to `secret`."""
    assert state.game_id is not None
    assert state.solution_hash is not None
    rules = state.rules
    return (
        state.game_id,
        state.solution_hash,
        TURN_COUNT,
        pack_code(rules, secret),
        pack_clue(rules, Clue(rules.pegs, 0)),
    )
