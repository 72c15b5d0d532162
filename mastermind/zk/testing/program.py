"""Witness programs that refuse nothing.

A program made by circom ends with an error at each `assert` and each `===` that does not hold. A dishonest prover's
program would go on; so does one that has been through `unchecked`.
"""

from __future__ import annotations

from pathlib import Path

import wasmtime

from mastermind.errors import InvalidArtifactError

_CALL, _CONST, _RETURN, _END, _NOP = 0x10, 0x41, 0x0F, 0x0B, 0x01
_ASSERT_FAILED = 4


def unchecked(wasm: bytes, name: str) -> bytes:
    """Return the witness program `wasm` of the circuit `name` with every check left out.

    A check that fails calls `printErrorMessage` and returns the error 4; here it calls and goes on.

    Raises:
        InvalidArtifactError: it is not such a program.
    """
    path = Path(f"{name}.wasm")
    try:
        module = wasmtime.Module(wasmtime.Engine(), wasm)
    except wasmtime.WasmtimeError as error:
        raise InvalidArtifactError(f"{path} is damaged: {str(error).splitlines()[0]}", path=path) from error
    functions = [item.name for item in module.imports if isinstance(item.type, wasmtime.FuncType)]
    if "printErrorMessage" not in functions:
        raise InvalidArtifactError(f"{path} is not a program made by circom 2", path=path)
    call = bytes([_CALL, functions.index("printErrorMessage")])
    leave = bytes([_CONST, _ASSERT_FAILED, _RETURN])
    return wasm.replace(call + leave + bytes([_END]), call + bytes([_NOP] * len(leave) + [_END]))
