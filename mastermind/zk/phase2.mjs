// Does steps of Groth16's phase 2 by snarkjs, for one circuit or several, all in one process.
//
//     node phase2.mjs --modules NODE_MODULES < STEPS
//
// STEPS is a JSON list, and each step one of
//
//     {"do": "setup",      "r1cs": FILE, "ptau": FILE, "zkey": NEW FILE}              `groth16 setup`
//     {"do": "contribute", "from": FILE, "to": NEW FILE, "name": TEXT}                `zkey contribute`
//     {"do": "beacon",     "from": FILE, "to": NEW FILE, "value": HEX, "power": N}    `zkey beacon`
//     {"do": "verify",     "initial": FILE, "ptau": FILE, "zkey": FILE}               `zkey verify`
//     {"do": "export",     "zkey": FILE, "vkey": NEW FILE}                            `zkey export verificationkey`
//
// `initial` is a key that an earlier step has made here from the constraints and the phase-1 file. The secret of a
// contribution comes from node:crypto and snarkjs's own generator, and never leaves this process.
//
// Output: a JSON list on stdout with one entry for each step done: null, or for a verification "" when the key is
// right and the reason when it is not; a refusal ends the work. On any error there is one line on stderr and an exit
// code other than 0. The caller gives new files in a folder that it throws away unless all is well.

import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { parseArgs } from "node:util";

/** Some steps throw when they fail, others return -1 or false and leave half a file. */
function demand(step, result) {
  if (result === -1 || result === false) throw new Error(`snarkjs could not do ${step}`);
}

let said = []; // what snarkjs says: the last of it is why a key is refused
const listener = { debug() {}, info() {}, warn() {}, error: (text) => said.push(String(text)) };

const steps = {
  async setup(zKey, { r1cs, ptau, zkey }) {
    demand("the setup", await zKey.newZKey(r1cs, ptau, zkey));
    return null;
  },
  async contribute(zKey, { from, to, name }) {
    demand("the contribution", await zKey.contribute(from, to, name, randomBytes(64).toString("hex")));
    return null;
  },
  async beacon(zKey, { from, to, value, power }) {
    demand("the beacon", await zKey.beacon(from, to, undefined, value, power));
    return null;
  },
  async verify(zKey, { initial, ptau, zkey }) {
    said = [];
    try {
      if ((await zKey.verifyFromInit(initial, ptau, zkey, listener)) === true) return "";
    } catch (error) {
      said.push(String(error?.message ?? error)); // a point or a section that it cannot read
    }
    return said.at(-1) || "snarkjs refuses it";
  },
  async export(zKey, { zkey, vkey }) {
    writeFileSync(vkey, JSON.stringify(await zKey.exportVerificationKey(zkey), null, 1));
    return null;
  },
};

function fail(error) {
  process.stderr.write(`phase2: ${String(error?.message ?? error).replace(/\s+/g, " ")}\n`);
  process.exit(1);
}

async function main() {
  const { values } = parseArgs({ options: { modules: { type: "string" } } });
  if (!values.modules) throw new Error("--modules is missing");
  const asked = JSON.parse(readFileSync(0, "utf8"));
  const snarkjs = createRequire(resolve(values.modules, "loader.js"))("snarkjs");
  console.log = (text) => said.push(String(text)); // stdout is for the answer
  const results = [];
  for (const { do: step, ...parameters } of asked) {
    results.push(await steps[step](snarkjs.zKey, parameters));
    if (results.at(-1)) break;
  }
  process.stdout.write(`${JSON.stringify(results)}\n`, () => process.exit(0)); // snarkjs's threads would stay
}

main().catch(fail);
