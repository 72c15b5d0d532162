"""Everything that a verifier must refuse, one change at a time, on every verifier.

Malformed evidence is refused by the reader that all verifiers share (`MalformedProofError`, whose `field` names the
part); well-formed evidence of something else reaches each verifier's pairings and is answered with False.
"""

from __future__ import annotations

import copy
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from py_ecc import optimized_bn128 as bn128

from mastermind.errors import MalformedKeyError, MalformedProofError
from mastermind.field import COORDINATE_MODULUS, MODULUS, random_field_element
from mastermind.game.circuits import authorise_inputs, give_clue_inputs, random_salt
from mastermind.rules import Rules
from mastermind.zk.artifacts import KeySet
from mastermind.zk.curve import G1_GENERATOR, G1Point, G2Point, on_twist
from mastermind.zk.evidence import Proof, VerifyingKey, public_json
from mastermind.zk.pairing import in_subgroup, to_py_ecc_g2
from mastermind.zk.prove import NativeProver, ProvedStatement, SnarkjsProver
from mastermind.zk.snarkjs import SnarkjsCli, SnarkjsWorker
from mastermind.zk.tools import Toolchain, run
from mastermind.zk.verify import NativeVerifier, ReferenceVerifier, SnarkjsVerifier, Verifier, judge
from tests.support.proofs import from_py_ecc_g2, made_over

RULES = Rules.parse("hit-and-blow")
LABELS = ("game_id", "solution_hash", "turn_count", "guess", "clue")
VERIFIERS = ("native", "reference", "snarkjs")

Change = Callable[[Any], object]


@dataclass(frozen=True)
class Evidence:
    """A true statement and its proof: no hits and no blows, so that the last public signal is 0."""

    key: VerifyingKey
    native: ProvedStatement
    snarkjs: ProvedStatement
    #: A proof of another statement under the same key.
    other: ProvedStatement

    @property
    def signals(self) -> tuple[int, ...]:
        return self.native.public_signals

    @property
    def proof(self) -> Proof:
        return self.native.proof


def clue_inputs(guess: Sequence[int], secret: Sequence[int] = (0, 1, 2, 3)) -> dict[str, object]:
    return give_clue_inputs(
        RULES,
        game_id=random_field_element(),
        turn_count=4,
        guess=guess,
        secret=secret,
        salt=random_salt(),
        key=random_field_element(),
    )


@pytest.fixture(scope="module")
def evidence(hit_and_blow: KeySet, native_prover: NativeProver, snarkjs_cli: SnarkjsCli) -> Evidence:
    circuit = hit_and_blow["give_clue"]
    inputs = clue_inputs((4, 5, 6, 7))
    made = Evidence(
        circuit.verifying_key,
        native_prover.prove(circuit, inputs),
        SnarkjsProver(snarkjs_cli).prove(circuit, inputs),
        native_prover.prove(circuit, clue_inputs((0, 5, 6, 1))),
    )
    assert made.signals[-1] == 0
    return made


@pytest.fixture(scope="module", params=VERIFIERS)
def verifier(request: pytest.FixtureRequest, snarkjs_cli: SnarkjsCli) -> Verifier:
    verifiers: dict[str, Verifier] = {
        "native": NativeVerifier(),
        "reference": ReferenceVerifier(),
        "snarkjs": SnarkjsVerifier(snarkjs_cli),
    }
    return verifiers[request.param]


class Unreachable:
    """A snarkjs that nothing may be passed on to."""

    def prove(self, inputs: Mapping[str, Sequence[int]], wasm: Path, zkey: Path) -> NoReturn:
        raise AssertionError("snarkjs was asked to prove")

    def verify(self, key: VerifyingKey, public_signals: Sequence[int], proof: Proof) -> NoReturn:
        raise AssertionError("snarkjs was asked to verify")


