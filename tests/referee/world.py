"""Real games and matches of hit-and-blow as the requests of both players, proved beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from mastermind.game.certificate import Certificate
from mastermind.game.duel import Duel, Player, Seat, next_move, other
from mastermind.game.play import Table
from mastermind.game.reveal import opening_signals
from mastermind.game.secret_files import GameSecret, PlayerKey
from mastermind.game.transcript import Transcript, VerifyingKeys
from mastermind.referee.client import make_consent
from mastermind.referee.contract import Role
from mastermind.referee.match import GUEST, HOST
from mastermind.referee.referee import Clock, Referee, Terms
from mastermind.referee.requests import (
    AcceptGame,
    ClaimMatch,
    ClaimReward,
    Consent,
    ForfeitWin,
    GiveClue,
    InitGame,
    JoinMatch,
    MakeGuess,
    OpenCode,
    OpenMatch,
    PlayStep,
    Request,
    Settle,
    StartMatch,
)
from mastermind.referee.storage import RefereeRecord, Storage
from mastermind.rules import Code, Rules
from mastermind.zk.artifacts import KeySet
from mastermind.zk.evidence import canonical_json
from mastermind.zk.prove import NativeProver
from mastermind.zk.verify import NativeVerifier, Verifier

RULES = Rules.parse("hit-and-blow")
REWARD, WELCOME, SUPPLY = 10, 100, 10_000
SECRET: Code = (7, 4, 6, 0)
WRONG: Code = (0, 4, 5, 7)
#: Of host and guest.
CODES: tuple[Code, Code] = SECRET, (1, 2, 3, 4)


#: The slot in which tests begin.
START = 1_000
#: For what does not depend on the kind of books.
on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


class FakeClock:
    """Slots that a test sets."""

    def __init__(self, slot: int = START) -> None:
        self.slot = slot

    def __call__(self) -> int:
        return self.slot


@dataclass
class PlayedGame:
    """One game: the request of each event, in order, and what else was made on the way."""

    world: World
    game: int
    master: PlayerKey
    breaker: PlayerKey
    kept: GameSecret
    transcript: Transcript
    requests: list[Request] = field(default_factory=list)

    def consent(self, key: PlayerKey, action: str, amount: int, game: int | None = None) -> Consent:
        world = self.world
        return make_consent(
            world.table.key_set,
            world.table.prover,
            key,
            action,
            referee_id=world.referee_key.id,
            game=self.game if game is None else game,
            amount=amount,
        )

    def claim(self, key: PlayerKey, amount: int = 2 * REWARD) -> ClaimReward:
        return ClaimReward(key.id, amount, self.consent(key, "claim_reward", amount))

    def forfeit(self, winner: Role, key: PlayerKey | None = None, amount: int = 2 * REWARD) -> ForfeitWin:
        key = key or self.world.referee_key
        return ForfeitWin(key.id, winner, amount, self.consent(key, ForfeitWin.action(winner), amount))

    def settle(self, key: PlayerKey) -> Settle:
        return Settle(key.id, self.consent(key, "settle", 0))

    def certificate(self, steps: int | None = None) -> Certificate:
        """Of the first `steps` steps, or all."""
        cut = Transcript(
            self.transcript.rules,
            self.transcript.key_set_id,
            self.transcript.steps[: steps or len(self.transcript.steps)],
        )
        return self.world.table.certify(cut, self.master, self.kept)


class World:
    """The keys of a referee and its players, and the table to make proofs at."""

    def __init__(self, key_set: KeySet) -> None:
        self.table = Table(RULES, key_set, NativeProver())
        self.referee_key = PlayerKey.new()
        self.keys = VerifyingKeys.of(key_set, RULES)
        self._storages: list[Storage] = []

    def play(
        self,
        guesses: Sequence[Code],
        *,
        secret: Code = SECRET,
        master: PlayerKey | None = None,
        breaker: PlayerKey | None = None,
        reward: int = REWARD,
        clues: int | None = None,
    ) -> PlayedGame:
        """A game of these guesses; `clues` are given, by default to all of them."""
        master, breaker = master or PlayerKey.new(), breaker or PlayerKey.new()
        transcript, kept = self.table.open_game(master, secret)
        opening = transcript.steps[0]
        played = PlayedGame(self, opening.step.public_signals[0], master, breaker, kept, transcript)
        played.requests.append(
            InitGame(RULES, transcript.key_set_id, reward, opening, played.consent(master, "init_game", reward))
        )
        transcript = self.table.join_game(transcript, breaker)
        consent = played.consent(breaker, "accept_game", reward)
        played.requests.append(AcceptGame(reward, transcript.steps[-1], consent))
        records: list[GameSecret] = [kept]
        for turn, guess in enumerate(guesses):
            transcript = self.table.make_guess(transcript, breaker, guess)
            played.requests.append(MakeGuess(transcript.steps[-1]))
            if clues is None or turn < clues:
                transcript = self.table.give_clue(transcript, master, records[-1], records.append)
                played.requests.append(GiveClue(transcript.steps[-1]))
        played.transcript, played.kept = transcript, records[-1]
        return played

    def referee(
        self,
        url: str,
        *,
        clock: Clock | None = None,
        terms: Terms | None = None,
        verifier: Verifier | None = None,
        create: bool = True,
        supply: int = SUPPLY,
    ) -> Referee:
        """A referee over new books (or old ones, with `create=False`)."""
        storage = self.storage(url)
        if create:
            storage.create(RefereeRecord(self.referee_key.id, 180, supply))
        terms = terms or Terms(welcome=WELCOME, allow_development_keys=True)
        return Referee(storage, {self.keys.id: self.keys}, verifier or NativeVerifier(), terms, clock)

    def storage(self, url: str) -> Storage:
        """A storage that `close` closes."""
        self._storages.append(Storage(url))
        return self._storages[-1]

    def close(self) -> None:
        """Close all storages."""
        while self._storages:
            self._storages.pop().close()


@dataclass
class PlayedMatch:
    """One match: the request of each event in order, proved beforehand. Its requests fit any referee of the world."""

    world: World
    seats: tuple[Seat, Seat]
    duel: Duel
    name: int = 0
    requests: list[Request] = field(default_factory=list)

    def consent(self, player: Player | PlayerKey, action: str, amount: int, name: int | None = None) -> Consent:
        key = player if isinstance(player, PlayerKey) else self.seats[player].key
        table = self.world.table
        return make_consent(
            table.key_set,
            table.prover,
            key,
            action,
            referee_id=self.world.referee_key.id,
            game=self.name if name is None else name,
            amount=amount,
        )

    def claim(self, player: Player, amount: int = 2 * REWARD) -> ClaimMatch:
        return ClaimMatch(self.seats[player].key.id, amount, self.consent(player, "claim_match", amount))

    def opening(self, player: Player) -> OpenCode:
        opened = self.seats[player].open_code(self.duel)
        return OpenCode(opening_signals(self.duel.boards[other(player)], opened.secret), opened.proof)


def play_match(world: World, guesses: tuple[Code, Code]) -> PlayedMatch:
    """A match that one round decides: a guess by host and guest each, at least one of them right."""
    seats = Seat(world.table, HOST, PlayerKey.new()), Seat(world.table, GUEST, PlayerKey.new())
    openings = [seat.commit(code) for seat, code in zip(seats, CODES, strict=True)]
    guests_game = world.table.join_game(openings[HOST], seats[GUEST].key)
    hosts_game = world.table.join_game(openings[GUEST], seats[HOST].key)
    played = PlayedMatch(world, seats, Duel(hosts_game, guests_game))
    played.name = openings[HOST].steps[0].step.public_signals[0]
    opening, joining, starting = openings[GUEST].steps[0], guests_game.steps[1], hosts_game.steps[1]
    key_set_id = openings[HOST].key_set_id
    played.requests = [
        OpenMatch(RULES, key_set_id, REWARD, openings[HOST].steps[0], played.consent(HOST, "open_match", REWARD)),
        JoinMatch(
            REWARD, opening, joining, played.consent(GUEST, JoinMatch.action(opening.step, joining.step), REWARD)
        ),
        StartMatch(seats[HOST].key.id, starting, played.consent(HOST, StartMatch.action(starting.step), 0)),
    ]
    while (move := next_move(played.duel.boards)) is not None:
        player, kind = move
        seat, before = seats[player], played.duel
        played.duel = seat.guess(before, guesses[player]) if kind == "make_guess" else seat.answer(before)
        moved = player if kind == "make_guess" else other(player)
        played.requests.append(PlayStep(played.duel.games[moved].steps[-1]))
    return played


def body(request: Request) -> bytes:
    """A request as it is sent."""
    return canonical_json(request.to_json())


def send(referee: Referee, played: PlayedGame, *requests: Request) -> list[str]:
    """Send requests about a game and return the answers."""
    return [
        referee.act(request.method, None if isinstance(request, InitGame) else played.game, body(request))
        for request in requests
    ]


def send_to_match(referee: Referee, played: PlayedMatch, *requests: Request) -> list[str]:
    """Send requests about a match and return the answers."""
    return [
        referee.act(request.method, None if isinstance(request, InitGame) else played.name, body(request))
        for request in requests
    ]
