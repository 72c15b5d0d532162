"""snarkjs as a subprocess: one process per call, or a worker that stays.

Both transports take the same requests on behalf of `mastermind.zk.prove` and `mastermind.zk.verify`. Witness
inputs travel over stdin only: never in argv, never through a file.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from importlib import resources
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from mastermind.errors import BackendUnavailableError, ToolFailedError, ToolTimeoutError, WitnessError
from mastermind.zk.circuit import ProofSystem
from mastermind.zk.compile import SOURCE, refused
from mastermind.zk.evidence import Proof, VerifyingKey, parse_json, parse_public_signals, public_json
from mastermind.zk.tools import Toolchain, kill_group, run

TIMEOUT_S = 120.0

#: A number of this length in a message is no line number, and so an input that the message repeats.
_TELLING_DIGITS = 12
#: What `verify` says of a proof that holds: Groth16 and PLONK, FFLONK.
_ACCEPTED = ("OK!", "PROOF VERIFIED SUCCESSFULLY")


class Snarkjs(Protocol):
    """A way to ask snarkjs."""

    def prove(self, inputs: Mapping[str, Sequence[int]], wasm: Path, zkey: Path) -> tuple[Proof, tuple[int, ...]]:
        """Return a proof and its public signals.

        Raises:
            WitnessError: the circuit refuses the inputs.
            ToolFailedError, ToolTimeoutError: snarkjs failed.
        """
        ...

    def verify(self, key: VerifyingKey, public_signals: Sequence[int], proof: Proof) -> bool:
        """Return snarkjs's verdict. Raises ToolFailedError, ToolTimeoutError."""
        ...


class SnarkjsCli:
    """snarkjs's command line, a new Node process for each call."""

    def __init__(self, toolchain: Toolchain, *, timeout_s: float = TIMEOUT_S) -> None:
        if os.name != "posix":
            raise BackendUnavailableError("the snarkjs command line needs /dev/stdin; use the worker here")
        self._argv = toolchain.snarkjs
        self._timeout_s = timeout_s

    def prove(self, inputs: Mapping[str, Sequence[int]], wasm: Path, zkey: Path) -> tuple[Proof, tuple[int, ...]]:
        proof, public_signals = self.prove_by("groth16", inputs, wasm, zkey)
        try:
            return Proof.parse(proof), public_signals
        except ValueError as error:
            raise _no_proof(self._argv) from error

    def prove_by(
        self, protocol: ProofSystem, inputs: Mapping[str, Sequence[int]], wasm: Path, zkey: Path
    ) -> tuple[Any, tuple[int, ...]]:
        """Return a proof as JSON, and its public signals. Raises as `prove`."""
        with tempfile.TemporaryDirectory() as folder:
            proof_file, public_file = Path(folder, "proof.json"), Path(folder, "public.json")
            try:
                run(
                    [*self._argv, protocol, "fullprove", "/dev/stdin", wasm, zkey, proof_file, public_file],
                    timeout_s=self._timeout_s,
                    stdin=json.dumps(_as_strings(inputs)).encode(),
                )
            except ToolFailedError as error:
                raise _translated(error, inputs, wasm) from None  # The original may repeat inputs.
            try:
                proof = parse_json(proof_file.read_bytes())
                return proof, parse_public_signals(parse_json(public_file.read_bytes()))
            except (OSError, ValueError) as error:
                raise _no_proof(self._argv) from error

    def verify(self, key: VerifyingKey, public_signals: Sequence[int], proof: Proof) -> bool:
        return self.verify_by("groth16", key.to_json(), public_signals, proof.to_json())

    def verify_by(self, protocol: ProofSystem, key: Any, public_signals: Sequence[int], proof: Any) -> bool:
        """Return snarkjs's verdict on a key and a proof as JSON. Raises as `verify`."""
        contents = {"key": key, "public": public_json(public_signals), "proof": proof}
        with tempfile.TemporaryDirectory() as folder:
            for name, content in contents.items():
                Path(folder, f"{name}.json").write_text(json.dumps(content), "utf-8")
            files = [Path(folder, f"{name}.json") for name in contents]
            completed = run([*self._argv, protocol, "verify", *files], timeout_s=self._timeout_s, accept=(0, 1))
        accepted = completed.exit_code == 0 and any(words in completed.stdout for words in _ACCEPTED)
        if not accepted and "invalid proof" not in completed.stdout.lower():
            # Neither yes nor no: not an answer about the proof.
            raise ToolFailedError(
                f"snarkjs {protocol} verify gave no verdict",
                argv=self._argv,
                exit_code=completed.exit_code,
                stderr_tail=(completed.stderr or completed.stdout)[-2000:],
            )
        return accepted