@pytest.fixture(params=VERIFIERS)
def early_verifier(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Verifier:
    """A verifier whose pairing fails the test. (arkworks has no pairing to replace: it reads points before it.)"""

    def pairing(*_: object, **__: object) -> NoReturn:
        raise AssertionError("a pairing was computed")

    monkeypatch.setattr(bn128, "pairing", pairing)
    verifiers: dict[str, Verifier] = {
        "native": NativeVerifier(),
        "reference": ReferenceVerifier(),
        "snarkjs": SnarkjsVerifier(Unreachable()),
    }
    return verifiers[request.param]


# The originals.


def test_the_untouched_original_is_accepted(verifier: Verifier, evidence: Evidence) -> None:
    for proved in (evidence.native, evidence.snarkjs):
        assert verifier.verify(evidence.key, proved.public_signals, proved.proof) is True


def test_evidence_read_back_is_the_same(evidence: Evidence) -> None:
    assert Proof.parse(json.loads(json.dumps(evidence.proof.to_json()))) == evidence.proof
    assert Proof.from_bytes(evidence.proof.to_bytes()) == evidence.proof
    assert VerifyingKey.parse(json.loads(json.dumps(evidence.key.to_json()))) == evidence.key


def test_proofs_of_one_statement_differ(evidence: Evidence) -> None:
    assert evidence.native.public_signals == evidence.snarkjs.public_signals
    assert evidence.native.proof != evidence.snarkjs.proof


def plain_verify(toolchain: Toolchain, folder: Path, key: object, public_signals: object, proof: object) -> int:
    """The exit code of `snarkjs groth16 verify` for these files, without any check of ours."""
    files = []
    for name, content in (("key", key), ("public", public_signals), ("proof", proof)):
        files.append(folder / f"{name}.json")
        files[-1].write_text(json.dumps(content), "utf-8")
    return run([*toolchain.snarkjs, "groth16", "verify", *files], timeout_s=60, accept=range(256)).exit_code


@pytest.mark.parametrize("prover", ["native", "snarkjs"])
def test_plain_snarkjs_accepts_the_files(prover: str, evidence: Evidence, toolchain: Toolchain, tmp_path: Path) -> None:
    proved: ProvedStatement = getattr(evidence, prover)
    files = evidence.key.to_json(), public_json(proved.public_signals), proved.proof.to_json()
    assert plain_verify(toolchain, tmp_path, *files) == 0


# Well-formed evidence of something else: False, after the pairings.


@pytest.mark.parametrize("index", range(len(LABELS)), ids=LABELS)
def test_rep_8_every_public_signal_is_bound(verifier: Verifier, evidence: Evidence, index: int) -> None:
    signals = list(evidence.signals)
    signals[index] = (signals[index] + 1) % MODULUS
    assert verifier.verify(evidence.key, signals, evidence.proof) is False


def test_swapped_signals_are_rejected(verifier: Verifier, evidence: Evidence) -> None:
    signals = list(evidence.signals)
    signals[2], signals[3] = signals[3], signals[2]
    assert signals != list(evidence.signals)
    assert verifier.verify(evidence.key, signals, evidence.proof) is False


def negated(point: G1Point) -> G1Point:
    return G1Point(point.x, COORDINATE_MODULUS - point.y)


def negated_2(point: G2Point) -> G2Point:
    return G2Point(point.x, (-point.y[0] % COORDINATE_MODULUS, -point.y[1] % COORDINATE_MODULUS))


WELL_FORMED: dict[str, Callable[[Proof, Proof], Proof]] = {
    "A negated": lambda proof, _: replace(proof, a=negated(proof.a)),
    "B negated": lambda proof, _: replace(proof, b=negated_2(proof.b)),
    "C negated": lambda proof, _: replace(proof, c=negated(proof.c)),
    "replay of another statement's proof": lambda _, other: other,
}
#: The same for the quick verifiers only.
MORE_WELL_FORMED: dict[str, Callable[[Proof, Proof], Proof]] = {
    **WELL_FORMED,
    "C is another point": lambda proof, _: replace(proof, c=G1_GENERATOR),
    "A and C swapped": lambda proof, _: replace(proof, a=proof.c, c=proof.a),
    "A of another proof": lambda proof, other: replace(proof, a=other.a),
    "B of another proof": lambda proof, other: replace(proof, b=other.b),
}


@pytest.mark.parametrize("change", WELL_FORMED.values(), ids=WELL_FORMED)
def test_a_changed_proof_is_rejected(
    verifier: Verifier, evidence: Evidence, change: Callable[[Proof, Proof], Proof]
) -> None:
    changed = change(evidence.proof, evidence.other.proof)
    assert changed != evidence.proof
    assert verifier.verify(evidence.key, evidence.signals, changed) is False


def test_a_proof_of_another_circuit_is_rejected(
    verifier: Verifier, hit_and_blow: KeySet, native_prover: NativeProver
) -> None:
    # Both circuits have two public signals: the count does not give it away.
    authorise, open_game = hit_and_blow["authorise"], hit_and_blow["open_game"]
    assert authorise.verifying_key.public_count == open_game.verifying_key.public_count
    proved = native_prover.prove(authorise, authorise_inputs(random_field_element(), 1))
    assert verifier.verify(authorise.verifying_key, proved.public_signals, proved.proof) is True
    assert verifier.verify(open_game.verifying_key, proved.public_signals, proved.proof) is False


def test_another_delta_is_rejected(verifier: Verifier, evidence: Evidence, hit_and_blow: KeySet) -> None:
    key = replace(evidence.key, delta=hit_and_blow["open_game"].verifying_key.delta)
    assert verifier.verify(key, evidence.signals, evidence.proof) is False


def test_rep_1_a_seen_proof_can_be_changed_into_another_valid_one(verifier: Verifier, evidence: Evidence) -> None:
    """(t A, B / t, C) is valid too: count by statement, never by the bytes of a proof."""
    factor = 2 + secrets.randbelow(MODULUS - 2)
    changed = made_over(evidence.proof, factor)
    assert changed.a != evidence.proof.a
    assert changed.b != evidence.proof.b
    assert verifier.verify(evidence.key, evidence.signals, changed) is True


# Public signals that are not a statement: refused before any pairing.


def plus_r(index: int) -> Callable[[tuple[int, ...]], Sequence[int]]:
    return lambda signals: (*signals[:index], signals[index] + MODULUS, *signals[index + 1 :])


BAD_STATEMENTS: dict[str, Callable[[tuple[int, ...]], Sequence[int]]] = {
    **{f"vin-1 {label} + r": plus_r(index) for index, label in enumerate(LABELS)},
    "vin-2 last signal missing": lambda signals: signals[:-1],
    "vin-2 a signal too many": lambda signals: (*signals, 0),
    "no signal": lambda _: (),
    "negative": lambda signals: (*signals[:-1], -1),
    "r - r": lambda signals: (*signals[:-1], -MODULUS),
    "a truth value": lambda signals: (*signals[:-1], False),
}


@pytest.mark.parametrize("change", BAD_STATEMENTS.values(), ids=BAD_STATEMENTS)
def test_signals_that_are_no_statement_are_refused(
    early_verifier: Verifier, evidence: Evidence, change: Callable[[tuple[int, ...]], Sequence[int]]
) -> None:
    signals = change(evidence.signals)
    with pytest.raises(MalformedProofError) as refusal:
        early_verifier.verify(evidence.key, signals, evidence.proof)
    assert refusal.value.field == "public_signals"
    verdict = judge(early_verifier, evidence.key, public_json(signals), evidence.proof.to_json())
    assert not verdict
    assert verdict.reason


# Proofs that are not well formed: refused by the reader, which names the part.


def point_case(part: str, change: Change) -> Callable[[dict[str, Any]], None]:
    def apply(proof: dict[str, Any]) -> None:
        proof[part] = change(proof[part])

    return apply


def plus_q(text: str) -> str:
    return str(int(text) + COORDINATE_MODULUS)


def scaled_g1(point: list[str]) -> list[str]:
    """Jacobian coordinates of the same point with z = 2."""
    x, y, _ = map(int, point)
    return [str(4 * x % COORDINATE_MODULUS), str(8 * y % COORDINATE_MODULUS), "2"]


def scaled_g2(point: list[list[str]]) -> list[list[str]]:
    (x, y, _), factors = point, (4, 8)
    pairs = [
        [str(factor * int(part) % COORDINATE_MODULUS) for part in pair]
        for factor, pair in zip(factors, (x, y), strict=True)
    ]
    return [*pairs, ["2", "0"]]


G1_CHANGES: dict[str, Change] = {
    "at infinity": lambda _: ["0", "1", "0"],
    "all zero": lambda _: ["0", "0", "1"],
    "z = 0": lambda p: [p[0], p[1], "0"],
    "off the curve": lambda p: [p[0], str((int(p[1]) + 1) % COORDINATE_MODULUS), "1"],
    "x + q": lambda p: [plus_q(p[0]), p[1], "1"],
    "y + q": lambda p: [p[0], plus_q(p[1]), "1"],
    "vin-5 scaled": scaled_g1,
    "vin-5 incomplete": lambda p: p[:2],
    "four coordinates": lambda p: [*p, "1"],
    "numbers": lambda p: [int(p[0]), int(p[1]), 1],
    "leading zero": lambda p: [f"0{p[0]}", p[1], "1"],
    "negative": lambda p: [f"-{p[0]}", p[1], "1"],
    "hexadecimal": lambda p: [hex(int(p[0])), p[1], "1"],
    "null": lambda _: None,
    "an object": lambda p: dict(enumerate(p)),
}
G2_CHANGES: dict[str, Change] = {
    "at infinity": lambda _: [["0", "0"], ["1", "0"], ["0", "0"]],
    "all zero": lambda _: [["0", "0"], ["0", "0"], ["1", "0"]],
    "off the curve": lambda p: [p[0], [p[1][0], str((int(p[1][1]) + 1) % COORDINATE_MODULUS)], p[2]],
    "x + q": lambda p: [[plus_q(p[0][0]), p[0][1]], p[1], p[2]],
    "i-part of y + q": lambda p: [p[0], [p[1][0], plus_q(p[1][1])], p[2]],
    "parts swapped": lambda p: [p[0][::-1], p[1][::-1], p[2]],
    "vin-5 scaled": scaled_g2,
    "vin-5 incomplete": lambda p: p[:2],
    "z = (1, 1)": lambda p: [p[0], p[1], ["1", "1"]],
    "x is one number": lambda p: [p[0][0], p[1], p[2]],
    "x has three parts": lambda p: [[*p[0], "0"], p[1], p[2]],
    "null": lambda _: None,
}
MALFORMED: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    **{f"{part} {name}": (point_case(part, c), part) for part in ("pi_a", "pi_c") for name, c in G1_CHANGES.items()},
    **{f"pi_b {name}": (point_case("pi_b", change), "pi_b") for name, change in G2_CHANGES.items()},
    "vin-5 protocol": (point_case("protocol", lambda _: "plonk"), "protocol"),
    "protocol null": (point_case("protocol", lambda _: None), "protocol"),
    "vin-5 curve": (point_case("curve", lambda _: "bls12381"), "curve"),
    "vin-7 without pi_b": (lambda proof: proof.pop("pi_b"), "pi_b"),
    "without protocol": (lambda proof: proof.pop("protocol"), "protocol"),
    "another field": (lambda proof: proof.update(pi_d=["1", "2", "1"]), "pi_d"),
}


