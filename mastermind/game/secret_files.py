"""Files that hold secrets: a player's key, and the secret of a game.

They are made with mode 0600, refused when others can read them, and replaced in one step. With a passphrase the
content is encrypted: scrypt (RFC 7914) and ChaCha20-Poly1305 (RFC 8439) from the `cryptography` package; the
public part of the file is authenticated with it. Nothing secret is ever in a repr, a message or a log.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from mastermind.errors import InvalidInputError, SecretFileError
from mastermind.field import parse_field_element, random_field_element
from mastermind.game.circuits import player_id, solution_hash
from mastermind.rules import Code, Rules
from mastermind.zk.evidence import canonical_json, parse_json

PLAYER_FORMAT = "mastermind player 1"
SECRET_FORMAT = "mastermind game secret 1"  # noqa: S105
MAX_BYTES = 1 << 16

#: scrypt at 2^15, 8, 1 takes 32 MB and about 0.1 s: https://cheatsheetseries.owasp.org (Password Storage).
_SCRYPT_POWER, _SCRYPT_R, _SCRYPT_P = 15, 8, 1

#: Asks for the passphrase of a file.
AskPassphrase = Callable[[Path], str]


def no_passphrase(path: Path) -> str:
    """For callers that cannot ask."""
    raise SecretFileError(f"{path} is encrypted and nobody can be asked for its passphrase", path=path)


@dataclass(frozen=True)
class PlayerKey:
    """A player's secret key, a uniform field element."""

    key: int = field(repr=False)

    @classmethod
    def new(cls) -> PlayerKey:
        """Draw a key from the system's generator."""
        return cls(random_field_element())

    @cached_property
    def id(self) -> int:
        """The public player id, Poseidon(key)."""
        return player_id(self.key)

    def write(self, path: Path, passphrase: str | None = None) -> None:
        """Write a new player file. Raises SecretFileError when the file exists."""
        public = {"format": PLAYER_FORMAT, "player_id": str(self.id)}
        _create(path, public, {"key": str(self.key)}, passphrase)

    @classmethod
    def read(cls, path: Path, ask: AskPassphrase = no_passphrase) -> PlayerKey:
        """Read a player file. Raises SecretFileError."""
        public, private, _ = _read(path, PLAYER_FORMAT, ask)
        try:
            player = cls(parse_field_element(private["key"], "the key"))
            if str(player.id) != public["player_id"]:
                raise SecretFileError(f"the key in {path} does not belong to its player id", path=path)
        except (KeyError, InvalidInputError) as error:
            if isinstance(error, SecretFileError):
                raise
            raise SecretFileError(f"{path} is damaged", path=path) from error
        return player


def read_player_id(path: Path) -> int:
    """Read the public id of a player file, without the key. Raises SecretFileError."""
    data = _load(path, PLAYER_FORMAT)
    try:
        return parse_field_element(data["player_id"], "the player id")
    except (KeyError, InvalidInputError) as error:
        raise SecretFileError(f"{path} is damaged", path=path) from error


@dataclass(frozen=True)
class GameSecret:
    """What the master of one game keeps: the secret, the salt, and what has been answered.

    Attributes:
        secret: the code.
        salt: of the solution hash.
        game_id: the game in which the first clue was given; a clue in another one would be a second answer sheet
            for the same secret.
        answered: the guesses answered so far, in order. A transcript that does not continue them is refused: a
            breaker who could go back would get more clues than the rules allow.
    """

    rules: Rules
    secret: Code = field(repr=False)
    salt: int = field(repr=False)
    game_id: int | None = None
    answered: tuple[Code, ...] = ()

    def write_new(self, path: Path, master: PlayerKey, passphrase: str | None = None) -> None:
        """Write a new secret file. Raises SecretFileError when the file exists."""
        _create(path, self._public(master), self._private(), passphrase)

    def replace(self, path: Path, master: PlayerKey, ask: AskPassphrase = no_passphrase) -> None:
        """Write over an existing secret file in one step, encrypted as it was. Raises SecretFileError."""
        _, _, passphrase = _read(path, SECRET_FORMAT, ask)
        _write_over(path, _document(self._public(master), self._private(), passphrase))

    @classmethod
    def read(cls, path: Path, ask: AskPassphrase = no_passphrase) -> GameSecret:
        """Read a secret file. Raises SecretFileError."""
        public, private, _ = _read(path, SECRET_FORMAT, ask)
        try:
            rules = Rules.parse(public["rules"])
            game = private["game_id"]
            return cls(
                rules,
                secret=rules.require_code(private["secret"], "secret"),
                salt=parse_field_element(private["salt"], "the salt"),
                game_id=None if game is None else parse_field_element(game, "the game id"),
                answered=tuple(rules.require_code(guess, "guess") for guess in private["answered"]),
            )
        except (KeyError, TypeError, InvalidInputError) as error:
            raise SecretFileError(f"{path} is damaged", path=path) from error

    def _public(self, master: PlayerKey) -> dict[str, Any]:
        commitment = solution_hash(self.rules, self.secret, self.salt, master.key)
        return {"format": SECRET_FORMAT, "rules": self.rules.spelling, "solution_hash": str(commitment)}

    def _private(self) -> dict[str, Any]:
        return {
            "secret": list(self.secret),
            "salt": str(self.salt),
            "game_id": None if self.game_id is None else str(self.game_id),
            "answered": [list(guess) for guess in self.answered],
        }


