"""Circuits with outputs, and signals found in the compiler's output: names, sizes, kinds and their order."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from mastermind.errors import CompileError, InvalidArtifactError, InvalidSignalsError, ProofSelfCheckError
from mastermind.field import MODULUS
from mastermind.zk.artifacts import ArtifactStore, BuiltCircuit
from mastermind.zk.circuit import CircuitSpec, Signal, parse_inputs
from mastermind.zk.compile import CompiledCircuit, require_signals
from mastermind.zk.discover import circuit_at, discover
from mastermind.zk.interface import Interface
from mastermind.zk.phase1 import Phase1
from mastermind.zk.prove import NativeProver, SnarkjsProver, self_test
from mastermind.zk.snarkjs import SnarkjsWorker
from mastermind.zk.tools import Toolchain
from mastermind.zk.verify import NativeVerifier
from tests.zk.tiny import fresh_store

#: Every kind and shape, public inputs declared in another order than `public` lists them. `rest` has no wire: it is
#: a sum of others.
SHAPES = """pragma circom 2.2.0;

include "circomlib/circuits/comparators.circom";
include "lib/square.circom";

template Shapes(N) {
    signal input grid[2][N];
    signal input first;
    signal input rest;
    signal input one[1];
    signal input last;
    signal output squares[2];
    signal output equal;

    component square[2];
    for (var i = 0; i < 2; i++) {
        square[i] = Square();
        square[i].a <== grid[i][0];
        squares[i] <== square[i].b + first * one[0];
    }
    component isEqual = IsEqual();
    isEqual.in <== [grid[0][1], grid[1][N - 1]];
    equal <== isEqual.out;
    signal sum <== grid[0][2] + rest;
    sum === last * grid[1][1];
}

component main { public [last, first] } = Shapes({{ columns }});
"""
SQUARE = """pragma circom 2.2.0;

template Square() {
    signal input a;
    signal output b <== a * a;
}
"""
#: A bus on the main component: its parts are signals of their own.
BUS = """pragma circom 2.2.0;

bus Point() { signal x; signal y[2]; }

template Scale() {
    input Point() point;
    signal input factor;
    output Point() scaled;
    scaled.x <== point.x * factor;
    scaled.y[0] <== point.y[0] * factor;
    scaled.y[1] <== point.y[1] * factor;
}

