// A long-lived snarkjs: requests as JSON lines on stdin, answers as JSON lines on stdout.
//
//   {"id": 1, "method": "prove",  "inputs": {...}, "wasm": path, "zkey": path}
//   {"id": 2, "method": "verify", "key": {...}, "publicSignals": [...], "proof": {...}}
//
// Answers carry the id, and `result` or `error`; requests are answered as they finish. Inputs arrive on stdin only,
// so that no other user sees them, and nothing is logged. The worker ends when its stdin does: it cannot outlive
// the process that started it.
//
// Usage: node worker.mjs NODE_MODULES

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import path from "node:path";

const snarkjs = createRequire(path.resolve(process.argv[2], "loader.js"))("snarkjs");

// What a circuit logs may show secrets, and stdout is for answers.
console.log = () => {};

const methods = {
    async prove({ inputs, wasm, zkey }) {
        const { proof, publicSignals } = await snarkjs.groth16.fullProve(inputs, wasm, zkey);
        return { proof, publicSignals };
    },
    async verify({ key, publicSignals, proof }) {
        return snarkjs.groth16.verify(key, publicSignals, proof);
    },
};

async function answer(line) {
    const { id, method, ...parameters } = JSON.parse(line);
    let reply;
    try {
        reply = { id, result: await methods[method](parameters) };
    } catch (error) {
        // The first line names the template that refused; later ones may repeat values.
        reply = { id, error: String(error?.message ?? error).split("\n").slice(0, 2).join(" ").slice(0, 500) };
    }
    process.stdout.write(JSON.stringify(reply) + "\n");
}

const lines = createInterface({ input: process.stdin });
lines.on("line", answer);
lines.on("close", () => process.exit(0));
process.stdout.write(JSON.stringify({ id: 0, result: "ready" }) + "\n");
