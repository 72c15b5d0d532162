"""Phase 1 of the trusted setup: public powers of tau, or a development file made here.

Owns what is accepted as a `.ptau`: its structure, checked section by section before any tool reads it, and its
digest against those published with snarkjs for the Hermez ceremony. A development file is as trustworthy as
whoever ran the build; every key made with it says `development`.
"""

from __future__ import annotations

import hashlib
import json
import struct
import tempfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Literal

from mastermind.errors import InvalidArtifactError, Phase1TooSmallError
from mastermind.field import COORDINATE_MODULUS
from mastermind.locks import locked
from mastermind.zk.binfile import SectionedFile
from mastermind.zk.progress import Progress, silent
from mastermind.zk.tools import Toolchain, run

Origin = Literal["development", "hermez", "private"]

#: A development file of this power serves every circuit of up to 2^11 constraints; making it takes seconds.
DEVELOPMENT_POWER = 11
#: Beyond this, making a file takes hours (`phase1.mjs`).
DEVELOPMENT_MAX_POWER = 22
MAX_POWER = 28
DEVELOPMENT_TIMEOUT_S = 1800.0

#: BLAKE2b-512 of `powersOfTau28_hez_final_<power>.ptau`, from the README of snarkjs 0.7.6.
HERMEZ_DIGESTS = {
    8: (
        "d6a8fb3a04feb600096c3b791f936a578c4e664d262e4aa24beed1b7a9a96aa5"
        "eb72864d628db247e9293384b74b36ffb52ca8d148d6e1b8b51e279fdf57b583"
    ),
    9: (
        "94f108a80e81b5d932d8e8c9e8fd7f46cf32457e31462deeeef37af1b71c2c1b"
        "3c71fb0d9b59c654ec266b042735f50311f9fd1d4cadce47ab234ad163157cb5"
    ),
    10: (
        "6cfeb8cda92453099d20120bdd0e8a5c4e7706c2da9a8f09ccc157ed2464d921"
        "fd0437fb70db42104769efd7d6f3c1f964bcf448c455eab6f6c7d863e88a5849"
    ),
    11: (
        "47c282116b892e5ac92ca238578006e31a47e7c7e70f0baa8b687f0a5203e28e"
        "a07bbbec765a98dcd654bad618475d4661bfaec3bd9ad2ed12e7abc251d94d33"
    ),
    12: (
        "ded2694169b7b08e898f736d5de95af87c3f1a64594013351b1a796dbee393bd"
        "825f88f9468c84505ddd11eb0b1465ac9b43b9064aa8ec97f2b73e04758b8a4a"
    ),
    13: (
        "58efc8bf2834d04768a3d7ffcd8e1e23d461561729beaac4e3e7a47829a1c906"
        "6d5320241e124a1a8e8aa6c75be0ba66f65bc8239a0542ed38e11276f6fdb4d9"
    ),
    14: (
        "eeefbcf7c3803b523c94112023c7ff89558f9b8e0cf5d6cdcba3ade60f168af4"
        "a181c9c21774b94fbae6c90411995f7d854d02ebd93fb66043dbb06f17a831c1"
    ),
    15: (
        "982372c867d229c236091f767e703253249a9b432c1710b4f326306bfa2428a1"
        "7b06240359606cfe4d580b10a5a1f63fbed499527069c18ae17060472969ae6e"
    ),
    16: (
        "6a6277a2f74e1073601b4f9fed6e1e55226917efb0f0db8a07d98ab01df1ccf4"
        "3eb0e8c3159432acd4960e2f29fe84a4198501fa54c8dad9e43297453efec125"
    ),
    17: (
        "6247a3433948b35fbfae414fa5a9355bfb45f56efa7ab4929e669264a0258976"
        "741dfbe3288bfb49828e5df02c2e633df38d2245e30162ae7e3bcca5b8b49345"
    ),
    18: (
        "7e6a9c2e5f05179ddfc923f38f917c9e6831d16922a902b0b4758b8e79c2ab8a"
        "81bb5f29952e16ee6c5067ed044d7857b5de120a90704c1d3b637fd94b95b13e"
    ),
    19: (
        "bca9d8b04242f175189872c42ceaa21e2951e0f0f272a0cc54fc37193ff66486"
        "00eaf1c555c70cdedfaf9fb74927de7aa1d33dc1e2a7f1a50619484989da0887"
    ),
    20: (
        "89a66eb5590a1c94e3f1ee0e72acf49b1669e050bb5f93c73b066b564dca4e0c"
        "7556a52b323178269d64af325d8fdddb33da3a27c34409b821de82aa2bf1a27b"
    ),
    21: (
        "9aef0573cef4ded9c4a75f148709056bf989f80dad96876aadeb6f1c6d062391"
        "f07a394a9e756d16f7eb233198d5b69407cca44594c763ab4a5b67ae73254678"
    ),
    22: (
        "0d64f63dba1a6f11139df765cb690da69d9b2f469a1ddd0de5e4aa628abb28f7"
        "87f04c6a5fb84a235ec5ea7f41d0548746653ecab0559add658a83502d1cb21b"
    ),
    23: (
        "3063a0bd81d68711197c8820a92466d51aeac93e915f5136d74f63c394ee6d88"
        "c5e8016231ea6580bec02e25d491f319d92e77f5c7f46a9caa8f3b53c0ea544f"
    ),
    24: (
        "fa404d140d5819d39984833ca5ec3632cd4995f81e82db402371a4de7c2eae86"
        "87c62bc632a95b0c6aadba3fb02680a94e09174b7233ccd26d78baca2647c733"
    ),
    25: (
        "0377d860cdb09a8a31ea1b0b8c04335614c8206357181573bf294c25d5ca7dff"
        "72387224fbd868897e6769f7805b3dab02854aec6d69d7492883b5e4e5f35eeb"
    ),
    26: (
        "418dee4a74b9592198bd8fd02ad1aea76f9cf3085f206dfd7d594c9e264ae919"
        "611b1459a1cc920c2f143417744ba9edd7b8d51e44be9452344a225ff7eead19"
    ),
    27: (
        "10ffd99837c512ef99752436a54b9810d1ac8878d368fb4b806267bdd664b4ab"
        "f276c9cd3c4b9039a1fa4315a0c326c0e8e9e8fe0eb588ffd4f9021bf7eae1a1"
    ),
    28: (
        "55c77ce8562366c91e7cda394cf7b7c15a06c12d8c905e8b36ba9cf5e13eb37d"
        "1a429c589e8eaba4c591bc4b88a0e2828745a53e170eac300236f5c1a326f41a"
    ),
}


