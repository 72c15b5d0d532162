"""Steps of a small game by public signals alone, for tests of the rules: there the proofs are already behind us."""

from __future__ import annotations

from mastermind.game.steps import GameState, Step, game_id, join_message
from mastermind.packing import pack_clue, pack_clues, pack_code, pack_guesses
from mastermind.referee.contract import Contract
from mastermind.rules import Clue, Code, Rules

SMALL = Rules(pegs=2, colours=3, repeats=True, attempts=2)
MASTER, BREAKER, REFEREE, STRANGER = 101, 102, 103, 104
SOLUTION, NONCE = 777, 55
SECRET: Code = (0, 1)
WRONG: Code = (2, 2)


def open_step(master: int = MASTER, solution_hash: int = SOLUTION) -> Step:
    return Step("open_game", (solution_hash, master))


def join_step(breaker: int = BREAKER, solution_hash: int = SOLUTION, nonce: int = NONCE) -> Step:
    return Step("join_game", (breaker, join_message(game_id(SMALL, solution_hash, breaker, nonce), nonce)), nonce)


def guess_step(game: GameState, guess: Code, breaker: int = BREAKER) -> Step:
    guesses = (*game.guesses, guess)
    return Step(
        "make_guess",
        (
            game.game_id or 0,
            breaker,
            game.turn_count,
            pack_code(game.rules, guess),
            pack_guesses(game.rules, guesses),
            pack_clues(game.rules, game.clues),
        ),
    )


def clue_step(game: GameState, secret: Code = SECRET, solution_hash: int | None = None) -> Step:
    guess = game.guesses[-1] if game.guesses else secret
    return Step(
        "give_clue",
        (
            game.game_id or 0,
            (solution_hash if solution_hash is not None else game.solution_hash) or 0,
            game.turn_count,
            pack_code(game.rules, guess),
            pack_clue(game.rules, game.rules.score(secret, guess)),
        ),
    )


def shown(contract: Contract, guesses: list[Code], secret: Code = SECRET) -> GameState:
    """The state that a certificate of these guesses would prove."""
    game = contract.game
    clues: list[Clue] = [game.rules.score(secret, guess) for guess in guesses]
    return GameState(
        game.rules,
        master_id=game.master_id,
        solution_hash=game.solution_hash,
        breaker_id=game.breaker_id,
        game_id=game.game_id,
        turn_count=1 + 2 * len(guesses),
        guesses=tuple(guesses),
        clues=tuple(clues),
    )
