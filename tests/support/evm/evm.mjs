// Compiles a contract and calls its verifyProof, in memory.
//
//     node evm.mjs NODE_MODULES < {"source": text, "contract": name, "calls": [words, ...]}
//
// All arguments of verifyProof have fixed sizes, so that a call is the function's selector and its words in order
// (hexadecimal, 0x and 64 digits). Output: one JSON object, {"errors": [...], "answers": [...]}; an answer is true or
// false, or null when the call was reverted.

import { createRequire } from "node:module";
import path from "node:path";

const require = createRequire(path.resolve(process.argv[2], "loader.js"));
const solc = require("solc");
const { createEVM } = require("@ethereumjs/evm");
const { hexToBytes } = require("@ethereumjs/util");

let text = "";
for await (const part of process.stdin) text += part;
const { source, contract, calls } = JSON.parse(text);

const compiled = JSON.parse(
    solc.compile(
        JSON.stringify({
            language: "Solidity",
            sources: { "verifier.sol": { content: source } },
            settings: { outputSelection: { "*": { "*": ["evm.deployedBytecode.object", "evm.methodIdentifiers"] } } },
        }),
    ),
);
const errors = (compiled.errors ?? []).map((error) => error.formattedMessage);
const answers = [];
if (compiled.contracts) {
    const { deployedBytecode, methodIdentifiers } = compiled.contracts["verifier.sol"][contract].evm;
    const [selector] = Object.values(methodIdentifiers);
    const evm = await createEVM();
    for (const words of calls) {
        const data = hexToBytes("0x" + selector + words.map((word) => word.slice(2)).join(""));
        const code = hexToBytes("0x" + deployedBytecode.object);
        const result = await evm.runCode({ code, data, gasLimit: 10_000_000n });
        answers.push(result.exceptionError ? null : Buffer.from(result.returnValue).toString("hex").endsWith("01"));
    }
}
process.stdout.write(JSON.stringify({ errors, answers }));
