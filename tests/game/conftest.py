"""Games that many tests look at, played once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from mastermind.game.play import Table
from mastermind.game.transcript import VerifyingKeys
from mastermind.rules import Rules
from mastermind.zk.artifacts import ArtifactStore, KeySet
from mastermind.zk.prove import NativeProver
from mastermind.zk.snarkjs import SnarkjsWorker
from mastermind.zk.tools import Toolchain
from mastermind.zk.verify import NativeVerifier, ReferenceVerifier, SnarkjsVerifier, Verifier
from tests.game.games import Played, build_other_key_set, play

RULES = Rules.parse("hit-and-blow")


@pytest.fixture(scope="session", params=["native", "reference", "snarkjs"])
def verifier(request: pytest.FixtureRequest, toolchain: Toolchain) -> Iterator[Verifier]:
    """Each of the three verifiers."""
    if request.param == "snarkjs":
        with SnarkjsWorker(toolchain) as worker:
            yield SnarkjsVerifier(worker)
    else:
        yield NativeVerifier() if request.param == "native" else ReferenceVerifier()


@pytest.fixture(scope="session")
def table(hit_and_blow: KeySet, native_prover: NativeProver) -> Table:
    return Table(RULES, hit_and_blow, native_prover)


@pytest.fixture(scope="session")
def keys(table: Table) -> VerifyingKeys:
    return table.keys


@pytest.fixture(scope="session")
def short_game(table: Table) -> Played:
    """Solved in the second turn: six steps, every kind of step in them."""
    return play(table, (1, 0, 4, 7), [(5, 7, 2, 6), (1, 0, 4, 7)])


@pytest.fixture(scope="session")
def quick_game(table: Table) -> Played:
    """Solved with the first guess."""
    return play(table, (1, 0, 4, 7), [(1, 0, 4, 7)])


@pytest.fixture(scope="session")
def lost_game(table: Table) -> Played:
    """All seven attempts used up."""
    return play(table, (1, 0, 4, 7), [(5, 7, 2, 6)] * 7)


@pytest.fixture(scope="session")
def late_game(table: Table) -> Played:
    """Solved with the last attempt."""
    return play(table, (1, 0, 4, 7), [*[(5, 7, 2, 6)] * 6, (1, 0, 4, 7)])


@pytest.fixture(scope="session")
def second_game(short_game: Played) -> Played:
    """The players, code, salt and guesses of the short game; only the breaker joined again."""
    second = short_game.again(short_game.transcript.state().guesses)
    assert second.opened == short_game.opened
    assert second.transcript.state().guesses == short_game.transcript.state().guesses
    return second


@pytest.fixture(scope="session")
def classic_game(build_key_set: Callable[[Rules], KeySet], native_prover: NativeProver) -> Played:
    """Repeated colours, with the two best-known ways to count them wrongly among the guesses."""
    rules = Rules.parse("classic")
    table = Table(rules, build_key_set(rules), native_prover)
    return play(table, (1, 1, 2, 3), [(4, 1, 1, 1), (0, 0, 0, 0), (2, 1, 3, 1), (1, 1, 2, 3)])


@pytest.fixture(scope="session")
def deluxe_game(build_key_set: Callable[[Rules], KeySet], native_prover: NativeProver) -> Played:
    """The longest game of the named rules: twelve attempts of five pegs, the last one right."""
    rules = Rules.parse("deluxe")
    table = Table(rules, build_key_set(rules), native_prover)
    return play(table, (7, 0, 7, 3, 5), [*[(0, 1, 2, 3, 4)] * 11, (7, 0, 7, 3, 5)])


@pytest.fixture(scope="session")
def other_keys(store: ArtifactStore, toolchain: Toolchain, hit_and_blow: KeySet) -> KeySet:
    """Another key set for the same rules."""
    _, key_set = build_other_key_set(store, RULES)
    assert key_set.id != hit_and_blow.id
    return key_set
