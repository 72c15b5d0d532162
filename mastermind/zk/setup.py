"""Phase 2 of the trusted setup for one circuit, through snarkjs.

A key is made by setup, one contribution with entropy from the system, and a beacon; then the whole chain is verified
from the constraints up (`phase2.mjs`). Setup alone leaves delta equal to gamma, under which every false statement
verifies: such a key never leaves this module.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from mastermind.errors import SetupError
from mastermind.zk.compile import CompiledCircuit
from mastermind.zk.evidence import VerifyingKey
from mastermind.zk.phase1 import Phase1
from mastermind.zk.progress import Progress, silent
from mastermind.zk.tools import Toolchain, run
from mastermind.zk.zkey import ZkeyHeader

TIMEOUT_S = 3600.0
CONTRIBUTOR = "mastermind build"
#: The beacon value is hashed 2^10 times, the least that snarkjs takes.
BEACON_ITERATIONS_POWER = 10


@dataclass(frozen=True)
class CircuitKeys:
    """The keys of one circuit: `<name>.zkey` and `verification_key.json` in one folder."""

    zkey: Path
    verifying_key: Path
    header: ZkeyHeader


def make_keys(
    compiled: CompiledCircuit,
    domain_power: int,
    phase1: Phase1,
    toolchain: Toolchain,
    out: Path,
    progress: Progress = silent,
) -> CircuitKeys:
    """Make the keys of a compiled circuit in the folder `out`.

    Raises:
        Phase1TooSmallError: known before any tool runs.
        SetupError: the finished key is not right.
        ToolchainError: snarkjs failed.
    """
    phase1.require(domain_power, compiled.name)
    zkey, verifying_key = out / f"{compiled.name}.zkey", out / "verification_key.json"
    progress(f"{compiled.name}: phase 2")
    beacon = secrets.token_hex(32)
    completed = run(
        [
            *(toolchain.node, str(resources.files("mastermind.zk") / "phase2.mjs"), "--modules", toolchain.modules),
            *("--r1cs", compiled.r1cs, "--ptau", phase1.path, "--zkey", zkey, "--vkey", verifying_key),
            *("--name", CONTRIBUTOR, "--beacon", beacon, "--beacon-power", str(BEACON_ITERATIONS_POWER)),
        ],
        timeout_s=TIMEOUT_S,
    )
    if completed.stdout.split() != ['{"verified":true}']:
        raise SetupError(f"snarkjs refuses the new key of {compiled.name}")

    header = ZkeyHeader.read(zkey)
    if [(made.name, made.beacon) for made in header.contributions] != [(CONTRIBUTOR, None), ("", beacon)]:
        raise SetupError(f"the new key of {compiled.name} has other contributions than asked")
    if not header.matches(VerifyingKey.read(verifying_key)):
        raise SetupError(f"the verifying key of {compiled.name} does not belong to its proving key")
    return CircuitKeys(zkey, verifying_key, header)
