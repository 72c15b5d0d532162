"""A proving toolkit for Circom circuits: render, compile, setup, prove, verify.

Knows nothing about games. Start with `CircuitSpec` (what a circuit is), `ArtifactStore` (builds it and keeps the
result), a prover (`mastermind.zk.prove`) and a verifier (`mastermind.zk.verify`).
"""
