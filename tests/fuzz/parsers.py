"""Every parser of something from outside, as a function of bytes.

Each either raises an error of ours, or what it has read is spelled in the one way there is: written again, it is the
same. Anything else that it raises is a fault.
"""

from __future__ import annotations

import json
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mastermind.errors import MastermindError
from mastermind.game.certificate import Certificate
from mastermind.game.reveal import Reveal
from mastermind.game.transcript import Transcript
from mastermind.referee.log import GameLog
from mastermind.referee.requests import METHODS, parse_request
from mastermind.zk.artifacts import MANIFEST, read_manifest
from mastermind.zk.circuit import parse_inputs
from mastermind.zk.evidence import Proof, VerifyingKey, parse_json, parse_public_signals, public_json
from mastermind.zk.phase1 import read_power
from mastermind.zk.r1cs import Linear, R1cs, encode_witness, read_symbols, read_witness
from mastermind.zk.zkey import ZkeyHeader

#: Holds one input at a time; a manifest lies among the files that it lists.
_folder = tempfile.TemporaryDirectory(prefix="mastermind-fuzz-")
FOLDER = Path(_folder.name)


def _json(data: bytes) -> Any:
    try:
        return parse_json(data)
    except ValueError:
        return None


def _same(read: object, data: bytes) -> None:
    """JSON may be laid out in many ways; the values in it may not."""
    assert read == json.loads(data.decode("utf-8-sig")), "another spelling was accepted"


def _file(data: bytes, name: str = "input") -> Path:
    path = FOLDER / name
    path.write_bytes(data)
    return path


def proof(data: bytes) -> None:
    _same(Proof.parse(_json(data)).to_json(), data)


def public_signals(data: bytes) -> None:
    _same(public_json(parse_public_signals(_json(data))), data)


def verifying_key(data: bytes) -> None:
    fields = _json(data)
    key = VerifyingKey.parse(fields)
    # The stored pairing is ignored, whatever it is.
    assert key.to_json() == {name: value for name, value in fields.items() if name != "vk_alphabeta_12"}


def manifest(data: bytes) -> None:
    _file(data, MANIFEST)
    found, _ = read_manifest(FOLDER)
    assert found["format"] is not True


def transcript(data: bytes) -> None:
    _same(Transcript.parse(data).to_json(), data)


def certificate(data: bytes) -> None:
    _same(Certificate.parse(data).to_json(), data)


def reveal(data: bytes) -> None:
    _same(Reveal.parse(data).to_json(), data)


def referee_log(data: bytes) -> None:
    log = GameLog.parse(data)
    again = GameLog.parse(json.dumps(log.to_json()).encode())
    assert again == log


def referee_request(data: bytes) -> None:
    if data:
        method = METHODS[data[0] % len(METHODS)]
        request = parse_request(method, data[1:])
        assert parse_request(method, json.dumps(request.to_json()).encode()) == request


def inputs(data: bytes) -> None:
    _same(parse_inputs(data), data)


def r1cs(data: bytes) -> None:
    system = R1cs.read(_file(data))

    def linear(terms: Linear) -> bytes:
        parts = [struct.pack("<I", wire) + value.to_bytes(32, "little") for wire, value in terms.items()]
        return struct.pack("<I", len(parts)) + b"".join(parts)

    assert b"".join(linear(part) for row in system.constraints for part in row) in data


def symbols(data: bytes) -> None:
    found = read_symbols(_file(data))
    lines = [line.split(",") for line in data.decode().splitlines()]
    assert [(name, str(wire)) for name, wire in found.items()] == [(line[3], line[1]) for line in lines]


def witness(data: bytes) -> None:
    values = read_witness(_file(data))
    assert encode_witness(b"".join(value.to_bytes(32, "little") for value in values)) == data


def zkey(data: bytes) -> None:
    ZkeyHeader.read(_file(data))


def ptau(data: bytes) -> None:
    read_power(_file(data))


PARSERS: dict[str, Callable[[bytes], None]] = {
    parser.__name__: parser
    for parser in (
        proof, public_signals, verifying_key, manifest, transcript, certificate, reveal, referee_log, referee_request,
        inputs, r1cs, symbols, witness, zkey, ptau,
    )
}  # fmt: skip


def feed(name: str, data: bytes) -> bool:
    """Give a parser some bytes; return whether it accepts them. Raises what must not happen."""
    try:
        PARSERS[name](data)
    except MastermindError:
        return False
    return True
