"""Phase 2 of the trusted setup, through snarkjs: its single steps, and the development keys of one circuit.

A key is made by setup, one contribution with entropy from the system, and a beacon; then the whole chain is verified
from the constraints up. Setup alone leaves delta equal to gamma, under which every false statement
verifies: such a key never leaves this module.
"""

from __future__ import annotations

import json
import secrets
import tempfile
from collections.abc import Sequence
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

TIMEOUT_S = 4 * 3600.0
CONTRIBUTOR = "mastermind build"
#: The beacon value is hashed 2^10 times, the least that snarkjs takes.
BEACON_ITERATIONS_POWER = 10


#: One of the steps that `phase2.mjs` tells of.
Step = dict[str, str | int]


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
    # In a folder of their own until all is done: nothing half made is ever in `out`.
    with tempfile.TemporaryDirectory(dir=out) as temporary:
        initial, contributed, made, exported = (
            str(Path(temporary, name)) for name in ("initial.zkey", "contributed.zkey", zkey.name, verifying_key.name)
        )
        *_, refusal = do_steps(
            toolchain,
            [
                {"do": "setup", "r1cs": str(compiled.r1cs), "ptau": str(phase1.path), "zkey": initial},
                {"do": "contribute", "from": initial, "to": contributed, "name": CONTRIBUTOR},
                {"do": "beacon", "from": contributed, "to": made, "value": beacon, "power": BEACON_ITERATIONS_POWER},
                {"do": "export", "zkey": made, "vkey": exported},
                {"do": "verify", "initial": initial, "ptau": str(phase1.path), "zkey": made},
            ],
        )
        if refusal:
            raise SetupError(f"snarkjs refuses the new key of {compiled.name}: {refusal}")
        Path(made).rename(zkey)
        Path(exported).rename(verifying_key)

    header = ZkeyHeader.read(zkey)
    if [(made.name, made.beacon) for made in header.contributions] != [(CONTRIBUTOR, None), ("", beacon)]:
        raise SetupError(f"the new key of {compiled.name} has other contributions than asked")
    if not header.matches(VerifyingKey.read(verifying_key)):
        raise SetupError(f"the verifying key of {compiled.name} does not belong to its proving key")
    return CircuitKeys(zkey, verifying_key, header)


def do_steps(toolchain: Toolchain, steps: Sequence[Step]) -> list[str | None]:
    """Do steps in one process of Node and return what came of them, up to the first refusal.

    Raises:
        ToolchainError: a step failed; new files of the steps are worth nothing then.
    """
    completed = run(
        [toolchain.node, str(resources.files("mastermind.zk") / "phase2.mjs"), "--modules", toolchain.modules],
        timeout_s=TIMEOUT_S,
        stdin=json.dumps(steps).encode(),
    )
    results: list[str | None] = json.loads(completed.stdout)
    return results