@pytest.mark.parametrize(("change", "field"), MALFORMED.values(), ids=MALFORMED)
def test_vin_5_a_malformed_proof_is_refused_by_part(
    early_verifier: Verifier, evidence: Evidence, change: Callable[[dict[str, Any]], object], field: str
) -> None:
    proof = evidence.proof.to_json()
    original = copy.deepcopy(proof)
    assert Proof.parse(proof) == evidence.proof
    change(proof)
    assert proof != original
    with pytest.raises(MalformedProofError) as refusal:
        Proof.parse(proof)
    assert refusal.value.field == field
    verdict = judge(early_verifier, evidence.key, public_json(evidence.signals), proof)
    assert not verdict
    assert verdict.reason == str(refusal.value)


#: What the plain verifier of snarkjs 0.7.6 takes for a good proof, and ours refuses.
ACCEPTED_BY_SNARKJS = ("vin-5 protocol", "vin-5 curve", "pi_a vin-5 scaled", "pi_a vin-5 incomplete")


@pytest.mark.parametrize("name", ACCEPTED_BY_SNARKJS)
def test_vin_5_the_attack_is_real(name: str, evidence: Evidence, toolchain: Toolchain, tmp_path: Path) -> None:
    proof = evidence.proof.to_json()
    MALFORMED[name][0](proof)
    assert plain_verify(toolchain, tmp_path, evidence.key.to_json(), public_json(evidence.signals), proof) == 0