class SnarkjsWorker:
    """A Node process that stays, for many calls. Safe to use from several threads; use it in a `with` block.

    A request that runs longer than `timeout_s` kills the worker; the next one starts another. Requests that
    were under way when a worker died are sent once more. Node ends when this process does, however it ends.
    """

    def __init__(self, toolchain: Toolchain, *, timeout_s: float = TIMEOUT_S) -> None:
        script = resources.files("mastermind.zk") / "worker.mjs"
        self._argv = [str(toolchain.node), str(script), str(toolchain.modules)]
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._worker: _Worker | None = None
        self._closed = False

    def prove(self, inputs: Mapping[str, Sequence[int]], wasm: Path, zkey: Path) -> tuple[Proof, tuple[int, ...]]:
        try:
            result = self._request("prove", inputs=_as_strings(inputs), wasm=str(wasm), zkey=str(zkey))
        except ToolFailedError as error:
            raise _translated(error, inputs, wasm) from None
        try:
            return Proof.parse(result["proof"]), parse_public_signals(result["publicSignals"])
        except (KeyError, TypeError, ValueError) as error:
            raise _no_proof(self._argv) from error

    def verify(self, key: VerifyingKey, public_signals: Sequence[int], proof: Proof) -> bool:
        result = self._request(
            "verify", key=key.to_json(), publicSignals=public_json(public_signals), proof=proof.to_json()
        )
        return result is True

    def close(self) -> None:
        """End the worker; a second call does nothing."""
        with self._lock:
            self._closed = True
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.stop()

    def __enter__(self) -> SnarkjsWorker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _request(self, method: str, **parameters: Any) -> Any:
        for last_try in (False, True):
            worker = self._running()
            try:
                reply = worker.ask({"method": method, **parameters}).result(self._timeout_s)
            except FutureTimeoutError as error:
                worker.stop()
                raise ToolTimeoutError(
                    f"snarkjs did not answer {method} within {self._timeout_s:g} s",
                    argv=self._argv,
                    timeout_s=self._timeout_s,
                ) from error
            except _WorkerDiedError as error:
                worker.stop()  # Its pipes are closed now, not when somebody collects the garbage.
                if last_try or self._closed:
                    raise ToolFailedError(
                        f"the snarkjs worker ended during {method}",
                        argv=self._argv,
                        exit_code=worker.process.poll() or 0,
                        stderr_tail="",
                    ) from error
                continue
            if "error" in reply:
                raise ToolFailedError(
                    f"snarkjs {method} failed: {reply['error']}",
                    argv=self._argv,
                    exit_code=0,
                    stderr_tail=reply["error"],
                )
            return reply["result"]
        raise AssertionError("unreachable")

    def _running(self) -> _Worker:
        with self._lock:
            if self._closed:
                raise ValueError("the snarkjs worker is closed")
            if self._worker is None or self._worker.dead:
                self._worker = _Worker(self._argv)
            return self._worker


class _WorkerDiedError(Exception):
    """The Node process ended before it answered."""


class _Worker:
    """One Node process and the requests it has not answered yet."""

    def __init__(self, argv: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._waiting: dict[int, Future[dict[str, Any]]] = {}
        self.dead = False
        self._finalizer = weakref.finalize(self, _end, self.process)
        threading.Thread(target=_read_replies, args=(weakref.ref(self), self.process), daemon=True).start()

    def ask(self, request: dict[str, Any]) -> Future[dict[str, Any]]:
        future: Future[dict[str, Any]] = Future()
        assert self.process.stdin is not None
        with self._lock:
            if self.dead:
                future.set_exception(_WorkerDiedError())
                return future
            number = next(self._ids)
            self._waiting[number] = future
            line = json.dumps({"id": number, **request}).encode() + b"\n"
            try:
                self.process.stdin.write(line)
                self.process.stdin.flush()
            except OSError:
                pass  # The reader sees the end of the process and fails what waits.
        return future

    def reply(self, line: bytes) -> None:
        message = json.loads(line)
        with self._lock:
            future = self._waiting.pop(message["id"], None)
        if future is not None:
            future.set_result(message)

    def died(self) -> None:
        with self._lock:
            self.dead = True
            waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            future.set_exception(_WorkerDiedError())

    def stop(self) -> None:
        self._finalizer()
        self.died()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the process, collect it and close its pipes."""
    kill_group(process)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except OSError:
                pass  # Bytes that the dead process did not take.


def _read_replies(reference: weakref.ref[_Worker], process: subprocess.Popen[bytes]) -> None:
    """Hand replies to their requests until the process ends. Holds no worker, so that a dropped one is freed."""
    assert process.stdout is not None
    try:
        for line in process.stdout:
            worker = reference()
            if worker is None:
                return
            worker.reply(line)
            del worker
    except (ValueError, OSError, KeyError):
        pass  # Closed under the reader, or not a reply: either way this worker is of no more use.
    worker = reference()
    if worker is not None:
        worker.died()


def _no_proof(argv: Sequence[str]) -> ToolFailedError:
    return ToolFailedError("snarkjs ended well but made no proof", argv=argv, exit_code=0, stderr_tail="")


def _as_strings(inputs: Mapping[str, Sequence[int]]) -> dict[str, list[str]]:
    return {name: [str(value) for value in values] for name, values in inputs.items()}


def _translated(
    error: ToolFailedError, inputs: Mapping[str, Sequence[int]], wasm: Path
) -> ToolFailedError | WitnessError:
    """A refusal by the circuit is not a failure of the tool; and no error repeats what was to be proved."""
    text = error.stderr_tail
    if "Assert Failed" in text or "Error in template" in text:
        return refused(wasm.stem, text, wasm.parent / SOURCE)
    if any(len(str(value)) >= _TELLING_DIGITS and str(value) in text for values in inputs.values() for value in values):
        return ToolFailedError(
            "snarkjs failed; what it said repeats inputs, and is not shown",
            argv=error.argv,
            exit_code=error.exit_code,
            stderr_tail="",
        )
    return error
