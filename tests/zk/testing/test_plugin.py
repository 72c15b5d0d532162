"""The plugin as a project meets it: pytest finds it, a failing circuit fails a test, and compiling is done once."""

from __future__ import annotations

from pathlib import Path

import pytest

from mastermind.zk.artifacts import ArtifactStore
from mastermind.zk.tools import Toolchain

CIRCUIT = """pragma circom 2.2.0;
template Square() {
    signal input root;
    signal output square;
    square <== root * root;
}
component main { public [root] } = Square();
"""
TESTS = """
def test_right(circuits):
    circuits.load("square.circom").accepts({"root": 3}, {"square": 9})

def test_wrong(circuits):
    circuits.load("square.circom").accepts({"root": 3}, {"square": 8})
"""


@pytest.fixture
def project(
    pytester: pytest.Pytester, store: ArtifactStore, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> pytest.Pytester:
    """Somebody's project with one circuit and two tests of it."""
    monkeypatch.setenv("MASTERMIND_HOME", str(store.home))
    (pytester.path / "square.circom").write_text(CIRCUIT, "utf-8")
    (pytester.path / "test_square.py").write_text(TESTS, "utf-8")
    return pytester


def test_a_project_tests_its_circuit(project: pytest.Pytester) -> None:
    result = project.runpytest_inprocess()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["E * AssertionError: main.square of square is 9, not 8"])


def test_a_circuit_of_a_project_is_loaded_by_name_and_kept_at_home(
    project: pytest.Pytester, store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MASTERMIND_HOME")
    source = CIRCUIT.replace("root * root", "root * {{ factor }} * root")
    (project.path / "scaled.circom.j2").write_text(source, "utf-8")
    table = f"home = '{store.home}'\ncircuits.twice = {{ source = 'scaled.circom.j2', parameters.factor = 2 }}"
    (project.path / "pyproject.toml").write_text(f"[tool.mastermind.zk]\n{table}\n", "utf-8")
    test = f"""
from pathlib import Path

def test_twice(circuits, circuit_home):
    circuits.load("twice").accepts({{"root": 3}}, {{"square": 18}})
    assert circuit_home == Path({str(store.home)!r})
"""
    (project.path / "test_twice.py").write_text(test, "utf-8")
    project.runpytest_inprocess("test_twice.py").assert_outcomes(passed=1)


def test_circuits_are_compiled_once(
    project: pytest.Pytester, store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.runpytest_inprocess("-k", "right").assert_outcomes(passed=1, deselected=1)

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("it is compiled already")

    monkeypatch.setattr("mastermind.zk.testing.circuits.compile_circuit", forbidden)
    monkeypatch.setattr("mastermind.zk.compile.compile_source", forbidden)
    project.runpytest_inprocess("-k", "right").assert_outcomes(passed=1, deselected=1)


def test_without_a_home_compiled_circuits_are_kept_with_what_pytest_keeps(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MASTERMIND_HOME", raising=False)
    pytester.makepyfile(
        """
        def test_home(circuit_home, pytestconfig):
            assert circuit_home.is_relative_to(pytestconfig.rootpath / ".pytest_cache")
        """
    )
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


def test_only_the_plugin_needs_pytest() -> None:
    package = Path(__file__).resolve().parents[3] / "mastermind" / "zk" / "testing"
    users = {path.stem for path in package.glob("*.py") if "import pytest" in path.read_text("utf-8")}
    assert users == {"plugin"}