def test_vin_2_the_attack_is_real(evidence: Evidence, toolchain: Toolchain, tmp_path: Path) -> None:
    signals = public_json(evidence.signals)[:-1]
    assert plain_verify(toolchain, tmp_path, evidence.key.to_json(), signals, evidence.proof.to_json()) == 0


@pytest.mark.parametrize("size_bytes", [0, 255, 257])
def test_proof_bytes_of_another_length_are_refused(evidence: Evidence, size_bytes: int) -> None:
    with pytest.raises(MalformedProofError) as refusal:
        Proof.from_bytes((evidence.proof.to_bytes() + b"\0")[:size_bytes])
    assert refusal.value.field == "proof"


@pytest.mark.parametrize(("word", "field"), [(0, "pi_a"), (3, "pi_b"), (7, "pi_c")])
def test_proof_bytes_with_a_coordinate_plus_q_are_refused(evidence: Evidence, word: int, field: str) -> None:
    words = [evidence.proof.to_bytes()[at : at + 32] for at in range(0, 256, 32)]
    value = int.from_bytes(words[word], "big") + COORDINATE_MODULUS
    words[word] = value.to_bytes(32, "big")
    with pytest.raises(MalformedProofError) as refusal:
        Proof.from_bytes(b"".join(words))
    assert refusal.value.field == field