@dataclass(frozen=True)
class Phase1:
    """A prepared phase-1 file that has been checked.

    Attributes:
        power: the file serves domains of up to 2^power.
        digest: BLAKE2b-512 of the file, in hex.
    """

    path: Path
    power: int
    origin: Origin
    digest: str

    def require(self, power: int, circuit: str) -> None:
        """Check that it serves a circuit that needs 2^`power`. Raises Phase1TooSmallError."""
        if power > self.power:
            raise Phase1TooSmallError(
                f"{circuit} needs a phase-1 file of power {power}; {self.path.name} has {self.power}", needed=power
            )


def read_power(path: Path) -> int:
    """Check the structure of a prepared `.ptau` and return its power.

    A damaged file can keep snarkjs busy for ever, so every section's size is checked here.

    Raises:
        InvalidArtifactError: not a prepared BN254 phase-1 file, or damaged.
    """
    file = SectionedFile.open(path, b"ptau")
    header = file.read(1, limit_bytes=64)
    if len(header) != 44 or header[:36] != struct.pack("<I", 32) + COORDINATE_MODULUS.to_bytes(32, "little"):
        raise InvalidArtifactError(f"{path.name} is not a phase-1 file over BN254", path=path)
    power: int = struct.unpack_from("<I", header, 36)[0]
    if not 1 <= power <= MAX_POWER:
        raise InvalidArtifactError(f"{path.name} has the power {power}", path=path)
    points, lagrange_points = 1 << power, (1 << power + 1) - 1
    expected = {
        2: (2 * points - 1) * 64,  # [tau^i]_1
        3: points * 128,  # [tau^i]_2
        4: points * 64,  # [alpha tau^i]_1
        5: points * 64,  # [beta tau^i]_1
        6: 128,  # [beta]_2
        # Lagrange bases of all domains up to 2^power; of tau in G1 also of the next one.
        12: (2 * lagrange_points + 1) * 64,
        13: lagrange_points * 128,
        14: lagrange_points * 64,
        15: lagrange_points * 64,
    }
    for section, size in expected.items():
        if section >= 12 and section not in file.sections:
            raise InvalidArtifactError(f"{path.name} is not prepared for phase 2", path=path)
        found = file.require(section)[1]
        if found != size:
            raise InvalidArtifactError(
                f"{path.name} is damaged: section {section} has {found} bytes, not {size}", path=path
            )
    return power


def open_phase1(path: Path, *, accept_private: bool = False) -> Phase1:
    """Check a phase-1 file given by the user.

    Raises:
        InvalidArtifactError: damaged, or its digest is not the published one and `accept_private` is not set.
    """
    power = read_power(path)
    digest = file_digest(path)
    if digest == HERMEZ_DIGESTS.get(power):
        return Phase1(path, power, "hermez", digest)
    if not accept_private:
        raise InvalidArtifactError(
            f"{path.name} is not the published Hermez file of power {power}: its BLAKE2b starts with {digest[:16]}, "
            f"expected {HERMEZ_DIGESTS.get(power, 'none is published')[:16]}",
            path=path,
        )
    return Phase1(path, power, "private", digest)


def development_phase1(power: int, toolchain: Toolchain, home: Path, progress: Progress = silent) -> Phase1:
    """Return a development phase 1 of at least 2^power, made on first use and kept under `home`.

    Raises:
        Phase1TooSmallError: none of this power is made here.
        ToolchainError: it could not be made.
    """
    power = max(power, DEVELOPMENT_POWER)
    if power > DEVELOPMENT_MAX_POWER:
        raise Phase1TooSmallError(f"a circuit that needs 2^{power} needs a public phase-1 file (--ptau)", needed=power)
    folder = home / "phase1"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"development_{power}.ptau"
    record = path.with_suffix(".json")
    with locked(folder / f"development_{power}.lock"):
        if path.is_file() and record.is_file():
            digest = file_digest(path)
            if record.read_text("utf-8", "replace") == json.dumps({"blake2b": digest}):
                return Phase1(path, power, "development", digest)
        progress(f"phase 1: development powers of tau, 2^{power}")
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            made = Path(temporary, "phase1.ptau")
            script = resources.files("mastermind.zk") / "phase1.mjs"
            run(
                [toolchain.node, str(script), "--modules", toolchain.modules, "--power", str(power), "--out", made],
                timeout_s=DEVELOPMENT_TIMEOUT_S,
            )
            read_power(made)
            digest = file_digest(made)
            record.unlink(missing_ok=True)
            made.replace(path)
            Path(temporary, "record").write_text(json.dumps({"blake2b": digest}), "utf-8")
            Path(temporary, "record").replace(record)
    return Phase1(path, power, "development", digest)


def file_digest(path: Path) -> str:
    """BLAKE2b-512 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()
