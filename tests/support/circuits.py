"""Compiled circuits for tests: each compiled once, in two builds, and kept under the checkout's `build/`."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path

from filelock import FileLock

from mastermind.rules import Rules
from mastermind.sources import circuits_dir
from mastermind.zk.circuit import CircuitSpec, Signal
from mastermind.zk.compile import OPTIONS, CompiledCircuit, compile_circuit
from mastermind.zk.r1cs import R1cs, read_symbols
from mastermind.zk.render import RenderedCircuit, render
from mastermind.zk.tools import CIRCOM_VERSION, Toolchain
from mastermind.zk.witness import WitnessCalculator
from tests.support.solver import Solver
from tests.support.source import Source


class Build(Enum):
    """How a circuit is compiled."""

    #: As it ships.
    SHIPPING = OPTIONS
    #: Every signal keeps its wire and every constraint its place.
    OPEN = ("--O0", "--inspect")


@dataclass(frozen=True, eq=False)
class Circuit:
    """One build of one circuit."""

    spec: CircuitSpec
    build: Build
    rendered: RenderedCircuit
    compiled: CompiledCircuit

    @cached_property
    def source(self) -> Source:
        return Source(self.rendered)

    @cached_property
    def r1cs(self) -> R1cs:
        return R1cs.read(self.compiled.r1cs)

    @cached_property
    def solver(self) -> Solver:
        return Solver(self.r1cs)

    @cached_property
    def calculator(self) -> WitnessCalculator:
        return WitnessCalculator(self.compiled.wasm.read_bytes(), self.spec.name)

    @cached_property
    def wires(self) -> dict[str, int]:
        """Wire by full signal name, for the signals that have one."""
        return {name: wire for name, wire in read_symbols(self.compiled.sym).items() if wire >= 0}

    @cached_property
    def names(self) -> dict[int, str]:
        """A full signal name for each wire but the constant."""
        return {wire: name for name, wire in reversed(self.wires.items())}

    @cached_property
    def hints(self) -> tuple[str, ...]:
        """The signals assigned with `<--` that have a wire, in the order in which a prover would choose them."""
        return tuple(sorted(filter(self.source.is_hint, self.wires), key=_hint_order))

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The full names of all inputs, public ones first."""
        return tuple(f"main.{label}" for signal in (*self.spec.public, *self.spec.private) for label in signal.labels)

    @cached_property
    def public(self) -> tuple[str, ...]:
        """The full names of the public signals, in order."""
        return tuple(f"main.{label}" for label in self.spec.public_labels)


#: Hints that others depend on come first; one that is not listed comes last.
_HINTS = ("played", "guess", "pegs", "lowProduct", "rest", "passed", "inverse")


def _hint_order(signal: str) -> int:
    name = signal.rpartition(".")[2].partition("[")[0]
    return _HINTS.index(name) if name in _HINTS else len(_HINTS)


def signal_names(name: str, size: int | None) -> list[str]:
    """The full names of an input: `main.salt`, or `main.secret[0]`, `main.secret[1]`, ..."""
    return [f"main.{name}"] if size is None else [f"main.{name}[{index}]" for index in range(size)]


class Bench:
    """Compiles circuits, or finds them compiled, and keeps them for the session. Safe for parallel test runs."""

    def __init__(self, toolchain: Toolchain, folder: Path) -> None:
        self.toolchain = toolchain
        self._folder = folder
        self._circuits: dict[str, Circuit] = {}

    def render(self, spec: CircuitSpec) -> RenderedCircuit:
        return render(spec, self.toolchain.modules / "circomlib" / "circuits")

    def circuit(self, spec: CircuitSpec, build: Build = Build.SHIPPING) -> Circuit:
        """One build of a circuit."""
        rendered = self.render(spec)
        recipe = [rendered.digests, rendered.main, spec.name, build.value, CIRCOM_VERSION]
        key = hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:32]
        if key not in self._circuits:
            target = self._folder / key
            self._folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self._folder / f"{key}.lock"):
                if not target.is_dir():
                    with tempfile.TemporaryDirectory(dir=self._folder) as temporary:
                        compile_circuit(spec, rendered, self.toolchain, Path(temporary) / "made", build.value)
                        (Path(temporary) / "made").rename(target)
            self._circuits[key] = Circuit(spec, build, rendered, CompiledCircuit(spec.name, target))
        return self._circuits[key]

    def circuits(self, wanted: Iterable[tuple[CircuitSpec, Build]]) -> list[Circuit]:
        """Several at once, compiled side by side."""
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            return list(pool.map(lambda pair: self.circuit(*pair), wanted))


def legal_code_part(folder: Path, rules: Rules) -> CircuitSpec:
    """`LegalCode` alone: public pegs, nothing else."""
    body = 'include "../lib/code.circom";\ncomponent main { public [pegs] } = LegalCode({{ pegs }}, {{ colours }});\n'
    return part_spec(folder, rules, "legal_code", (Signal("pegs", size=rules.pegs),), body)


def score_part(folder: Path, rules: Rules) -> CircuitSpec:
    """`Score` alone: it trusts its two codes to be legal."""
    body = (
        'include "../lib/score.circom";\n'
        "component main { public [secret, guess] } = Score({{ pegs }}, {{ colours }});\n"
    )
    codes = (Signal("secret", size=rules.pegs), Signal("guess", size=rules.pegs))
    return part_spec(folder, rules, "score", codes, body, outputs=(Signal("hits"), Signal("blows")))


def part_spec(
    folder: Path, rules: Rules, name: str, public: Sequence[Signal], body: str, *, outputs: Sequence[Signal] = ()
) -> CircuitSpec:
    """A circuit made for a test, on top of the templates in `circuits/lib`.

    Args:
        folder: where its sources may be put.
        rules: give the templates their parameters.
        name: of the circuit.
        public: its public inputs.
        body: Jinja source after the pragma.
        outputs: its outputs.
    """
    sources = folder / f"{name}-{rules.spelling}"
    (sources / "main").mkdir(parents=True, exist_ok=True)
    library = sources / "lib"
    if not library.exists():
        library.symlink_to(circuits_dir() / "lib")
    (sources / "main" / f"{name}.circom.j2").write_text(f"pragma circom 2.2.0;\n\n{body}", "utf-8")

    return CircuitSpec(
        name=name,
        sources=sources,
        template=f"main/{name}.circom.j2",
        parameters={
            "pegs": rules.pegs,
            "colours": rules.colours,
            "repeats": rules.repeats,
            "peg_bits": rules.peg_bits,
        },
        public=tuple(public),
        private=(),
        outputs=tuple(outputs),
    )