component main { public [factor] } = Scale();
"""

OUTPUTS = (Signal("squares", size=2), Signal("equal"))
PUBLIC = (Signal("first"), Signal("last"))
PRIVATE = (Signal("grid", size=(2, 3)), Signal("rest"), Signal("one", size=1))
#: squares = (2^2, 5^2) + 3 * 1; grid[0][1] = grid[1][2]; grid[0][2] + rest = last * grid[1][1].
INPUTS = {"grid": [[2, 7, 4], [5, 6, 7]], "first": 3, "rest": 8, "one": [1], "last": 2}
SIGNALS = (7, 28, 1, 3, 2)


def shapes(folder: Path) -> CircuitSpec:
    """The circuit as somebody has it who has only its files."""
    (folder / "lib").mkdir(parents=True)
    (folder / "lib" / "square.circom").write_text(SQUARE, "utf-8")
    (folder / "shapes.circom.j2").write_text(SHAPES, "utf-8")
    return circuit_at(folder / "shapes.circom.j2", root=folder, parameters={"columns": 3}, sample=lambda: INPUTS)


@pytest.fixture(scope="module")
def built(
    store: ArtifactStore, phase1: Phase1, tmp_path_factory: pytest.TempPathFactory
) -> tuple[ArtifactStore, BuiltCircuit]:
    folder = tmp_path_factory.mktemp("shapes")
    home = fresh_store(folder / "home", store.home)
    spec = discover(shapes(folder / "src"), home.home)
    return home, home.build_key_set("shapes", [spec], self_test)["shapes"]


def test_names_sizes_and_kinds_are_found(built: tuple[ArtifactStore, BuiltCircuit]) -> None:
    _, circuit = built
    spec = circuit.spec
    assert (spec.name, spec.outputs, spec.public, spec.private) == ("shapes", OUTPUTS, PUBLIC, PRIVATE)
    assert spec.public_labels == ("squares[0]", "squares[1]", "equal", "first", "last")
    assert spec.private[0].labels[2:4] == ("grid[0][2]", "grid[1][0]")
    assert all(signal.bound == MODULUS for signal in (*spec.outputs, *spec.public, *spec.private))


def test_what_was_found_is_found_again_without_node(
    built: tuple[ArtifactStore, BuiltCircuit], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, circuit = built
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shutil.which("node") is None
    again = discover(shapes(tmp_path / "src"), store.home)
    assert replace(again, sources=circuit.spec.sources) == circuit.spec
    assert store.load_key_set("shapes", [again])["shapes"] == circuit


def test_other_sources_are_looked_at_again(built: tuple[ArtifactStore, BuiltCircuit], tmp_path: Path) -> None:
    store, _ = built
    spec = shapes(tmp_path / "src")
    changed = SHAPES.replace("public [last, first]", "public [last]")
    (tmp_path / "src" / "shapes.circom.j2").write_text(changed, "utf-8")
    assert discover(spec, store.home).public == (Signal("last"),)


def test_the_parts_of_a_bus_are_signals(built: tuple[ArtifactStore, BuiltCircuit], tmp_path: Path) -> None:
    (tmp_path / "bus.circom").write_text(BUS, "utf-8")
    spec = discover(circuit_at(tmp_path / "bus.circom"), built[0].home)
    assert spec.outputs == (Signal("scaled.x"), Signal("scaled.y", size=2))
    assert spec.public == (Signal("factor"),)
    assert spec.private == (Signal("point.x"), Signal("point.y", size=2))


@pytest.mark.parametrize("kind", ["native", "snarkjs"])
def test_outputs_come_first_among_the_public_signals(
    built: tuple[ArtifactStore, BuiltCircuit], snarkjs_worker: SnarkjsWorker, kind: str
) -> None:
    _, circuit = built
    prover = NativeProver() if kind == "native" else SnarkjsProver(snarkjs_worker)
    proved = prover.prove(circuit, INPUTS)
    assert proved.public_signals == SIGNALS
    verifier = NativeVerifier()
    assert verifier.verify(circuit.verifying_key, SIGNALS, proved.proof)
    for index in range(len(SIGNALS)):
        forged = tuple(signal + (at == index) for at, signal in enumerate(SIGNALS))
        assert not verifier.verify(circuit.verifying_key, forged, proved.proof)


def test_an_output_is_not_asked_for(built: tuple[ArtifactStore, BuiltCircuit]) -> None:
    _, circuit = built
    assert circuit.spec.check_inputs(INPUTS)["grid"] == [2, 7, 4, 5, 6, 7]
    with pytest.raises(InvalidSignalsError) as refusal:
        circuit.spec.check_inputs({**INPUTS, "equal": 1})
    assert refusal.value.signal == "equal"


def test_a_proof_about_other_public_inputs_is_not_handed_out(
    built: tuple[ArtifactStore, BuiltCircuit], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, circuit = built
    monkeypatch.setattr(CircuitSpec, "public_inputs", lambda *_: (4, 2))
    with pytest.raises(ProofSelfCheckError) as refusal:
        NativeProver().prove(circuit, INPUTS)
    assert "public inputs" in str(refusal.value)


@pytest.mark.parametrize(
    "grid",
    [[2, 7, 4, 5, 6, 7], [[2, 7, 4]], [[2, 7], [5, 6, 7]], [[2, 7, 4], 5], [[2, 7, [4]], [5, 6, 7]]],
    ids=["flat", "a row less", "a short row", "no row", "a list too deep"],
)
def test_an_array_of_another_shape_is_refused(built: tuple[ArtifactStore, BuiltCircuit], grid: object) -> None:
    _, circuit = built
    assert circuit.spec.check_inputs(INPUTS)
    with pytest.raises(InvalidSignalsError) as refusal:
        circuit.spec.check_inputs({**INPUTS, "grid": grid})
    assert refusal.value.signal == "grid"


def test_a_large_bare_integer_in_a_nested_list_is_refused() -> None:
    assert parse_inputs('{"grid": [[1, 9007199254740991]]}') == {"grid": [[1, 2**53 - 1]]}
    with pytest.raises(InvalidSignalsError) as refusal:
        parse_inputs('{"grid": [[1, 9007199254740992]]}')
    assert refusal.value.signal == "grid"


def test_a_specification_with_other_outputs_is_refused(built: tuple[ArtifactStore, BuiltCircuit]) -> None:
    _, circuit = built
    compiled = CompiledCircuit(circuit.spec.name, circuit.folder)
    require_signals(circuit.spec, compiled)
    for wrong, reason in (
        (replace(circuit.spec, outputs=(), public=(*OUTPUTS, *PUBLIC)), "outputs differ"),
        (replace(circuit.spec, outputs=OUTPUTS[:1]), "public signals differ"),
        (replace(circuit.spec, public=PUBLIC[::-1]), "public signals differ"),
    ):
        with pytest.raises(CompileError) as refusal:
            require_signals(wrong, compiled)
        assert refusal.value.reason == reason


@pytest.mark.parametrize(
    ("line", "other"),
    [
        (1, "1,1,3,main.squares[1]"),
        (1, "2,1,3,main.squares[0]"),
        (1, "1,2,3,main.squares[0]"),
        (1, "1,1,3,squares[0]"),
        (1, "1,1,main.squares[0]"),
        (9, ""),
    ],
)
def test_a_symbol_file_that_does_not_fit_is_refused(
    built: tuple[ArtifactStore, BuiltCircuit], tmp_path: Path, line: int, other: str
) -> None:
    _, circuit = built
    lines = circuit.sym.read_text("utf-8").splitlines()
    copy = tmp_path / "shapes.sym"
    copy.write_text("\n".join(lines), "utf-8")
    assert Interface.read(circuit.r1cs, copy) == Interface(OUTPUTS, PUBLIC, PRIVATE)
    lines[line - 1 :] = [other, *lines[line:]] if other else []
    copy.write_text("\n".join(lines), "utf-8")
    with pytest.raises(InvalidArtifactError) as refusal:
        Interface.read(circuit.r1cs, copy)
    assert refusal.value.path == copy


def test_the_root_of_a_source_is_the_nearest_marked_folder(tmp_path: Path) -> None:
    source = tmp_path / "circuits" / "main" / "it.circom"
    source.parent.mkdir(parents=True)
    source.touch()
    assert circuit_at(source, root=source.parent).template == "it.circom"
    (tmp_path / "package.json").touch()
    spec = circuit_at(source)
    assert (spec.name, spec.sources, spec.template) == ("it", tmp_path, "circuits/main/it.circom")
    for bad in (source.with_name("missing.circom"), tmp_path / "package.json"):
        with pytest.raises(InvalidArtifactError) as refusal:
            circuit_at(bad)
        assert refusal.value.path == bad
    with pytest.raises(InvalidArtifactError):
        circuit_at(source, root=tmp_path / "other")


def test_a_template_that_wants_public_names_is_refused_when_nobody_knows_them(
    tmp_path: Path, toolchain: Toolchain
) -> None:
    (tmp_path / "it.circom.j2").write_text("component main { public [{{ public | join }}] } = It();\n", "utf-8")
    with pytest.raises(InvalidArtifactError) as refusal:
        discover(circuit_at(tmp_path / "it.circom.j2"), tmp_path / "home")
    assert "public" in str(refusal.value)
