"""Players who come back to the referee after turns that it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from mastermind.errors import RejectedEvidenceError, WrongStateError
from mastermind.game.steps import GameState
from mastermind.game.transcript import Transcript, write_json
from mastermind.referee.client import GameView, RefereeClient
from mastermind.referee.contract import PER_TURN_SLOTS, Role
from mastermind.referee.referee import Referee
from mastermind.referee.requests import MakeGuess, SubmitGameProof
from mastermind.referee.seats import Player, Seat
from mastermind.referee.service import create_app
from mastermind.rules import Code
from tests.referee.serving import BadLine, serving
from tests.referee.world import REWARD, SECRET, WELCOME, WRONG, FakeClock, PlayedGame, World, send
from tests.support.proofs import made_over

TIMEOUT_S = 90


@pytest.fixture
def referee(world: World, clock: FakeClock, tmp_path: Path) -> Iterator[Referee]:
    yield world.referee(f"sqlite:///{tmp_path / 'books.db'}", clock=clock)
    world.close()


@pytest.fixture
def http(referee: Referee) -> Iterator[httpx.Client]:
    with serving(create_app(referee)) as client:
        yield client


@pytest.fixture(scope="session")
def unsolved_game(world: World) -> PlayedGame:
    return world.play([WRONG, WRONG])


SitDown = Callable[[PlayedGame, Role, str, int], Player]


@pytest.fixture
def sit_down(http: httpx.Client, tmp_path: Path) -> Iterator[SitDown]:
    """Makes the seat of a player who has so many steps of the game, in a folder of that name."""
    with ExitStack() as stack:

        def sit(played: PlayedGame, role: Role, name: str, steps: int) -> Player:
            folder = tmp_path / name
            folder.mkdir()
            seat = Seat(role, str(http.base_url), played.world.referee_key.id, played.game, REWARD)
            seat.write(folder)
            cut(played, steps).write_new(folder / "transcript.json")
            key = played.master if role == "master" else played.breaker
            if role == "master":
                played.kept.write_new(folder / "secret.json", key)
            client = stack.enter_context(RefereeClient(seat.url))
            return Player(seat, folder, played.world.table, key, client)

        yield sit


def cut(played: PlayedGame, steps: int) -> Transcript:
    return replace(played.transcript, steps=played.transcript.steps[:steps])


def secret_guess(_: GameState) -> Code:
    return SECRET


def played_out(*players: Player) -> list[GameView]:
    """How the game ends for players who sit there at the same time."""
    with ThreadPoolExecutor() as pool:
        games = [pool.submit(player.play, secret_guess) for player in players]
        return [game.result(TIMEOUT_S) for game in games]


def methods(referee: Referee, played: PlayedGame) -> list[str]:
    return [event["method"] for event in referee.log_json(played.game)["events"]]


def test_a_master_shows_all_that_was_played_elsewhere(
    sit_down: SitDown, referee: Referee, unsolved_game: PlayedGame
) -> None:
    """By one certificate; then both go on at the referee, where the steps before it are not."""
    send(referee, unsolved_game, *unsolved_game.requests[:2])
    master = sit_down(unsolved_game, "master", "master", 6)
    breaker = sit_down(unsolved_game, "breaker", "breaker", 6)
    write_json(breaker.folder / "certificate.json", unsolved_game.certificate().to_json())
    for ended in played_out(master, breaker):
        assert (ended.contract.game.winner, ended.contract.closed) == ("breaker", True)
    found = methods(referee, unsolved_game)
    assert found[:3] == ["init_game", "accept_game", "submit_game_proof"]
    assert [method for method in found[3:] if method != "submit_game_proof"] == [
        "make_guess", "give_clue", "claim_reward",
    ]  # fmt: skip
    for player in (master, breaker):
        assert Transcript.read(player.folder / "transcript.json").state().winner == "breaker"
    assert breaker.client.credits(breaker.key.id) == WELCOME + REWARD


def test_a_breaker_without_a_certificate_sends_the_steps_of_both(
    sit_down: SitDown, referee: Referee, unsolved_game: PlayedGame
) -> None:
    send(referee, unsolved_game, *unsolved_game.requests[:2])
    breaker = sit_down(unsolved_game, "breaker", "breaker", 6)
    master = sit_down(unsolved_game, "master", "master", 2)
    view = breaker.client.game(unsolved_game.game)
    while view.contract.game.turn_count < 5:
        acted = breaker._act(view, secret_guess)
        assert acted is not None
        view = acted
    assert methods(referee, unsolved_game)[2:] == ["make_guess", "give_clue", "make_guess", "give_clue"]
    # The master, who was silent, has lost nothing.
    assert master._catch_up() == (unsolved_game.transcript, 6)


def test_a_turn_that_is_over_is_shown_by_a_certificate(
    sit_down: SitDown, referee: Referee, clock: FakeClock, unsolved_game: PlayedGame
) -> None:
    """One clue behind, too late for a move: refused as a move, accepted as a certificate."""
    send(referee, unsolved_game, *unsolved_game.requests[:3])
    clock.slot += PER_TURN_SLOTS + 1
    master = sit_down(unsolved_game, "master", "master", 4)
    with pytest.raises(WrongStateError) as refusal:
        master.client.send(unsolved_game.game, unsolved_game.requests[3])
    assert refusal.value.refusal == "too_late"
    view = master._act(master.client.game(unsolved_game.game), secret_guess)
    assert view is not None
    assert view.contract.game.turn_count == 3


def test_steps_of_another_history_are_refused(sit_down: SitDown, referee: Referee, unsolved_game: PlayedGame) -> None:
    """The referee's certificate shows two turns; the folder has another first guess."""
    other = unsolved_game.world.table.make_guess(cut(unsolved_game, 2), unsolved_game.breaker, SECRET)
    send(referee, unsolved_game, *unsolved_game.requests[:2], SubmitGameProof(unsolved_game.certificate()))
    same = sit_down(unsolved_game, "breaker", "same", 6)
    assert same._catch_up() == (unsolved_game.transcript, 6)
    forked = sit_down(replace(unsolved_game, transcript=other), "breaker", "forked", 3)
    short = sit_down(unsolved_game, "breaker", "short", 4)
    for player in (forked, short):
        with pytest.raises(RejectedEvidenceError):
            player._catch_up()


