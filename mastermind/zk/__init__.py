"""A proving toolkit for Circom circuits: render, compile, setup, prove, verify.

Knows nothing about games. For circuits of your own, start with `Project` (`mastermind.zk.project`), which finds out
what there is to know about them. Below it are `CircuitSpec` (what a circuit is), `ArtifactStore` (builds it and keeps
the result), a prover (`mastermind.zk.prove`) and a verifier (`mastermind.zk.verify`).
"""