# The subgroup of G2.


def square_root_fq(value: int) -> int | None:
    root = pow(value, (COORDINATE_MODULUS + 1) // 4, COORDINATE_MODULUS)
    return root if root * root % COORDINATE_MODULUS == value % COORDINATE_MODULUS else None


def square_root_fq2(value: bn128.FQ2) -> bn128.FQ2 | None:
    """(c + d i)^2 = a + b i for 2 c^2 = a +- sqrt(a^2 + b^2), d = b / 2 c."""
    a, b = map(int, value.coeffs)
    norm = square_root_fq(a * a + b * b)
    if norm is None:
        return None
    for sign in (1, -1):
        c = square_root_fq((a + sign * norm) * pow(2, -1, COORDINATE_MODULUS) % COORDINATE_MODULUS)
        if c:
            root = bn128.FQ2((c, b * pow(2 * c, -1, COORDINATE_MODULUS)))
            if root * root == value:
                return root
    return None


def random_twist_point() -> tuple[bn128.FQ2, bn128.FQ2, bn128.FQ2]:
    while True:
        x = bn128.FQ2((secrets.randbelow(COORDINATE_MODULUS), secrets.randbelow(COORDINATE_MODULUS)))
        y = square_root_fq2(x * x * x + bn128.b2)
        if y is not None:
            return x, y, bn128.FQ2.one()


def outside(point: G2Point) -> G2Point:
    """`point` + r P for a random point P of the twist: `point`, moved out of the subgroup."""
    shift = bn128.multiply(random_twist_point(), bn128.curve_order)
    moved = from_py_ecc_g2(bn128.normalize(bn128.add(to_py_ecc_g2(point), shift)))
    assert on_twist(moved)
    assert not in_subgroup(moved)
    return moved


@pytest.mark.parametrize("kind", ["B + r P", "a random point of the twist"])
def test_vin_6_b_outside_the_subgroup_is_refused_before_any_pairing(
    early_verifier: Verifier, evidence: Evidence, kind: str
) -> None:
    assert in_subgroup(evidence.proof.b)
    b = outside(evidence.proof.b) if kind == "B + r P" else from_py_ecc_g2(bn128.normalize(random_twist_point()))
    assert not in_subgroup(b)
    proof = replace(evidence.proof, b=b)
    assert Proof.parse(proof.to_json()) == proof, "the reader must let it through: the guard is the subgroup test"
    with pytest.raises(MalformedProofError) as refusal:
        early_verifier.verify(evidence.key, evidence.signals, proof)
    assert refusal.value.field == "pi_b"
    assert not judge(early_verifier, evidence.key, public_json(evidence.signals), proof.to_json())


@pytest.mark.parametrize("name", ["beta", "gamma", "delta"])
def test_vin_6_a_key_outside_the_subgroup_is_refused_before_any_pairing(
    early_verifier: Verifier, evidence: Evidence, name: str
) -> None:
    data = evidence.key.to_json()
    point = outside(getattr(evidence.key, name))
    data[f"vk_{name}_2"] = [[*map(str, point.x)], [*map(str, point.y)], ["1", "0"]]
    key = VerifyingKey.parse(data)
    with pytest.raises(MalformedKeyError):
        early_verifier.verify(key, evidence.signals, evidence.proof)


# Outside data never stops a verifier (VIN-7).

JUNK: tuple[object, ...] = (
    None,
    {},
    [],
    "proof",
    7,
    2.5,
    float("nan"),
    {"pi_a": []},
    [[]],
    {"protocol": "groth16", "curve": "bn128", "pi_a": {}, "pi_b": {}, "pi_c": {}},
    {1: 2},
)
JUNK_SIGNALS: tuple[object, ...] = (
    None,
    2.5,
    "2.0",
    "2n",
    "",
    " 1",
    "+1",
    "-1",
    "01",
    "1e3",
    "0x1",
    "\u0661",  # a digit one, but not an ASCII one
    "1\n",
    "9" * 100_000,
    1,
    True,
    [],
    ["1"],
    {},
    str(MODULUS),
)


def test_vin_7_junk_for_a_proof_is_rejected_with_a_reason(early_verifier: Verifier, evidence: Evidence) -> None:
    for junk in JUNK:
        verdict = judge(early_verifier, evidence.key, public_json(evidence.signals), junk)
        assert not verdict, junk
        assert verdict.reason


def test_vin_7_junk_for_the_signals_is_rejected_with_a_reason(early_verifier: Verifier, evidence: Evidence) -> None:
    lists = [[*public_json(evidence.signals)[:-1], junk] for junk in JUNK_SIGNALS]
    for signals in (*JUNK, *lists, ["0"] * 100_000):
        verdict = judge(early_verifier, evidence.key, signals, evidence.proof.to_json())
        assert not verdict, signals
        assert verdict.reason


def test_vin_7_the_next_honest_proof_is_accepted(verifier: Verifier, evidence: Evidence) -> None:
    assert not judge(verifier, evidence.key, None, None)
    assert not judge(verifier, evidence.key, public_json(evidence.signals), {})
    verdict = judge(verifier, evidence.key, public_json(evidence.signals), evidence.proof.to_json())
    assert verdict.accepted
    assert verdict.reason == ""


KEY_CHANGES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "vin-7 IC cut": (lambda key: key["IC"].pop(), "IC"),
    "IC too long": (lambda key: key["IC"].append(key["IC"][0]), "IC"),
    "IC empty": (lambda key: key.update(IC=[]), "IC"),
    "IC null": (lambda key: key.update(IC=None), "IC"),
    "nPublic one less": (lambda key: key.update(nPublic=key["nPublic"] - 1), "IC"),
    "nPublic null": (lambda key: key.update(nPublic=None), "nPublic"),
    "nPublic true": (lambda key: key.update(nPublic=True), "nPublic"),
    "nPublic 0": (lambda key: key.update(nPublic=0, IC=key["IC"][:1]), "nPublic"),
    "protocol": (lambda key: key.update(protocol="plonk"), "protocol"),
    "curve": (lambda key: key.update(curve="bls12381"), "curve"),
    "without delta": (lambda key: key.pop("vk_delta_2"), "vk_delta_2"),
    "another field": (lambda key: key.update(vk_epsilon_2=None), "vk_epsilon_2"),
    "alpha off the curve": (lambda key: key["vk_alpha_1"].__setitem__(1, "1"), "vk_alpha_1"),
    "beta off the curve": (lambda key: key["vk_beta_2"][1].__setitem__(1, "1"), "vk_beta_2"),
    "gamma at infinity": (
        lambda key: key.update(vk_gamma_2=[["0", "0"], ["1", "0"], ["0", "0"]]),
        "vk_gamma_2",
    ),
    "delta x + q": (lambda key: key["vk_delta_2"][0].__setitem__(0, plus_q(key["vk_delta_2"][0][0])), "vk_delta_2"),
    "IC[1] scaled": (lambda key: key["IC"].__setitem__(1, scaled_g1(key["IC"][1])), "IC[1]"),
}


