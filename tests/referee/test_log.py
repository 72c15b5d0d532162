"""The audit of a log: an honest one is accepted, and one that differs in one value is not."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mastermind.errors import MalformedEvidenceError, RejectedEvidenceError
from mastermind.referee.log import MAX_BYTES, GameLog, contract_json, read_contract
from mastermind.zk.evidence import canonical_json
from mastermind.zk.verify import NativeVerifier
from tests.referee.world import FakeClock, PlayedGame, World, send


@pytest.fixture(scope="module")
def honest(world: World, solved_game: PlayedGame, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The log of a whole game, paid out."""
    referee = world.referee(f"sqlite:///{tmp_path_factory.mktemp('log') / 'books.db'}", clock=FakeClock())
    send(referee, solved_game, *solved_game.requests, solved_game.claim(solved_game.breaker))
    log = referee.log_json(solved_game.game)
    world.close()
    return log


def audit(log: dict[str, Any], world: World) -> Any:
    return GameLog.parse(canonical_json(log)).audit(world.keys, NativeVerifier())


def test_an_honest_log_is_accepted(honest: dict[str, Any], world: World) -> None:
    contract = audit(honest, world)
    assert contract.closed
    assert contract.game.winner == "breaker"
    assert GameLog.parse(canonical_json(honest)).to_json() == honest


def test_every_beginning_of_it_is_a_log_too(honest: dict[str, Any], world: World) -> None:
    for count in range(1, len(honest["events"])):
        assert not audit({**honest, "events": honest["events"][:count]}, world).closed


def _event(number: int, change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    return lambda log: change(log["events"][number])


def _swap_proofs(log: dict[str, Any]) -> None:
    steps = [log["events"][number]["request"]["step"] for number in (2, 4)]
    steps[0]["proof"], steps[1]["proof"] = steps[1]["proof"], steps[0]["proof"]


def _drop(number: int) -> Callable[[dict[str, Any]], None]:
    def change(log: dict[str, Any]) -> None:
        del log["events"][number]
        for index, event in enumerate(log["events"]):
            event["event"] = index

    return change


def _late(log: dict[str, Any]) -> None:
    for event in log["events"][2:]:
        event["slot"] += 3


TAMPERED: dict[str, tuple[Callable[[dict[str, Any]], None], int | None, str]] = {
    "a packed state": (_event(3, lambda event: event.update(packed="1")), 3, "other_state"),
    "a slot that is earlier": (_event(3, lambda event: event.update(slot=1)), 3, "slot"),
    "a slot in the packed state": (_event(5, lambda event: event.update(slot=1_001)), 5, "other_state"),
    "a move after its slots": (_late, 2, "too_late"),
    "proofs of two guesses": (_swap_proofs, 2, "proof_rejected"),
    "a missing guess": (_drop(2), 2, "out_of_turn"),
    "a missing acceptance": (_drop(1), 1, "not_accepted"),
    "another referee": (lambda log: log.update(referee_id="5"), 0, "proof_rejected"),
    "another game": (lambda log: log.update(game="5"), 0, "proof_rejected"),
    "another stake": (_event(0, lambda event: event["request"].update(reward=11)), 0, "proof_rejected"),
    "another winner": (_event(6, lambda event: event["request"].update(player_id="5")), 6, "proof_rejected"),
    "other keys": (lambda log: log.update(key_set_id="00" * 32), None, "other keys"),
    "other rules": (lambda log: log.update(rules="4x6r10"), None, "other rules"),
    "nothing": (lambda log: log.update(events=[]), None, "empty"),
    "an event twice": (
        lambda log: log["events"].append({**log["events"][6], "event": 7}),
        7,
        "nonce",
    ),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_one_value_changed(honest: dict[str, Any], world: World, name: str) -> None:
    change, step, reason = TAMPERED[name]
    log = copy.deepcopy(honest)
    change(log)
    with pytest.raises(RejectedEvidenceError) as caught:
        audit(log, world)
    assert (caught.value.step, caught.value.reason) == (step, reason)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda log: log.update(format="mastermind transcript 1"), "format"),
        (lambda log: log.pop("game"), "game"),
        (lambda log: log.update(more=1), "more"),
        (lambda log: log.update(referee_id="01"), "referee_id"),
        (lambda log: log.update(slot_seconds=-1), "slot_seconds"),
        (lambda log: log.update(events={}), "events"),
        (_event(1, lambda event: event.pop("slot")), "events[1]"),
        (_event(1, lambda event: event.update(event=2)), "events[1].event"),
        (_event(1, lambda event: event.update(slot="9")), "events[1].slot"),
        (_event(1, lambda event: event.update(method="cheat")), "events[1].method"),
        (_event(1, lambda event: event["request"].pop("consent")), "events[1].consent"),
        (_event(1, lambda event: event.update(packed=3)), "events[1].packed"),
    ],
)
def test_a_log_that_is_none(honest: dict[str, Any], change: Callable[[dict[str, Any]], None], field: str) -> None:
    log = copy.deepcopy(honest)
    change(log)
    with pytest.raises(MalformedEvidenceError) as caught:
        GameLog.parse(canonical_json(log))
    assert caught.value.field == field


def test_a_log_file_that_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_bytes(b" " * (MAX_BYTES + 1))
    with pytest.raises(MalformedEvidenceError):
        GameLog.read(path)


def test_contracts_are_read_as_they_are_written(honest: dict[str, Any], world: World) -> None:
    for count in range(1, len(honest["events"]) + 1):
        contract = audit({**honest, "events": honest["events"][:count]}, world)
        assert read_contract(json.loads(json.dumps(contract_json(contract, 1_000)))) == contract


@pytest.mark.parametrize("change", [{"rules": "x"}, {"guesses": 1}, {"clues": [[1]]}, {"master_id": 5}, {"pot": None}])
def test_what_is_no_contract(honest: dict[str, Any], world: World, change: dict[str, Any]) -> None:
    fields = contract_json(audit(honest, world), 1_000)
    with pytest.raises(MalformedEvidenceError):
        read_contract({**fields, **change})
