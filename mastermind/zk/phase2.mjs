// Makes the keys of one circuit: Groth16's phase 2 by snarkjs, all steps in one process.
//
//     node phase2.mjs --modules NODE_MODULES --r1cs FILE --ptau FILE --zkey FILE --vkey FILE
//         --name TEXT --beacon HEX --beacon-power N
//
// The steps are those of the commands `groth16 setup`, `zkey contribute`, `zkey beacon`, `zkey verify` and
// `zkey export verificationkey`. `zkey verify` makes the initial key from the constraints and the phase-1 file once
// more; here the finished key is compared with the one that setup has just made from them, which takes half the time.
// The contribution's secret comes from node:crypto and snarkjs's own generator, and never leaves this process.
//
// Output: one JSON object on stdout, {"verified": true} when the keys have been written and false when the finished
// key was refused. On any error there is one line on stderr and an exit code other than 0. Unless the key was
// verified, no output file stays.

import { randomBytes } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { parseArgs } from "node:util";

function readArguments() {
  const names = ["modules", "r1cs", "ptau", "zkey", "vkey", "name", "beacon", "beacon-power"];
  const options = Object.fromEntries(names.map((name) => [name, { type: "string" }]));
  const { values } = parseArgs({ options });
  for (const name of names) {
    if (!values[name]) throw new Error(`--${name} is missing`);
  }
  return values;
}

/** Some steps throw when they fail, others return -1 or false and leave half a file. */
function demand(step, result) {
  if (result === -1 || result === false) throw new Error(`snarkjs could not do ${step}`);
}

async function makeKeys(zKey, { r1cs, ptau, zkey, vkey, name, beacon, "beacon-power": beaconPower }) {
  const initial = { type: "bigMem" };
  const contributed = { type: "bigMem" };
  demand("the setup", await zKey.newZKey(r1cs, ptau, initial));
  demand("the contribution", await zKey.contribute(initial, contributed, name, randomBytes(64).toString("hex")));
  demand("the beacon", await zKey.beacon(contributed, zkey, undefined, beacon, beaconPower));
  const key = await zKey.exportVerificationKey(zkey);
  const verified = await zKey.verifyFromInit(initial, ptau, zkey); // leaves files open: the last to read them
  if (verified === true) writeFileSync(vkey, JSON.stringify(key, null, 1));
  return verified === true;
}

let unfinished = []; // the output files while they are not complete

function removeUnfinished() {
  for (const path of unfinished) rmSync(path, { force: true });
}

function fail(error) {
  removeUnfinished();
  process.stderr.write(`phase2: ${String(error?.message ?? error).replace(/\s+/g, " ")}\n`);
  process.exit(1);
}

async function main() {
  for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"]) {
    process.on(signal, () => fail(new Error(`stopped by ${signal}`)));
  }
  const parameters = readArguments();
  const snarkjs = createRequire(resolve(parameters.modules, "loader.js"))("snarkjs");
  console.log = () => {}; // snarkjs says there why a key is refused; stdout is for the answer
  unfinished = [parameters.zkey, parameters.vkey];
  const verified = await makeKeys(snarkjs.zKey, parameters);
  if (!verified) removeUnfinished();
  process.stdout.write(`${JSON.stringify({ verified })}\n`, () => process.exit(0)); // snarkjs's threads would stay
}

main().catch(fail);
