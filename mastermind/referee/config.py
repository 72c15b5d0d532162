"""What a referee is run with: one folder with its key, its settings and, with SQLite, its books.

    folder/
      key.json       the referee's player key (mode 0600): whoever has it can forfeit games
      referee.json   the settings (mode 0600: the URL of a database may hold a password)
      books.db       with SQLite (mode 0600)

The verifying keys are pinned here by key set id when the folder is made.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mastermind.errors import InvalidInputError, MalformedEvidenceError, WrongKeySetError
from mastermind.game.circuits import specs
from mastermind.game.transcript import VerifyingKeys, read_bounded, read_fields
from mastermind.referee.contract import require_turn_time
from mastermind.referee.referee import Referee, Terms
from mastermind.referee.seats import proof_seconds
from mastermind.referee.storage import Storage
from mastermind.rules import Rules
from mastermind.zk.artifacts import ArtifactStore
from mastermind.zk.verify import NativeVerifier

FORMAT = "mastermind referee 1"
MAX_BYTES = 1 << 16
KEY_FILE = "key.json"
_SETTINGS_FILE = "referee.json"
_COUNTS = ("welcome", "games_per_player", "requests_per_second")


@dataclass(frozen=True)
class Settings:
    """The settings of a referee.

    Attributes:
        database: an SQLAlchemy URL.
        key_sets: key set ids by rules, spelled.
        welcome: credits that a new player has from the house.
        games_per_player: stakes that one player may have at a time.
        requests_per_second: what each address may ask each worker for; 0: no limit.
    """

    database: str
    key_sets: Mapping[str, str]
    welcome: int
    games_per_player: int
    requests_per_second: int

    @classmethod
    def read(cls, folder: Path) -> Settings:
        """Read the settings of a folder. Raises MalformedEvidenceError."""
        names = {"database", "key_sets", *_COUNTS}
        fields = read_fields(read_bounded(folder / _SETTINGS_FILE, MAX_BYTES), FORMAT, names, MAX_BYTES)
        key_sets = fields["key_sets"]
        if not isinstance(fields["database"], str) or not isinstance(key_sets, dict):
            raise MalformedEvidenceError(f"{folder / _SETTINGS_FILE} is damaged", field="database")
        for name in _COUNTS:
            if isinstance(fields[name], bool) or not isinstance(fields[name], int) or fields[name] < 0:
                raise MalformedEvidenceError(f"{name} is not a count", field=name)
        counts = {name: int(fields[name]) for name in _COUNTS}
        return cls(fields["database"], {str(rules): str(id_) for rules, id_ in key_sets.items()}, **counts)

    def write_new(self, folder: Path) -> None:
        """Write the settings of a new folder. Raises InvalidInputError when there are some."""
        path = folder / _SETTINGS_FILE
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError as error:
            raise InvalidInputError(f"{path} exists") from error
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump({"format": FORMAT, **vars(self), "key_sets": dict(self.key_sets)}, file, indent=1)
            file.write("\n")


def load_referee(settings: Settings, store: ArtifactStore, *, allow_development_keys: bool) -> Referee:
    """The referee of some settings, with exactly the keys that are pinned there.

    Raises:
        WrongKeySetError: a pinned key set is not on this machine, or all are development keys without leave.
        InvalidInputError: no books.
    """
    key_sets = {
        identifier: VerifyingKeys.of(
            store.load_key_set(spelling, specs(Rules.parse(spelling)), identifier), Rules.parse(spelling)
        )
        for spelling, identifier in settings.key_sets.items()
    }
    if not allow_development_keys and all(keys.status != "ceremony" for keys in key_sets.values()):
        raise WrongKeySetError(
            "games are staked, and all keys here are development keys, whose maker can prove anything; "
            "use keys of a ceremony, or --allow-development-keys among friends"
        )
    terms = Terms(settings.welcome, settings.games_per_player, allow_development_keys)
    return Referee(Storage(settings.database), key_sets, NativeVerifier(), terms)


def require_time_for_proofs(settings: Settings, store: ArtifactStore, slot_seconds: int) -> None:
    """Refuse turns that are too short for the proofs of any of the rules.

    Raises:
        InvalidInputError: with the length of a turn and the time of a proof.
    """
    for spelling, identifier in settings.key_sets.items():
        key_set = store.load_key_set(spelling, specs(Rules.parse(spelling)), identifier)
        require_turn_time(slot_seconds, proof_seconds(key_set))
