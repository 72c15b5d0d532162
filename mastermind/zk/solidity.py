"""Proofs in Ethereum contracts: verifier contracts and the arguments of their `verifyProof`.

The Groth16 contract is ours (`groth16_verifier.sol.j2`); its `verifyProof` takes what snarkjs's takes. It checks
exactly as many public signals as there are against r, and its array of them has a fixed size. Those of PLONK and
FFLONK come from snarkjs's templates, which check no public signal: a prover could put s + r where s was meant, and use
up one thing twice. The checks are added here.

An Ethereum precompile takes the i-part of an element of F_q[i] first, snarkjs's JSON has it last; the one place where
they are swapped is here.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import jinja2

from mastermind.errors import InvalidInputError, SetupError, WrongProtocolError
from mastermind.field import COORDINATE_MODULUS, MODULUS
from mastermind.zk.artifacts import BuiltCircuit
from mastermind.zk.curve import G2Point
from mastermind.zk.evidence import Proof, VerifyingKey
from mastermind.zk.tools import Toolchain, run
from mastermind.zk.universal import UniversalProof

TIMEOUT_S = 600.0
_UNIVERSAL_FUNCTION = re.compile(
    r"function verifyProof\(\w+\[24\] calldata \w+, uint256\[(?P<count>\d+)\] calldata (?P<name>\w+)\) "
    r"public view returns \(bool\) \{"
)
_UNIVERSAL_CONTRACT = re.compile(r"^contract \w+ \{", re.MULTILINE)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def groth16_verifier(key: VerifyingKey, contract: str, labels: Sequence[str]) -> str:
    """Return the source of a contract that verifies proofs under `key`.

    Args:
        contract: its name.
        labels: of the public signals, for its comments.

    Raises:
        InvalidInputError: `contract` is no name for one.
        ValueError: there are more or fewer labels than public signals.
    """
    _require_name(contract)
    if len(labels) != key.public_count:
        raise ValueError("a label for each public signal is needed")
    template = (resources.files("mastermind.zk") / "groth16_verifier.sol.j2").read_text("utf-8")
    environment = jinja2.Environment(  # noqa: S701 (Solidity, not HTML)
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    return environment.from_string(template).render(
        contract=contract,
        labels=labels,
        r=MODULUS,
        q=COORDINATE_MODULUS,
        digest=key.digest,
        alpha=key.alpha,
        beta=_swapped(key.beta),
        gamma=_swapped(key.gamma),
        delta=_swapped(key.delta),
        ic=key.ic,
    )


def universal_verifier(circuit: BuiltCircuit, contract: str, toolchain: Toolchain) -> str:
    """Return snarkjs's contract for a PLONK or FFLONK circuit, with a check of each public signal against r.

    Raises:
        InvalidInputError: `contract` is no name for one.
        WrongProtocolError: it is a Groth16 circuit.
        SetupError: snarkjs's contract is not as expected, and cannot be made safe.
        ToolchainError: snarkjs failed.
    """
    _require_name(contract)
    if circuit.spec.protocol == "groth16":
        raise WrongProtocolError(f"{circuit.spec.name} was set up for groth16, which has a contract of its own")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "verifier.sol"
        run([*toolchain.snarkjs, "zkey", "export", "solidityverifier", circuit.zkey, path], timeout_s=TIMEOUT_S)
        source = path.read_text("utf-8")
    found = list(_UNIVERSAL_FUNCTION.finditer(source))
    named = list(_UNIVERSAL_CONTRACT.finditer(source))
    if len(found) != 1 or int(found[0]["count"]) != circuit.universal_key.public_count or len(named) != 1:
        raise SetupError(f"snarkjs's {circuit.spec.protocol} contract is another than expected")
    checks = "".join(
        f"\n        if ({found[0]['name']}[{index}] >= {MODULUS}) return false;"
        for index in range(circuit.universal_key.public_count)
    )
    at = found[0].end()
    return f"{source[: named[0].start()]}contract {contract} {{{source[named[0].end() : at]}{checks}{source[at:]}"


def calldata(public_signals: Sequence[int], proof: Proof | UniversalProof) -> str:
    """Return the arguments of `verifyProof` as JSON arrays, separated by commas: numbers of 32 bytes in hexadecimal."""
    arguments: list[object]
    if isinstance(proof, Proof):
        b = [[_word(part) for part in pair] for pair in _swapped(proof.b)]
        arguments = [[_word(part) for part in proof.a], b, [_word(part) for part in proof.c]]
    else:
        coordinates = [coordinate for point in proof.commitments for coordinate in point]
        arguments = [[_word(part) for part in (*coordinates, *proof.evaluations)]]
    arguments.append([_word(signal) for signal in public_signals])
    return ",".join(json.dumps(argument, separators=(",", ":")) for argument in arguments)


def _require_name(contract: str) -> None:
    if _IDENTIFIER.fullmatch(contract) is None:
        raise InvalidInputError(f"{contract[:40]!r} is no name for a contract")


def _swapped(point: G2Point) -> tuple[tuple[int, int], tuple[int, int]]:
    """A point as precompiles take it: the i-part of each coordinate first."""
    return (point.x[1], point.x[0]), (point.y[1], point.y[0])


def _word(value: int) -> str:
    return f"0x{value:064x}"
