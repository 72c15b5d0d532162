"""A circuit of one constraint, for tests of the toolkit that have no use for a real one, and homes to build it in."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from mastermind.field import MODULUS, random_field_element
from mastermind.zk.artifacts import MANIFEST, ArtifactStore, BuiltCircuit
from mastermind.zk.circuit import CircuitSpec, Signal
from mastermind.zk.phase1 import DEVELOPMENT_POWER

#: y = x (x + OFFSET): circuits of different offsets (other than 0) have files of equal sizes.
TEMPLATE = """pragma circom 2.2.0;

template Product(OFFSET) {
    signal input y;
    signal input x;
    y === x * (x + OFFSET);
}

component main { public [{{ public | join(", ") }}] } = Product({{ offset }});
"""


def product(folder: Path, name: str = "product", offset: int = 1, template: str = TEMPLATE) -> CircuitSpec:
    """A circuit for y = x (x + offset), y public; its template is written to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.circom.j2").write_text(template, "utf-8")

    def sample() -> Mapping[str, object]:
        return product_inputs(random_field_element(), offset)

    return CircuitSpec(
        name=name,
        sources=folder,
        template=f"{name}.circom.j2",
        parameters={"offset": offset},
        public=(Signal("y"),),
        private=(Signal("x"),),
        sample=sample,
    )


def product_inputs(x: int, offset: int = 1) -> dict[str, object]:
    return {"y": x * (x + offset) % MODULUS, "x": x}


def fresh_store(home: Path, shared: Path, *, phase1: bool = True) -> ArtifactStore:
    """A store in a new home with the npm packages of `shared`, and with its development phase 1 unless told not to.

    Both must be there already (fixtures `toolchain` and `products` see to that).
    """
    home.mkdir(parents=True)
    (home / "node").symlink_to(shared / "node")
    if phase1:
        (home / "phase1").mkdir()
        for suffix in ("ptau", "json"):
            name = f"development_{DEVELOPMENT_POWER}.{suffix}"
            shutil.copy(shared / "phase1" / name, home / "phase1")
    return ArtifactStore(home)


def copied(circuit: BuiltCircuit, folder: Path) -> BuiltCircuit:
    """The same circuit in a new folder of its own, to be tampered with."""
    shutil.copytree(circuit.folder, folder)
    return replace(circuit, folder=folder)


def sign_again(circuit: BuiltCircuit) -> BuiltCircuit:
    """Write a manifest that fits the files as they now are, as someone who tampers would, and return the circuit.

    For tests of what lies below the manifest. The verifying key stays the one that was loaded.
    """
    manifest = dict(circuit.manifest)
    manifest["files"] = {
        name: hashlib.sha256((circuit.folder / name).read_bytes()).hexdigest() for name in manifest["files"]
    }
    content = json.dumps(manifest).encode()
    (circuit.folder / MANIFEST).write_bytes(content)
    return replace(circuit, manifest=manifest, digest=hashlib.sha256(content).hexdigest())
