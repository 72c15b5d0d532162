"""Rendering and compiling: strict templates, one result, and no warning that nobody has looked at."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from mastermind.errors import CompileError, InvalidArtifactError, ToolFailedError, WitnessError
from mastermind.zk import compile
from mastermind.zk.circom import PackagedCompiler
from mastermind.zk.circuit import CircuitSpec
from mastermind.zk.compile import compile_circuit
from mastermind.zk.r1cs import R1cs
from mastermind.zk.render import own_digests, render
from mastermind.zk.tools import Completed, Toolchain
from mastermind.zk.witness import WitnessCalculator
from tests.zk.tiny import TEMPLATE, product


@pytest.fixture(scope="module")
def circomlib(toolchain: Toolchain) -> Path:
    return toolchain.modules / "circomlib" / "circuits"


def with_line(line: str) -> str:
    """The template with one more line in it, which is line 6."""
    assert TEMPLATE.splitlines()[4] == "    signal input x;"
    return TEMPLATE.replace("    signal input x;\n", f"    signal input x;\n    {line}\n")


def test_rendering_is_deterministic_and_complete(circomlib: Path, tmp_path: Path) -> None:
    first, second = (render(product(tmp_path / name), circomlib) for name in ("one", "two"))
    assert first == second
    assert set(first.files) == {"product.circom"}
    assert "Product(1)" in first.files["product.circom"]
    assert "{" + "{" not in first.files["product.circom"]
    assert first.digests == own_digests(product(tmp_path / "three"))


def test_parameters_and_templates_decide_the_digests(tmp_path: Path) -> None:
    digests = own_digests(product(tmp_path / "one"))
    assert own_digests(product(tmp_path / "two", offset=2)) != digests
    assert own_digests(product(tmp_path / "three", template=TEMPLATE + "\n")) != digests


@pytest.mark.parametrize(
    "change",
    [
        ("{{ offset }}", "{{ ofset }}"),
        ("{{ offset }}", "{{ offset"),
        ("{{ offset }}", "{% if offset %}"),
        ("{{ offset }}", "{{ offset.__class__.__mro__ }}"),
        ("{{ offset }}", "{% include '../outside.circom' %}"),
        ("pragma circom 2.2.0;", 'include "missing.circom";'),
        ("pragma circom 2.2.0;", 'include "circomlib/missing.circom";'),
        ("pragma circom 2.2.0;", 'include "../outside.circom";'),
        ("pragma circom 2.2.0;", 'include "/etc/hostname";'),
    ],
    ids=str,
)
def test_a_template_that_does_not_render_is_refused(circomlib: Path, tmp_path: Path, change: tuple[str, str]) -> None:
    (tmp_path / "outside.circom").write_text("", "utf-8")
    assert render(product(tmp_path / "good"), circomlib)
    assert change[0] in TEMPLATE
    with pytest.raises(InvalidArtifactError):
        render(product(tmp_path / "src", template=TEMPLATE.replace(*change)), circomlib)


def test_a_parameter_that_no_template_uses_is_refused(circomlib: Path, tmp_path: Path) -> None:
    spec = product(tmp_path / "src")
    misspelled = replace(spec, parameters={**spec.parameters, "ofset": 3})
    with pytest.raises(InvalidArtifactError, match="ofset"):
        render(misspelled, circomlib)
    # It may be used by what the main file includes, or in a branch that is not taken.
    (tmp_path / "src" / "lib.circom.j2").write_text("// {% if false %}{{ ofset }}{% endif %}", "utf-8")
    main = tmp_path / "src" / spec.template
    main.write_text(main.read_text("utf-8").replace("template P", 'include "lib.circom";\ntemplate P'), "utf-8")
    assert "lib.circom" in render(misspelled, circomlib).files


def test_a_missing_template_is_refused_by_name(circomlib: Path, tmp_path: Path) -> None:
    spec = product(tmp_path / "src")
    (tmp_path / "src" / spec.template).unlink()
    with pytest.raises(InvalidArtifactError) as refusal:
        render(spec, circomlib)
    assert refusal.value.path.name == "product.circom"


@pytest.mark.parametrize(
    "line",
    [
        "signal a <== nothing;",
        "signal a",
        "signal a <-- x * x + 1;",  # CIR-3: assigned, and constrained by nothing
        "signal a;",
    ],
)
def test_cir_3_errors_and_warnings_fail_the_build_and_name_the_line(
    toolchain: Toolchain, circomlib: Path, tmp_path: Path, line: str
) -> None:
    spec = product(tmp_path / "src", template=with_line(line))
    with pytest.raises(CompileError) as failure:
        compile_circuit(spec, render(spec, circomlib), toolchain, tmp_path / "out")
    assert failure.value.reason
    # A missing semicolon shows only on the next line; unused signals are reported by template.
    if failure.value.line is not None:
        assert failure.value.file == "product.circom"
        assert failure.value.line in (6, 7)
    else:
        assert "Product" in failure.value.reason
    assert list((tmp_path / "out").iterdir()) == []


def compile_error(spec: CircuitSpec, toolchain: Toolchain, circomlib: Path, out: Path) -> CompileError:
    with pytest.raises(CompileError) as failure:
        compile_circuit(spec, render(spec, circomlib), toolchain, out)
    return failure.value


def test_an_error_names_what_it_is_about(toolchain: Toolchain, circomlib: Path, tmp_path: Path) -> None:
    spec = product(tmp_path / "src", template=with_line("signal a <== nothing + 1;"))
    error = compile_error(spec, toolchain, circomlib, tmp_path / "out")
    assert error.reason == "Undeclared symbol (`nothing`: Using unknown symbol)"


def test_cir_3_a_hint_accepts_one_assignment_and_no_other(
    toolchain: Toolchain, circomlib: Path, tmp_path: Path
) -> None:
    one, other = "signal a <-- x + 1; a * x === y;", "signal a <-- x + 2; a * x === y;"
    spec = product(tmp_path / "src", template=with_line(one))
    hint = str(compile_error(spec, toolchain, circomlib, tmp_path / "out"))
    found = re.search(r"text = '(.*)'", hint)
    assert found is not None
    accepted = ((found[1], "a test"),)
    listed = replace(spec, accepted_warnings=accepted)
    assert compile_circuit(listed, render(listed, circomlib), toolchain, tmp_path / "out").r1cs.is_file()
    changed = replace(product(tmp_path / "src", template=with_line(other)), accepted_warnings=accepted)
    assert "x + 2" in compile_error(changed, toolchain, circomlib, tmp_path / "other").reason


def test_a_refusal_within_circomlib_leads_to_ones_own_line(
    toolchain: Toolchain, circomlib: Path, tmp_path: Path
) -> None:
    line = "signal bits[2] <== Num2Bits(2)(x);\n    _ <== Num2Bits(2)(y);"
    template = 'include "circomlib/circuits/bitify.circom";\n'.join(with_line(line).split("\n\n", 1))
    spec = product(tmp_path / "src", template=template)
    compiled = compile_circuit(spec, render(spec, circomlib), toolchain, tmp_path / "out")
    calculator = WitnessCalculator(compiled.wasm.read_bytes(), spec.name)
    with pytest.raises(WitnessError, match=r"used by Product in product\.circom, line ") as refusal:
        calculator.calculate({"y": [6], "x": [2]}, compiled.source)
    assert refusal.value.template == "Num2Bits"
    number = int(str(refusal.value).rpartition(" ")[2])
    assert "Num2Bits(2)(y)" in (compiled.source / "product.circom").read_text("utf-8").splitlines()[number - 1]


@pytest.mark.parametrize(
    "text",
    [
        b"// \xe9",
        b'include "a\0b.circom";',
        b"{{ 1 // nothing }}",
        b"{{ 1 // (offset - 1) }}",
        b"{{ offset + 'x' }}",
        b'include "other.circom";',
        b'include "circomlib/circuits/other.circom";',
    ],
)
def test_a_source_that_cannot_be_rendered_is_bad_input(circomlib: Path, tmp_path: Path, text: bytes) -> None:
    spec = product(tmp_path / "src")
    source = tmp_path / "src" / spec.template
    source.write_bytes(text + b"\n" + source.read_bytes())
    with pytest.raises(InvalidArtifactError) as refusal:
        render(spec, circomlib)
    if b"other" in text:
        assert "product.circom" in str(refusal.value)
        assert "other.circom" in str(refusal.value)


def test_cir_3_a_warning_that_is_listed_with_a_reason_passes(
    toolchain: Toolchain, circomlib: Path, tmp_path: Path
) -> None:
    spec = product(tmp_path / "src", template=with_line("signal a <-- x * x + 1;"))
    rendered = render(spec, circomlib)
    both = (("Consider using <==", "a test"), ("Local signal a does not appear in any constraint", "a test"))
    listed = replace(spec, accepted_warnings=both)
    assert compile_circuit(listed, rendered, toolchain, tmp_path / "out").r1cs.is_file()
    for known in both:
        with pytest.raises(CompileError) as failure:
            compile_circuit(replace(spec, accepted_warnings=(known,)), rendered, toolchain, tmp_path / "other")
        assert known[0] not in failure.value.reason


@pytest.mark.parametrize(
    ("line", "own"),
    [("signal less <== LessThan(8)([x, y]);", False), ("component bits = Num2Bits(8); bits.in <== x;", True)],
)
def test_warnings_about_circomlib_itself_are_passed_over(
    toolchain: Toolchain, circomlib: Path, tmp_path: Path, line: str, own: bool
) -> None:
    """`LessThan` leaves outputs of its own `Num2Bits` unused; one who does so in a circuit of theirs has to say it."""
    template = with_line(line).replace(
        "pragma circom 2.2.0;", 'pragma circom 2.2.0; include "circomlib/comparators.circom";'
    )
    spec = product(tmp_path / "src", template=template)
    rendered = render(spec, circomlib)
    if not own:
        compile_circuit(spec, rendered, toolchain, tmp_path / "out")
        return
    with pytest.raises(CompileError) as failure:
        compile_circuit(spec, rendered, toolchain, tmp_path / "out")
    assert "bits.out" in failure.value.reason


def test_a_compiler_that_fails_without_a_word_about_the_source_is_a_failed_tool(
    toolchain: Toolchain, circomlib: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PackagedCompiler, "run", lambda *_, **__: Completed(1, "", "out of memory"))
    monkeypatch.setattr(compile, "find_compiler", lambda _: PackagedCompiler(tmp_path, "0"))
    spec = product(tmp_path / "src")
    with pytest.raises(ToolFailedError) as failure:
        compile_circuit(spec, render(spec, circomlib), toolchain, tmp_path / "out")
    assert "out of memory" in failure.value.stderr_tail


def test_cir_10_two_compilations_are_the_same(toolchain: Toolchain, circomlib: Path, tmp_path: Path) -> None:
    spec = product(tmp_path / "src")
    first, second = (compile_circuit(spec, render(spec, circomlib), toolchain, tmp_path / name) for name in ("a", "b"))
    assert first.r1cs.read_bytes() == second.r1cs.read_bytes()
    assert first.wasm.read_bytes() == second.wasm.read_bytes()
    assert len(R1cs.read(first.r1cs).constraints) == 1


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('pragma circom 2.2.0; include "lib.circom";', True),
        ('include"lib.circom";', True),
        ('/* before */ include /* no path */ "lib.circom";', False),
        ('// include "lib.circom";', False),
        ('/* include "lib.circom"; */', False),
    ],
)
def test_an_include_is_found_wherever_it_stands_and_not_in_comments(
    circomlib: Path, tmp_path: Path, line: str, found: bool
) -> None:
    """What is not found is in no digest, and not there when the circuit is compiled."""
    spec = product(tmp_path, template=f"{line}\n{TEMPLATE}")
    (tmp_path / "lib.circom").write_text("pragma circom 2.2.0;\n", "utf-8")
    assert ("lib.circom" in render(spec, circomlib).files) is found
