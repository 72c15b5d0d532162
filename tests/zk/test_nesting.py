"""Deeply nested JSON: py_ecc lets Python recurse until the stack overflows, so no parser may see it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mastermind.zk.evidence import parse_json
from mastermind.zk.nesting import MAX_NESTING, shallow_text

ROOT = Path(__file__).resolve().parents[2]


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@pytest.mark.parametrize("depth", [MAX_NESTING + 1, 1000, 100_000])
def test_vin_7_deep_nesting_is_refused(depth: int) -> None:
    assert parse_json(nested(MAX_NESTING)) is not None
    for data in (nested(depth), b"[" * depth, b'{"a":' * depth):
        with pytest.raises(ValueError, match="nested"):
            parse_json(data)


def test_brackets_in_texts_do_not_count() -> None:
    value = ["[" * 1000, '"[' * 1000, "\\[" * 1000, {"{[": "[{"}]
    assert parse_json(json.dumps(value).encode()) == value


def test_bytes_that_hide_brackets_from_a_reader_of_bytes_are_refused() -> None:
    # In UTF-16 the byte of a quotation mark is half of other characters too.
    for encoding in ("utf-16", "utf-16-le", "utf-32"):
        with pytest.raises(ValueError, match=r"nested|decode"):
            parse_json(("\u2222" + "[" * 100_000).encode(encoding))
    assert shallow_text(b"\xef\xbb\xbf[1]") == "[1]"


def test_vin_7_the_verify_command_survives_it(tmp_path: Path) -> None:
    for name in ("proof.json", "public.json", "verification_key.json"):
        (tmp_path / name).write_bytes(nested(400_000))
    argv = [sys.executable, "-m", "mastermind", "verify", str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "text", ['["' + '\\"' * 500_000, '"' * 1_000_001, '["' + "\\" * 1_000_001, '{"a":"' + "x" * 1_000_000]
)
def test_prc_strings_that_never_end_are_read_once(text: str) -> None:
    """A scan that starts anew at every quote takes minutes for this."""
    start = time.monotonic()
    shallow_text(text)
    assert time.monotonic() - start < 20


def test_brackets_in_strings_do_not_count() -> None:
    assert shallow_text('["' + "[" * 1000 + '\\"' + "[" * 1000 + '"]')
    with pytest.raises(ValueError, match="deep"):
        shallow_text('["a\\\\", ' + "[" * 100)
