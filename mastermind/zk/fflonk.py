"""The one element of an FFLONK proof that snarkjs does not check: `inv`.

The contract divides, and inverting costs gas. So the prover sends the inverse of the product of all denominators, and
the contract refuses a proof whose `inv` is not that. snarkjs's own verifier never looks at it: a proof that everybody
accepts could be spoiled for the contract by anyone on its way. It follows from the rest of the proof, so it is
computed again here.

Source: snarkjs 0.7.6, `fflonk_verify.js` (challenges) and `fflonk_prove.js`, `getMontgomeryBatchedInverse`. The
products over the roots of y^n = x that it multiplies one by one are written as y^n - x here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mastermind.field import MODULUS
from mastermind.zk.curve import G1Point
from mastermind.zk.universal import UniversalKey, UniversalProof


def inverse_is_right(key: UniversalKey, public_signals: Sequence[int], proof: UniversalProof) -> bool:
    """Whether the contract can use the `inv` of an FFLONK proof for this statement."""
    *evaluations, inverse = proof.evaluations
    xi, y = _challenges(key, public_signals, proof.commitments, evaluations)
    return inverse * _denominators(key, xi, y) % MODULUS == 1


def _challenges(
    key: UniversalKey, public_signals: Sequence[int], commitments: Sequence[G1Point], evaluations: Sequence[int]
) -> tuple[int, int]:
    """The points xi and y at which the polynomials are opened."""
    c1, c2, w1, _ = commitments
    beta = _challenge((*_coordinates(key.commitments), *public_signals, *c1))
    gamma = _challenge((beta,))
    seed = _challenge((gamma, *c2))
    alpha = _challenge((seed, *evaluations))
    y = _challenge((alpha, *w1))
    return pow(seed, 24, MODULUS), y


def _coordinates(points: Iterable[G1Point | None]) -> Iterable[int]:
    for point in points:
        yield from point or (0, 0)


def _challenge(words: Iterable[int]) -> int:
    from Crypto.Hash import keccak  # It takes a while to load, and only FFLONK needs it.

    digest = keccak.new(digest_bits=256, data=b"".join(word.to_bytes(32, "big") for word in words))
    return int.from_bytes(digest.digest(), "big") % MODULUS


def _denominators(key: UniversalKey, xi: int, y: int) -> int:
    """The product of all that the contract divides by."""
    w = key.root
    size = 1 << key.power
    xi_w = xi * w % MODULUS
    at_8, at_4, at_3, at_3w = (pow(y, 8) - xi, pow(y, 4) - xi, pow(y, 3) - xi, pow(y, 3) - xi_w)
    # The zero polynomial, and the openings of the second and the third commitment.
    product = (pow(xi, size, MODULUS) - 1) * at_4 * at_3 * at_3w % MODULUS
    # Lagrange polynomials of the 8, 4 and 3 + 3 roots: n^n x^(n-1) (y^n - x) each, and -1 where n is even.
    product = product * pow(8, 8) * pow(xi, 7, MODULUS) * at_8 % MODULUS
    product = product * pow(4, 4) * pow(xi, 3, MODULUS) * at_4 % MODULUS
    product = product * 3**6 * -pow(xi - xi_w, 6, MODULUS) * pow(xi * xi_w, 2, MODULUS) * at_3 * at_3w % MODULUS
    # Lagrange polynomials of the public signals.
    root = 1
    for _ in range(key.public_count):
        product = product * size * (xi - root) % MODULUS
        root = root * w % MODULUS
    return product
