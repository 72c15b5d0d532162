"""The OpenAPI document against the service: schemathesis sends what it describes, and much that it does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mastermind.referee.service import create_app
from tests.referee.serving import serving
from tests.referee.world import FakeClock, PlayedGame, PlayedMatch, World, send, send_to_match

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


@pytest.mark.thorough
def test_the_service_answers_as_it_is_described(
    world: World, tmp_path: Path, solved_game: PlayedGame, won_match: PlayedMatch
) -> None:
    referee = world.referee(f"sqlite:///{tmp_path / 'books.db'}", clock=FakeClock())
    send(referee, solved_game, *solved_game.requests)
    send_to_match(referee, won_match, won_match.requests[0])
    with serving(create_app(referee)) as http:
        found = subprocess.run(
            [
                Path(sys.executable).with_name("schemathesis"), "run", f"{http.base_url}/openapi.json",
                "--phases", "examples,coverage,fuzzing", "--max-examples", "2", "--seed", "1",
                "--checks", CHECKS, "--exclude-path", "/games/{game}/events",
            ],
            cwd=tmp_path, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
    world.close()
    assert found.returncode == 0, found.stdout[-6000:] + found.stderr[-2000:]
