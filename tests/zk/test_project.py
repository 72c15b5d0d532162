"""Projects: what a `pyproject.toml` may say, and a circuit from there to a judged proof."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from mastermind.errors import (
    InvalidArtifactError,
    InvalidProjectError,
    MastermindError,
    MissingProjectError,
    MissingSampleError,
    WrongKeySetError,
)
from mastermind.sources import default_home
from mastermind.zk.artifacts import ArtifactStore
from mastermind.zk.phase1 import Phase1
from mastermind.zk.project import HOME_VARIABLE, Project
from mastermind.zk.tools import Toolchain
from tests.zk.tiny import TEMPLATE, fresh_store

FULL = """
[tool.other]
anything = 1

[tool.mastermind.zk]
home = "made"
ptau = "phase1.ptau"
accept-private-ptau = true
protocol = "plonk"

[tool.mastermind.zk.circuits.product]
source = "circuits/product.circom.j2"
parameters = { offset = 1 }
protocol = "groth16"
sample = "sample.json"
accepted-warnings = [{ text = "some warning", reason = "a test" }]

[tool.mastermind.zk.circuits.other-one]
source = "circuits/other.circom"
"""
#: y = x (x + 1).
MAIN = TEMPLATE.replace('{{ public | join(", ") }}', "y")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project without anything built."""
    monkeypatch.delenv(HOME_VARIABLE, raising=False)
    root = tmp_path / "project"
    (root / "circuits").mkdir(parents=True)
    (root / "circuits" / "product.circom.j2").write_text(MAIN, "utf-8")
    (root / "circuits" / "other.circom").write_text(MAIN.replace("{{ offset }}", "2"), "utf-8")
    (root / "sample.json").write_text('{"y": 12, "x": 3}', "utf-8")
    (root / "pyproject.toml").write_text(FULL, "utf-8")
    return root


def test_everything_that_can_be_said_is_read(root: Path) -> None:
    project = Project.find(root / "circuits")
    assert (project.root, project.home, project.ptau) == (root, root / "made", root / "phase1.ptau")
    assert (project.accept_private_ptau, project.protocol, list(project.entries)) == (
        True,
        "plonk",
        ["product", "other-one"],
    )
    spec = project.source("product")
    assert (spec.name, spec.sources, spec.template) == ("product", root, "circuits/product.circom.j2")
    assert (spec.parameters, spec.protocol) == ({"offset": 1}, "groth16")
    assert spec.accepted_warnings == (("some warning", "a test"),)
    assert spec.sample() == {"y": 12, "x": 3}
    other = project.source("other-one", parameters={"more": True}, protocol="fflonk")
    assert (other.name, other.parameters, other.protocol) == ("other-one", {"more": True}, "fflonk")
    assert project.source("other-one").protocol == "plonk"
    with pytest.raises(MissingSampleError):
        other.sample()


def test_the_path_of_a_source_means_the_circuit_that_is_described(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root / "circuits")
    assert Project.find().source("product.circom.j2") == Project.find().source("product")
    (root / "pyproject.toml").write_text(FULL.replace("other.circom", "product.circom.j2"), "utf-8")
    with pytest.raises(InvalidProjectError) as refusal:
        Project.find().source("product.circom.j2")
    assert refusal.value.field == "circuit"


BAD: Mapping[str, tuple[tuple[str, str], str]] = {
    "unknown field": (("ptau =", "ptua ="), "ptua"),
    "unknown field of a circuit": (("sample =", "smaple ="), "circuits.product.smaple"),
    "home is a number": (('home = "made"', "home = 1"), "home"),
    "home is empty": (('home = "made"', 'home = ""'), "home"),
    "flag as text": (("ptau = true", 'ptau = "true"'), "accept-private-ptau"),
    "unknown protocol": (('"plonk"', '"stark"'), "protocol"),
    "unknown protocol of a circuit": (('"groth16"', '"Groth16"'), "circuits.product.protocol"),
    "no source": (('source = "circuits/other.circom"', ""), "circuits.other-one.source"),
    "a source of another kind": (("other.circom", "other.sol"), "circuits.other-one.source"),
    "a list as parameter": (("offset = 1", "offset = [1]"), "circuits.product.parameters.offset"),
    "a fraction as parameter": (("offset = 1", "offset = 1.5"), "circuits.product.parameters.offset"),
    "a warning without reason": (('reason = "a test"', 'reason = ""'), "circuits.product.accepted-warnings"),
    "a warning as text": (
        ('[{ text = "some warning", reason = "a test" }]', '["some warning"]'),
        "circuits.product.accepted-warnings",
    ),
    "a name like a path": (("circuits.other-one]", 'circuits."../other"]'), "circuits.../other"),
    "a circuit that is no table": (
        ('[tool.mastermind.zk.circuits.other-one]\nsource = "circuits/other.circom"', "circuits.it = 1"),
        "circuits.product.circuits",
    ),
}


@pytest.mark.parametrize(("change", "field"), BAD.values(), ids=BAD)
def test_what_cannot_be_said_is_refused_by_name(root: Path, change: tuple[str, str], field: str) -> None:
    assert Project.find(root)
    assert FULL.count(change[0]) >= 1
    (root / "pyproject.toml").write_text(FULL.replace(*change, 1), "utf-8")
    with pytest.raises(InvalidProjectError) as refusal:
        Project.find(root)
    assert refusal.value.field == f"tool.mastermind.zk.{field}"


def test_a_file_that_is_no_toml_is_refused(root: Path) -> None:
    (root / "pyproject.toml").write_text("[tool", "utf-8")
    with pytest.raises(InvalidProjectError) as refusal:
        Project.find(root)
    assert refusal.value.field == "pyproject.toml"