def test_a_log_without_the_certificate_is_refused(
    sit_down: SitDown, referee: Referee, unsolved_game: PlayedGame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The referee says that some steps were played elsewhere, and shows nothing for them."""
    send(referee, unsolved_game, *unsolved_game.requests[:2])
    breaker = sit_down(unsolved_game, "breaker", "breaker", 2)

    def elsewhere(*_: object) -> Transcript:
        raise WrongStateError("played elsewhere", refusal="played_elsewhere")

    monkeypatch.setattr(breaker.client, "transcript", elsewhere)
    with pytest.raises(RejectedEvidenceError):
        breaker._catch_up()


def test_a_clue_that_comes_as_a_certificate_only_is_a_clue(sit_down: SitDown, referee: Referee, world: World) -> None:
    """The breaker guesses on from it, and wins; the clue has never come as a step."""
    game = world.play([WRONG])
    send(referee, game, *game.requests[:3], SubmitGameProof(game.certificate()))
    breaker = sit_down(game, "breaker", "breaker", 3)
    master = sit_down(game, "master", "master", 4)
    for ended in played_out(breaker, master):
        assert (ended.contract.game.winner, ended.contract.closed) == ("breaker", True)
    assert breaker.client.credits(breaker.key.id) == WELCOME + REWARD


@pytest.mark.parametrize("winner", ["breaker", "master"])
def test_the_pot_is_claimed_whatever_the_referee_shows(
    sit_down: SitDown, referee: Referee, clock: FakeClock, unsolved_game: PlayedGame, winner: Role
) -> None:
    """Silence is decided by the books; the folder may hold another game's steps."""
    send(referee, unsolved_game, *unsolved_game.requests[: 3 if winner == "breaker" else 4])
    other = unsolved_game.world.table.make_guess(cut(unsolved_game, 2), unsolved_game.breaker, SECRET)
    player = sit_down(replace(unsolved_game, transcript=other), winner, "seat", 3)
    clock.slot += 10_000
    assert played_out(player)[0].contract.closed
    assert player.client.credits(player.key.id) == WELCOME + REWARD


def test_rep_1_a_proof_made_over_by_somebody_else_shows_the_same_step(
    sit_down: SitDown, referee: Referee, unsolved_game: PlayedGame
) -> None:
    """The opponent sends our guess before us, with another valid proof of it; ours stays in our folder."""
    guess = unsolved_game.transcript.steps[2]
    theirs = replace(guess, proof=made_over(guess.proof))
    assert theirs.proof != guess.proof
    send(referee, unsolved_game, *unsolved_game.requests[:2], MakeGuess(theirs), unsolved_game.requests[3])
    breaker = sit_down(unsolved_game, "breaker", "breaker", 3)
    assert breaker._catch_up() == (cut(unsolved_game, 4), 4)
    view = breaker._act(breaker.client.game(unsolved_game.game), secret_guess)
    assert view is not None
    assert view.contract.game.turn_count == 4


def test_a_game_over_a_line_that_fails_all_the_time(
    sit_down: SitDown, referee: Referee, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both players go on by themselves, every step is taken once, and each absence is told of once."""
    monkeypatch.setattr("mastermind.referee.client.MAX_PAUSE_S", 0.01)
    monkeypatch.setattr("mastermind.referee.client.SHORT_S", 0.0)
    game = world.play([SECRET])
    said: list[str] = []
    with ExitStack() as stack:
        players = []
        for role, steps in (("master", 1), ("breaker", 2)):
            player = sit_down(game, role, role, steps)  # type: ignore[arg-type]
            client = RefereeClient(player.seat.url, transport=BadLine(), patience_s=0, tell=said.append)
            players.append(replace(player, client=stack.enter_context(client)))
        send(referee, game, game.requests[0])
        for ended in played_out(*players):
            assert ended.contract.closed
    assert [method for method in methods(referee, game) if method != "submit_game_proof"] == [
        "init_game", "accept_game", "make_guess", "give_clue", "claim_reward",
    ]  # fmt: skip
    gone, back = (sum(text in line for line in said) for text in ("trying again until", "answers again"))
    assert gone == back > 4