def _document(public: dict[str, Any], private: dict[str, Any], passphrase: str | None) -> dict[str, Any]:
    if passphrase is None:
        return {**public, "private": private}
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    salt, nonce = secrets.token_bytes(16), secrets.token_bytes(12)
    cipher = ChaCha20Poly1305(_derive(passphrase, salt, _SCRYPT_POWER, _SCRYPT_R, _SCRYPT_P))
    return {
        **public,
        "encrypted": {
            "kdf": {"name": "scrypt", "power": _SCRYPT_POWER, "r": _SCRYPT_R, "p": _SCRYPT_P, "salt": salt.hex()},
            "cipher": {"name": "chacha20-poly1305", "nonce": nonce.hex()},
            "data": cipher.encrypt(nonce, canonical_json(private), canonical_json(public)).hex(),
        },
    }


def _derive(passphrase: str, salt: bytes, power: int, r: int, p: int) -> bytes:
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    # What in the environment is not UTF-8 comes as lone surrogates.
    return Scrypt(salt=salt, length=32, n=1 << power, r=r, p=p).derive(passphrase.encode("utf-8", "surrogateescape"))


def _read(path: Path, file_format: str, ask: AskPassphrase) -> tuple[dict[str, Any], dict[str, Any], str | None]:
    """Return the public part, the private part and the passphrase, if there is one."""
    data = _load(path, file_format)
    encrypted = data.pop("encrypted", None)
    private = data.pop("private", None)
    if (encrypted is None) == (private is None):
        raise SecretFileError(f"{path} is damaged", path=path)
    if encrypted is None:
        if not isinstance(private, dict):
            raise SecretFileError(f"{path} is damaged", path=path)
        return data, private, None

    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    try:
        kdf, cipher = encrypted["kdf"], encrypted["cipher"]
        # Other parameters could make reading as expensive as the file's author likes.
        if kdf["name"] != "scrypt" or (kdf["power"], kdf["r"], kdf["p"]) != (_SCRYPT_POWER, _SCRYPT_R, _SCRYPT_P):
            raise SecretFileError(f"{path} is encrypted in a way this version does not know", path=path)
        if cipher["name"] != "chacha20-poly1305":
            raise SecretFileError(f"{path} is encrypted in a way this version does not know", path=path)
        salt, nonce, sealed = (bytes.fromhex(text) for text in (kdf["salt"], cipher["nonce"], encrypted["data"]))
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, SecretFileError):
            raise
        raise SecretFileError(f"{path} is damaged", path=path) from error
    passphrase = ask(path)
    key = _derive(passphrase, salt, _SCRYPT_POWER, _SCRYPT_R, _SCRYPT_P)
    try:
        opened = parse_json(ChaCha20Poly1305(key).decrypt(nonce, sealed, canonical_json(data)))
    except (InvalidTag, ValueError) as error:
        raise SecretFileError(f"wrong passphrase for {path}, or the file is damaged", path=path) from error
    if not isinstance(opened, dict):
        raise SecretFileError(f"{path} is damaged", path=path)
    return data, opened, passphrase


def _load(path: Path, file_format: str) -> dict[str, Any]:
    """Read the JSON of a secret file that only its owner can read."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            mode = status.st_mode
            if status.st_nlink > 1:
                # Written over under one name, it would live on under the other with an older record of answers.
                raise SecretFileError(f"{path} has a second name (a hard link); remove one of them", path=path)
            if os.name == "posix" and mode & 0o077:
                raise SecretFileError(
                    f"others can read or write {path} (mode {stat.S_IMODE(mode):o}); chmod 600 it, and if they could "
                    "have read it, take a new one",
                    path=path,
                )
            data = parse_json(file.read(MAX_BYTES + 1), max_bytes=MAX_BYTES)
    except OSError as error:
        raise SecretFileError(f"cannot read {path}: {error.strerror}", path=path) from error
    except ValueError as error:
        if isinstance(error, SecretFileError):
            raise
        raise SecretFileError(f"{path} is damaged: not JSON", path=path) from error
    if not isinstance(data, dict) or data.get("format") != file_format:
        raise SecretFileError(f"{path} is not a file of the kind {file_format!r}", path=path)
    return data


def _create(path: Path, public: dict[str, Any], private: dict[str, Any], passphrase: str | None) -> None:
    content = json.dumps(_document(public, private, passphrase), indent=1) + "\n"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise SecretFileError(f"{path} exists; a secret file is never written over", path=path) from error
    except OSError as error:
        raise SecretFileError(f"cannot write {path}: {error.strerror}", path=path) from error
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _write_over(path: Path, document: dict[str, Any]) -> None:
    # Through a symbolic link, the file itself is replaced and not the link: there is one record of what was answered.
    path = path.resolve()
    # A temporary file has mode 0600 from the start.
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