@pytest.mark.parametrize("text", ["[tool.mastermind]\nzk = 1\n", "[tool]\nmastermind = []\n", "tool = 'zk'\n"])
def test_a_table_that_is_none_is_refused_and_not_passed_by(root: Path, text: str) -> None:
    (root / "pyproject.toml").write_text(text, "utf-8")
    with pytest.raises(InvalidProjectError) as refusal:
        Project.find(root)
    assert not isinstance(refusal.value, MissingProjectError)


def test_a_file_without_the_table_is_passed_by(root: Path) -> None:
    (root / "circuits" / "pyproject.toml").write_text("[project]\nname = 'inner'\n", "utf-8")
    assert Project.find(root / "circuits").root == root
    (root / "pyproject.toml").unlink()
    with pytest.raises(MissingProjectError):
        Project.find(root / "circuits")


def test_who_says_where_the_home_is(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Project.find(root).home == root / "made"
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "variable"))
    assert Project.find(root).home == tmp_path / "variable"
    assert Project.find(root, home=tmp_path / "given").home == tmp_path / "given"
    monkeypatch.delenv(HOME_VARIABLE)
    (root / "pyproject.toml").write_text(FULL.replace('home = "made"', ""), "utf-8")
    assert Project.find(root).home == default_home()
    assert Project.without_file().home == default_home()


def test_circuits_by_path(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project.find(root)
    (root / "circuits" / "new.circom").write_text(MAIN, "utf-8")
    spec = project.source(str(root / "circuits" / "new.circom"))
    # The nearest pyproject.toml is the root of its sources, as for a name; defaults are the project's.
    assert (spec.name, spec.sources, spec.protocol) == ("new", root, "plonk")
    monkeypatch.chdir(root / "circuits")
    assert Project.without_file().source("new.circom") == replace(spec, protocol="groth16")


@pytest.mark.parametrize("name", ["prodcut", "", "circuits/product.sol", "a b.circom"])
def test_a_circuit_that_is_none_is_refused(root: Path, name: str) -> None:
    with pytest.raises(InvalidProjectError) as refusal:
        Project.find(root).source(name)
    assert refusal.value.field == "circuit"


def test_a_missing_source_is_refused_by_name(root: Path) -> None:
    (root / "circuits" / "other.circom").unlink()
    with pytest.raises(InvalidArtifactError) as refusal:
        Project.find(root).source("other-one")
    assert refusal.value.path == root / "circuits" / "other.circom"


def test_a_source_outside_the_project_is_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.circom").write_text(MAIN, "utf-8")
    (root / "pyproject.toml").write_text(FULL.replace("circuits/other.circom", "../outside.circom"), "utf-8")
    with pytest.raises(InvalidArtifactError):
        Project.find(root).source("other-one")


def test_from_a_description_to_a_judged_proof(
    root: Path, store: ArtifactStore, toolchain: Toolchain, phase1: Phase1, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh_store(root / "made", store.home)
    (root / "pyproject.toml").write_text(FULL.replace('ptau = "phase1.ptau"', f'ptau = "{phase1.path}"'), "utf-8")
    project = Project.find(root)
    spec = project.circuit("product")
    assert spec.public_labels == ("y",)
    with pytest.raises(WrongKeySetError):
        project.load(spec)
    circuit = project.setup(spec)
    assert circuit.manifest["setup"]["phase1"]["origin"] == "private"
    monkeypatch.setenv("PATH", str(root))  # No Node from here on.
    assert project.load(project.circuit("product")) == circuit
    proved = project.prove(circuit, {"y": 20, "x": 4})
    assert project.verify(circuit, ["20"], proved.proof.to_json())
    assert not project.verify(circuit, ["21"], proved.proof.to_json())
    assert not project.verify(circuit, ["20"], {})
    witness = project.witness(spec, {"y": 20, "x": 4})
    assert (witness.outputs, witness.public, witness.private) == ({}, {"y": 20}, {"x": 4})
    assert witness.signals == {"main.y": 20, "main.x": 4}
    assert "20" not in repr(witness)

    # Changed sources have no keys; the same ones in another folder have these.
    template = root / "circuits" / "product.circom.j2"
    template.write_text(MAIN + "\n", "utf-8")
    with pytest.raises(WrongKeySetError):
        project.store.load_circuit(project.source("product"))
    template.write_text(MAIN, "utf-8")
    removed = project.store.remove_circuit(spec)
    assert circuit.folder in removed
    assert not circuit.folder.exists()
    with pytest.raises(WrongKeySetError):
        project.load(spec)
    assert project.store.remove_circuit(spec) == []


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        ('{"y": 12, "z": 3}', "z"),
        ('{"y": 13, "x": 3}', "Product in circuits/product.circom"),
        (None, "sample.json cannot be read"),
    ],
)
def test_a_sample_that_is_no_true_statement_fails_the_setup_before_there_are_keys(
    root: Path, store: ArtifactStore, phase1: Phase1, sample: str | None, said: str
) -> None:
    fresh_store(root / "made", store.home)
    (root / "pyproject.toml").write_text(FULL.replace('ptau = "phase1.ptau"', ""), "utf-8")
    (root / "sample.json").unlink()
    if sample is not None:
        (root / "sample.json").write_text(sample, "utf-8")
    project = Project.find(root)
    spec = project.circuit("product")
    steps: list[str] = []
    with pytest.raises(MastermindError, match=said):
        project.setup(spec, progress=steps.append)
    assert steps == []  # compiled before, and no step after that
    with pytest.raises(WrongKeySetError):
        project.load(spec)
