"""The pages in `docs` are right: the files they show run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from mastermind.zk.artifacts import ArtifactStore
from mastermind.zk.tools import Toolchain

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "test-a-circuit.md").read_text("utf-8")
FILE = re.compile(r"`([\w./]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_tests_of_the_page_pass_as_they_stand(tmp_path: Path, store: ArtifactStore, toolchain: Toolchain) -> None:
    files = dict(FILE.findall(PAGE))
    assert files.keys() == {"circuits/age.circom", "test_age.py"}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    (command,) = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    completed = subprocess.run(
        ["/bin/sh", "-eu", "-c", command],
        cwd=tmp_path,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "MASTERMIND_HOME": str(store.home),
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert completed.returncode == 0, completed.stdout
    assert f"{len(re.findall(r'^def test_', files['test_age.py'], re.MULTILINE))} passed" in completed.stdout
