"""The moves of the two players: from a transcript and one's own secrets to the next proved step.

Each move first checks the whole transcript as it came in - rules, keys, every proof - so that nobody builds on
something false. Nothing here touches files; the master's record of what has been answered is returned to be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from mastermind.errors import RefusedStepError
from mastermind.field import random_field_element
from mastermind.game.certificate import Certificate
from mastermind.game.circuits import (
    authorise_inputs,
    certify_game_inputs,
    give_clue_inputs,
    make_guess_inputs,
    open_game_inputs,
    random_salt,
    solution_hash,
)
from mastermind.game.reveal import TURN_COUNT as REVEAL_TURN_COUNT
from mastermind.game.reveal import Reveal
from mastermind.game.secret_files import GameSecret, PlayerKey
from mastermind.game.steps import CIRCUITS, GameState, Refusal, Step, StepKind, apply, game_id, join_message
from mastermind.game.transcript import ProvedStep, Transcript, VerifyingKeys
from mastermind.rules import Rules
from mastermind.zk.artifacts import KeySet
from mastermind.zk.prove import Prover
from mastermind.zk.verify import NativeVerifier, Verifier


@dataclass(frozen=True)
class Table:
    """What both players need to make and check moves.

    Attributes:
        key_set: the built circuits for the rules.
    """

    rules: Rules
    key_set: KeySet
    prover: Prover
    verifier: Verifier = NativeVerifier()  # noqa: RUF009 (it has no state)

    @property
    def keys(self) -> VerifyingKeys:
        """The verifying keys of the key set."""
        return VerifyingKeys.of(self.key_set, self.rules)

    def open_game(self, master: PlayerKey, secret: Sequence[int]) -> tuple[Transcript, GameSecret]:
        """Commit to a secret: the transcript of a new game, and what the master has to keep.

        Raises:
            InvalidCodeError: the secret is not a legal code.
        """
        kept = GameSecret(self.rules, self.rules.require_code(secret, "secret"), random_salt())
        inputs = open_game_inputs(self.rules, kept.secret, kept.salt, master.key)
        empty = Transcript(self.rules, self.key_set.id)
        return self._next(empty, GameState(self.rules), "open_game", inputs), kept

    def join_game(self, transcript: Transcript, breaker: PlayerKey) -> Transcript:
        """Join an open game as its breaker.

        Raises:
            RejectedEvidenceError: the transcript does not hold.
            RefusedStepError: somebody has joined already.
        """
        state = self._checked(transcript, "join_game")
        assert state.solution_hash is not None
        nonce = random_field_element()
        game = game_id(self.rules, state.solution_hash, breaker.id, nonce)
        return self._next(
            transcript, state, "join_game", authorise_inputs(breaker.key, join_message(game, nonce)), nonce
        )

    def make_guess(self, transcript: Transcript, breaker: PlayerKey, guess: Sequence[int]) -> Transcript:
        """Make a guess.

        Raises:
            InvalidCodeError: the guess is not a legal code; no turn is used.
            RejectedEvidenceError: the transcript does not hold.
            RefusedStepError: it is not this player's game or turn, or the game is over.
        """
        return transcript.with_step(self.guess_step(self._checked(transcript, "make_guess"), breaker, guess))

    def guess_step(self, state: GameState, breaker: PlayerKey, guess: Sequence[int]) -> ProvedStep:
        """The step of a guess in a game whose state is known to hold, whatever shows it.

        Raises:
            InvalidCodeError: the guess is not a legal code.
            RefusedStepError: it is not this player's game or turn.
        """
        guess = self.rules.require_code(guess, "guess")
        if breaker.id != state.breaker_id:
            raise RefusedStepError("this player is not the breaker of the game", refusal=Refusal.WRONG_PLAYER)
        assert state.game_id is not None
        inputs = make_guess_inputs(
            self.rules, game_id=state.game_id, guesses=[*state.guesses, guess], clues=state.clues, key=breaker.key
        )
        return self._prove(state, "make_guess", inputs)

    def give_clue(
        self, transcript: Transcript, master: PlayerKey, kept: GameSecret, keep: Callable[[GameSecret], None]
    ) -> Transcript:
        """Answer the newest guess.

        `keep` is called with the new record before there is a clue, and must have stored it when it returns: whatever
        happens then, no other guess is ever answered in this turn.

        Raises:
            RejectedEvidenceError: the transcript does not hold.
            RefusedStepError: there is no guess to answer, the secret is another game's, or the transcript does not
                continue what has been answered so far.
        """
        state = self._checked(transcript, "give_clue")
        _require_owner(state, master, kept)
        if kept.game_id not in (None, state.game_id) or state.guesses[: len(kept.answered)] != kept.answered:
            raise RefusedStepError(
                "the transcript does not continue what has been answered: a clue here would be one too many",
                refusal=Refusal.ANSWERED_OTHERWISE,
            )
        assert state.game_id is not None
        keep(replace(kept, game_id=state.game_id, answered=state.guesses))
        inputs = give_clue_inputs(
            self.rules,
            game_id=state.game_id,
            turn_count=state.turn_count,
            guess=state.guesses[-1],
            secret=kept.secret,
            salt=kept.salt,
            key=master.key,
        )
        return self._next(transcript, state, "give_clue", inputs)

    def certify(self, transcript: Transcript, master: PlayerKey, kept: GameSecret) -> Certificate:
        """Fold the game so far into a certificate. Only after a clue.

        Raises:
            RejectedEvidenceError: the transcript does not hold.
            RefusedStepError: no clue has been given yet, a guess waits for one, or the secret is another game's.
        """
        state = transcript.verify(self.keys, self.verifier)
        _require_owner(state, master, kept)
        if state.turn_count < 3 or state.turn_count % 2 == 0:
            raise RefusedStepError("a certificate is made after a clue", refusal=Refusal.OUT_OF_TURN)
        assert state.game_id is not None
        inputs = certify_game_inputs(
            self.rules,
            game_id=state.game_id,
            guesses=state.guesses,
            secret=kept.secret,
            salt=kept.salt,
            key=master.key,
        )
        proved = self.prover.prove(self.key_set["certify_game"], inputs)
        _, solution, master_id, turn_count, guess_history, clue_history, is_solved = proved.public_signals
        nonce = next(step.step.nonce for step in transcript.steps if step.step.kind == "join_game")
        assert nonce is not None
        assert state.breaker_id is not None
        return Certificate(
            rules=self.rules,
            key_set_id=transcript.key_set_id,
            solution_hash=solution,
            master_id=master_id,
            breaker_id=state.breaker_id,
            nonce=nonce,
            turn_count=turn_count,
            guess_history=guess_history,
            clue_history=clue_history,
            is_solved=is_solved,
            guess_proof=next(step.proof for step in reversed(transcript.steps) if step.step.kind == "make_guess"),
            game_proof=proved.proof,
        )

    def reveal(self, transcript: Transcript, master: PlayerKey, kept: GameSecret) -> Reveal:
        """Open the secret after the end of the game, without giving away the salt or the key.

        Raises:
            RejectedEvidenceError: the transcript does not hold.
            RefusedStepError: the game is not over, or the secret is another game's.
        """
        if not transcript.state().over:
            raise RefusedStepError("the secret is opened after the end of the game", refusal=Refusal.NOT_OVER)
        return self.open_secret(transcript, master, kept)

    def open_secret(self, transcript: Transcript, master: PlayerKey, kept: GameSecret) -> Reveal:
        """Open the secret of a joined game, over or not: for a duel, which may end before one of its games does.

        Raises:
            RejectedEvidenceError: the transcript does not hold.
            RefusedStepError: nobody has joined, or the secret is another game's.
        """
        state = transcript.verify(self.keys, self.verifier)
        _require_owner(state, master, kept)
        if state.game_id is None:
            raise RefusedStepError("nobody has joined", refusal=Refusal.NOT_JOINED)
        inputs = give_clue_inputs(
            self.rules,
            game_id=state.game_id,
            turn_count=REVEAL_TURN_COUNT,
            guess=kept.secret,
            secret=kept.secret,
            salt=kept.salt,
            key=master.key,
        )
        proved = self.prover.prove(self.key_set["give_clue"], inputs)
        return Reveal(self.rules, transcript.key_set_id, kept.secret, proved.proof)

    def _checked(self, transcript: Transcript, kind: StepKind) -> GameState:
        """The state of a transcript that holds and goes on with `kind`."""
        state = transcript.verify(self.keys, self.verifier)
        if state.next_step != kind:
            raise RefusedStepError(_why_not(state), refusal=_refusal(state, kind))
        return state

    def _next(
        self,
        transcript: Transcript,
        state: GameState,
        kind: StepKind,
        inputs: Mapping[str, object],
        nonce: int | None = None,
    ) -> Transcript:
        return transcript.with_step(self._prove(state, kind, inputs, nonce))

    def _prove(
        self, state: GameState, kind: StepKind, inputs: Mapping[str, object], nonce: int | None = None
    ) -> ProvedStep:
        proved = self.prover.prove(self.key_set[CIRCUITS[kind]], inputs)
        step = Step(kind, proved.public_signals, nonce)
        apply(state, step)  # What we add is held to the same rules as what others add.
        return ProvedStep(step, proved.proof)


def _require_owner(state: GameState, master: PlayerKey, kept: GameSecret) -> None:
    if master.id != state.master_id:
        raise RefusedStepError("this player is not the master of the game", refusal=Refusal.WRONG_PLAYER)
    if kept.rules != state.rules:
        # Rules that differ in their attempts alone can share the keys of all steps.
        raise RefusedStepError("the secret file belongs to a game under other rules", refusal=Refusal.WRONG_SOLUTION)
    if solution_hash(kept.rules, kept.secret, kept.salt, master.key) != state.solution_hash:
        raise RefusedStepError("the secret file belongs to another game", refusal=Refusal.WRONG_SOLUTION)


def _refusal(state: GameState, kind: StepKind) -> Refusal:
    if state.over:
        return Refusal.GAME_OVER
    if state.next_step == "join_game":
        return Refusal.NOT_JOINED
    return Refusal.ALREADY_JOINED if kind == "join_game" else Refusal.OUT_OF_TURN


def _why_not(state: GameState) -> str:
    """What the game waits for instead, in words."""
    match state.next_step:
        case None:
            return f"the game is over; the {state.winner} has won"
        case "open_game":
            return "the game is not open yet"
        case "join_game":
            return "the game waits for a breaker to join"
        case "make_guess":
            return "the game waits for the breaker's guess"
        case "give_clue":
            return "the game waits for the master's clue"