@pytest.mark.parametrize(("change", "field"), KEY_CHANGES.values(), ids=KEY_CHANGES)
def test_vin_7_a_malformed_key_is_refused_by_part(
    evidence: Evidence, change: Callable[[dict[str, Any]], object], field: str
) -> None:
    data = evidence.key.to_json()
    assert VerifyingKey.parse(copy.deepcopy(data)) == evidence.key
    change(data)
    with pytest.raises(MalformedKeyError) as refusal:
        VerifyingKey.parse(data)
    assert refusal.value.field == field


@pytest.mark.parametrize("junk", JUNK, ids=str)
def test_vin_7_junk_for_a_key_is_refused(junk: object) -> None:
    with pytest.raises(MalformedKeyError):
        VerifyingKey.parse(junk)


# The quick verifiers: native again, and snarkjs by the other transport.


@pytest.mark.parametrize("name", ["native", "worker"])
def test_the_quick_verifiers_reject_each_change(name: str, evidence: Evidence, snarkjs_worker: SnarkjsWorker) -> None:
    verifier = NativeVerifier() if name == "native" else SnarkjsVerifier(snarkjs_worker)
    signals = public_json(evidence.signals)
    assert judge(verifier, evidence.key, signals, evidence.native.proof.to_json())
    assert judge(verifier, evidence.key, signals, evidence.snarkjs.proof.to_json())
    for index in range(len(signals)):
        changed = [*signals]
        changed[index] = str((evidence.signals[index] + 1) % MODULUS)
        assert not judge(verifier, evidence.key, changed, evidence.proof.to_json())
    for what, change in MORE_WELL_FORMED.items():
        changed_proof = change(evidence.proof, evidence.other.proof)
        assert verifier.verify(evidence.key, evidence.signals, changed_proof) is False, what
        verdict = judge(verifier, evidence.key, signals, changed_proof.to_json())
        assert not verdict.accepted, what
        assert verdict.reason, what
    assert judge(verifier, evidence.key, signals, evidence.native.proof.to_json())
