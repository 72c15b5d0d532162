"""Programs outside Python: finding them, checking their versions, running them.

Owns the one way to start a subprocess (`run`) and the npm packages (circom2, circomlib, snarkjs) pinned by
`circuits/package-lock.json`. What the programs are told to do is up to compile, setup, prove and verify.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mastermind.errors import ToolFailedError, ToolNotFoundError, ToolTimeoutError
from mastermind.locks import locked
from mastermind.sources import circuits_dir
from mastermind.zk.progress import Progress, silent

#: Node 16 gets no fixes any more, and nothing here is tried with it.
MINIMUM_NODE = 18

_STDERR_TAIL_BYTES = 2000
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Completed:
    """What a program printed; it ended with one of the exit codes the caller accepts."""

    exit_code: int
    stdout: str
    stderr: str


def run(
    argv: Sequence[str | Path],
    *,
    timeout_s: float,
    cwd: Path | None = None,
    stdin: bytes = b"",
    accept: Sequence[int] = (0,),
) -> Completed:
    """Run a program to its end and return its output, ANSI colours removed.

    `stdin` is the place for secrets: unlike `argv` no other user sees it. On a timeout, an exception or an
    interrupt the program and all it has started are killed.

    Raises:
        ToolNotFoundError: there is no such program, or it is none.
        ToolTimeoutError: it ran longer than `timeout_s`.
        ToolFailedError: its exit code is not in `accept`.
    """
    words = [str(word) for word in argv]
    try:
        process = subprocess.Popen(
            words,
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise ToolNotFoundError(f"{words[0]} is not installed") from error
    except OSError as error:  # such as a file that is no program, or one for another machine
        raise ToolNotFoundError(f"{words[0]} cannot be run: {error.strerror}") from error
    with process:
        try:
            stdout, stderr = process.communicate(stdin, timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            kill_group(process)
            raise ToolTimeoutError(
                f"{_name(words)} did not finish within {timeout_s:g} s", argv=words, timeout_s=timeout_s
            ) from error
        except BaseException:
            kill_group(process)
            raise
    completed = Completed(process.returncode, plain_text(stdout), plain_text(stderr))
    if process.returncode not in accept:
        tail = (completed.stderr or completed.stdout)[-_STDERR_TAIL_BYTES:].strip()
        last_line = tail.splitlines()[-1].strip() if tail else "no output"
        raise ToolFailedError(
            f"{_name(words)} failed with exit code {process.returncode}: {last_line}",
            argv=words,
            exit_code=process.returncode,
            stderr_tail=tail,
        )
    return completed


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process started with `start_new_session`, and its children."""
    if process.returncode is not None:
        return  # It has been collected: its number may be another process's by now.
    if os.name == "posix":
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    else:
        process.kill()


def plain_text(output: bytes) -> str:
    """What a program has printed, without colours."""
    return _ANSI.sub("", output.decode("utf-8", "replace"))


def _name(words: Sequence[str]) -> str:
    """Name a program by what a person would type: `snarkjs groth16 setup`, not the path of Node."""
    if Path(words[0]).stem == "node" and len(words) > 1:
        package = Path(words[1]).parts
        named = package[package.index("node_modules") + 1] if "node_modules" in package else Path(words[1]).name
        return " ".join([named, *[word for word in words[2:4] if os.path.sep not in word and not word.startswith("-")]])
    return Path(words[0]).name


@dataclass(frozen=True)
class Toolchain:
    """Node and the pinned npm packages, ready to use.

    Attributes:
        node: the Node executable, of version 18 or newer.
        modules: the `node_modules` folder.
    """

    node: Path
    modules: Path

    @classmethod
    def install(cls, home: Path, progress: Progress = silent) -> Toolchain:
        """Return the toolchain kept under `home`, installing the npm packages on first use.

        Raises:
            ToolNotFoundError: Node or npm is missing, or Node is too old.
            ToolFailedError: npm could not install.
        """
        node = find_node()
        target = home.absolute() / "node" / packages_digest()[:16]
        if not target.is_dir():
            npm = shutil.which("npm")
            if npm is None:
                raise ToolNotFoundError("npm is not installed; it comes with Node")
            target.parent.mkdir(parents=True, exist_ok=True)
            with locked(target.parent / "install.lock"):
                if not target.is_dir():
                    progress("installing circom2, circomlib and snarkjs")
                    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
                        for name in ("package.json", "package-lock.json"):
                            shutil.copy(circuits_dir() / name, folder)
                        run(
                            [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
                            timeout_s=600,
                            cwd=Path(folder),
                        )
                        # A folder of its own inside the temporary one, so that the move is one step.
                        ready = Path(folder) / "ready"
                        ready.mkdir()
                        shutil.move(Path(folder) / "node_modules", ready / "node_modules")
                        ready.rename(target)
        return cls(node, target / "node_modules")

    def version(self, package: str) -> str:
        """The version of an installed npm package."""
        manifest = self.modules / package / "package.json"
        try:
            return str(json.loads(manifest.read_text("utf-8"))["version"])
        except (OSError, ValueError, KeyError) as error:
            raise ToolNotFoundError(f"the npm package {package} is not installed") from error

    @property
    def snarkjs(self) -> list[str]:
        """The first words of a snarkjs command."""
        return [str(self.node), str(self.modules / "snarkjs" / "build" / "cli.cjs")]


def packages_digest() -> str:
    """SHA-256 of the lock file that pins the npm packages."""
    return hashlib.sha256((circuits_dir() / "package-lock.json").read_bytes()).hexdigest()


def find_node() -> Path:
    """Return the Node executable.

    Raises:
        ToolNotFoundError: there is none, or it is older than MINIMUM_NODE.
    """
    found = shutil.which("node")
    if found is None:
        raise ToolNotFoundError(f"Node {MINIMUM_NODE} or newer is needed and is not installed")
    version = run([found, "--version"], timeout_s=30).stdout.strip()
    match = re.fullmatch(r"v(\d+)\..*", version)
    if match is None or int(match.group(1)) < MINIMUM_NODE:
        raise ToolNotFoundError(f"Node {MINIMUM_NODE} or newer is needed; {found} is {version or 'not Node'}")
    return Path(found)
