// Makes a DEVELOPMENT Groth16 phase 1: a prepared snarkjs .ptau file on BN254, quickly.
//
//     node phase1.mjs --modules NODE_MODULES --power N --out FILE
//
// This file owns the drawing of tau, alpha and beta, the points that follow from them and the bytes
// of the .ptau file. Phase 2 (the circuit's own key) is snarkjs's work.
//
// One party, this process, knows tau. Whoever knows it can prove false statements, so the file is
// for development only, and its single contribution is named so. The secrets come from node:crypto
// and are never printed. The values kept for the work are overwritten after it; what JavaScript copied
// on the way is left to the garbage collector and goes with the process.
//
// Why it is fast: a ceremony knows tau only "in the exponent" and must run FFTs over group elements
// to get the Lagrange basis. With tau in hand every point of the file is s * G for a scalar s that
// is computed in the field, and s * G is a few additions from a table of multiples of the generator.
//
// With G, H the generators of G1, G2, n = 2^N, w_d a primitive root of unity of order 2^d, and
// L(d, i) = (1 / 2^d) * sum over j < 2^d of (tau / w_d^i)^j, the Lagrange basis at tau:
//
//     section 2   tau^i G          i < 2n - 1        section 12   L(d, i) G          d <= N + 1
//     section 3   tau^i H          i < n             section 13   L(d, i) H          d <= N
//     section 4   alpha tau^i G    i < n             section 14   alpha L(d, i) G    d <= N
//     section 5   beta tau^i G     i < n             section 15   beta L(d, i) G     d <= N
//     section 6   beta H
//
// Section 1 is the header, section 7 the contributions. Sections 12 to 15 hold the domains one after
// the other, so that L(d, i) is at position 2^d - 1 + i. Section 12 goes one domain further because
// phase 2 takes its H points from there; section 2 ends at tau^(2n - 2), so in that domain the sum
// stops one term early. Both cases are the geometric series with m terms, m = 2^d or 2^d - 1:
//
//     L(d, i) = w^i (tau^m w^(i (2^d - m)) - 1) / (2^d (tau - w^i))          w = w_d
//
// Points are affine, both coordinates little-endian in Montgomery form ("LEM" in snarkjs).
//
// Output: one JSON object per line on stdout; {"event":"done",...} is the last. On any error there
// is one line on stderr, an exit code other than 0 and no output file.

import { createHash, randomBytes } from "node:crypto";
import { closeSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";

const SNARKJS_VERSION = "0.7.6"; // the version whose internals loadSnarkjs takes
const CONTRIBUTION_NAME = "DEVELOPMENT ONLY: one party knows tau"; // the format allows 64 bytes
const MAXIMUM_POWER = 22;
const MAXIMUM_WORKERS = 16; // each holds its own tables, up to 110 MB
const MAXIMUM_WINDOW_BITS = 15;
const CHUNK_POINTS = 1024; // enough to make a shared inversion cheap, and fits the processor's cache
const PROGRESS_INTERVAL_MS = 250;

const SCALAR_BITS = 254; // scalars are below r < 2^254
const SCALAR_BYTES = 32;
const GROUPS = {
  G1: { curvePrefix: "g1m", fieldPrefix: "f1m", coordinateBytes: 32, pointBytes: 64 },
  G2: { curvePrefix: "g2m", fieldPrefix: "f2m", coordinateBytes: 64, pointBytes: 128 },
};

// ---------------------------------------------------------------------------------------------
// Worker threads: scalars and points
// ---------------------------------------------------------------------------------------------

/** The curve's wasm module with a memory that grows. Values are addressed by pointer. */
class Heap {
  // The module's batch functions take scratch space after the last allocation and never grow the
  // memory. The largest is an inversion of CHUNK_POINTS + 1 elements of 64 bytes.
  static SCRATCH_BYTES = 256 * (CHUNK_POINTS + 1);
  static PAGE_BYTES = 65536;

  constructor(code) {
    this.memory = new WebAssembly.Memory({ initial: 32 });
    const module = new WebAssembly.Module(code);
    this.wasm = new WebAssembly.Instance(module, { env: { memory: this.memory } }).exports;
  }

  allocate(byteLength) {
    const freePointer = () => new Uint32Array(this.memory.buffer, 0, 1); // the module's own, at 0
    const pointer = Math.ceil(freePointer()[0] / 8) * 8;
    const end = pointer + byteLength;
    const missing = end + Heap.SCRATCH_BYTES - this.memory.buffer.byteLength;
    if (missing > 0) this.memory.grow(Math.ceil(missing / Heap.PAGE_BYTES));
    freePointer()[0] = end;
    return pointer;
  }

  /** Moves bytes in: the original is overwritten, because it may be a secret. */
  take(bytes) {
    const pointer = this.allocate(bytes.byteLength);
    this.bytes(pointer, bytes.byteLength).set(bytes);
    bytes.fill(0);
    return pointer;
  }

  bytes(pointer, byteLength) {
    return new Uint8Array(this.memory.buffer, pointer, byteLength);
  }

  wipe() {
    new Uint8Array(this.memory.buffer).fill(0);
  }
}

/** Many multiples of one generator at a time, from a table with one row per window of bits. */
class FixedBase {
  constructor(heap, group, generator, windowBits) {
    const { curvePrefix, fieldPrefix, coordinateBytes, pointBytes } = GROUPS[group];
    const { wasm } = heap;
    this.heap = heap;
    this.coordinateBytes = coordinateBytes;
    this.pointBytes = pointBytes;
    this.isZeroAffine = wasm[`${curvePrefix}_isZeroAffine`];
    this.copyAffine = wasm[`${curvePrefix}_copyAffine`];
    this.field = {
      copy: wasm[`${fieldPrefix}_copy`],
      subtract: wasm[`${fieldPrefix}_sub`],
      multiply: wasm[`${fieldPrefix}_mul`],
      square: wasm[`${fieldPrefix}_square`],
      batchInverse: wasm[`${fieldPrefix}_batchInverse`],
    };

    this.accumulators = heap.allocate(CHUNK_POINTS * pointBytes);
    this.differences = heap.allocate(CHUNK_POINTS * coordinateBytes);
    this.inverses = heap.allocate(CHUNK_POINTS * coordinateBytes);
    this.slope = heap.allocate(coordinateBytes);
    this.resultX = heap.allocate(coordinateBytes);
    this.resultY = heap.allocate(coordinateBytes);
    this.leftPointers = new Uint32Array(CHUNK_POINTS);
    this.rightPointers = new Uint32Array(CHUNK_POINTS);
    this.sumPointers = new Uint32Array(CHUNK_POINTS);
    this.queued = 0;

    this.windows = [];
    for (let shift = 0; shift < SCALAR_BITS; shift += windowBits) {
      const bits = Math.min(windowBits, SCALAR_BITS - shift);
      this.windows.push({ shift, bits, mask: 2 ** bits - 1, row: heap.allocate(2 ** bits * pointBytes) });
    }
    this.fillRows(this.powersOfTwo(curvePrefix, heap.take(generator)), windowBits);
  }

  /** Affine 2^i * generator for every bit i of a scalar. */
  powersOfTwo(curvePrefix, generator) {
    const { wasm } = this.heap;
    const jacobianBytes = 3 * this.coordinateBytes;
    const points = this.heap.allocate(SCALAR_BITS * jacobianBytes);
    wasm[`${curvePrefix}_toJacobian`](generator, points);
    for (let bit = 1; bit < SCALAR_BITS; bit++) {
      const point = points + bit * jacobianBytes;
      wasm[`${curvePrefix}_double`](point - jacobianBytes, point);
    }
    wasm[`${curvePrefix}_batchToAffine`](points, SCALAR_BITS, points);
    return points;
  }

  /** Entry d of a row becomes d * 2^shift * generator; entry 0 stays unused. */
  fillRows(powersOfTwo, windowBits) {
    for (let bit = 0; bit < windowBits; bit++) {
      for (const { shift, bits, row } of this.windows) {
        if (bit >= bits) continue;
        const highest = row + 2 ** bit * this.pointBytes;
        this.copyAffine(powersOfTwo + (shift + bit) * this.pointBytes, highest);
        for (let offset = this.pointBytes; row + offset < highest; offset += this.pointBytes) {
          this.queueAddition(highest, row + offset, highest + offset);
        }
      }
      this.addQueued(); // the next bit adds to what this one made
    }
  }

  /** Takes `count` scalars in ordinary form; returns the pointer to their affine points. */
  multiply(scalars, count) {
    const { heap, accumulators, pointBytes } = this;
    heap.bytes(accumulators, count * pointBytes).fill(0); // all zeros is the point at infinity
    const view = new DataView(heap.memory.buffer);
    for (const { shift, mask, row } of this.windows) {
      for (let i = 0; i < count; i++) {
        const word = view.getUint32(scalars + i * SCALAR_BYTES + (shift >>> 3), true);
        const digit = (word >>> (shift & 7)) & mask;
        if (digit === 0) continue;
        const accumulator = accumulators + i * pointBytes;
        const entry = row + digit * pointBytes;
        if (this.isZeroAffine(accumulator)) this.copyAffine(entry, accumulator);
        else this.queueAddition(accumulator, entry, accumulator);
      }
      this.addQueued(); // the next window adds to the same accumulators
    }
    return accumulators;
  }

  queueAddition(left, right, sum) {
    if (this.queued === CHUNK_POINTS) this.addQueued();
    this.leftPointers[this.queued] = left;
    this.rightPointers[this.queued] = right;
    this.sumPointers[this.queued] = sum;
    this.queued++;
  }

  // The affine chord formula; one inversion serves the whole queue. It needs two points with
  // different x, that is a * G and b * G with a != b and a != -b modulo r. That holds for all queued
  // pairs: in a row, a - b and a + b are 2^shift times a number between 0 and 2^bits; in an
  // accumulation, b is a multiple of 2^shift, 0 < a < 2^shift and a + b is at most the scalar, < r.
  addQueued() {
    const { coordinateBytes, differences, inverses, slope, resultX, resultY, queued } = this;
    const { copy, subtract, multiply, square, batchInverse } = this.field;
    if (queued === 0) return;
    for (let i = 0; i < queued; i++) {
      subtract(this.rightPointers[i], this.leftPointers[i], differences + i * coordinateBytes);
    }
    batchInverse(differences, coordinateBytes, queued, inverses, coordinateBytes);
    for (let i = 0; i < queued; i++) {
      const left = this.leftPointers[i];
      const right = this.rightPointers[i];
      const sum = this.sumPointers[i];
      subtract(right + coordinateBytes, left + coordinateBytes, resultY);
      multiply(resultY, inverses + i * coordinateBytes, slope);
      square(slope, resultX);
      subtract(resultX, left, resultX);
      subtract(resultX, right, resultX);
      subtract(left, resultX, resultY);
      multiply(resultY, slope, resultY);
      subtract(resultY, left + coordinateBytes, sum + coordinateBytes); // y first: sum may be left
      copy(resultX, sum);
    }
    this.queued = 0;
  }
}

/** The scalars of a range of positions of a section, in Montgomery form. */
class Scalars {
  constructor(heap, { tau, factors, domains }) {
    this.heap = heap;
    this.tau = heap.take(tau);
    this.factors = Object.fromEntries(
      Object.entries(factors).map(([name, value]) => [name, heap.take(value)]),
    );
    this.domains = domains.map(({ root, scale, truncatedPower }) => ({
      root: heap.take(root),
      scale: heap.take(scale),
      truncatedPower: truncatedPower && heap.take(truncatedPower),
    }));
    this.values = heap.allocate(CHUNK_POINTS * SCALAR_BYTES);
    this.differences = heap.allocate(CHUNK_POINTS * SCALAR_BYTES);
    this.exponent = heap.allocate(8);
    this.scale = heap.allocate(SCALAR_BYTES);
    this.term = heap.allocate(SCALAR_BYTES);
    this.one = heap.allocate(SCALAR_BYTES);
    heap.wasm.frm_one(this.one);
  }

  /** Returns the pointer to the scalars of positions first ... first + count - 1. */
  range({ basis, factor, first, count }) {
    if (basis === "powers") {
      this.geometric(this.values, this.tau, first, count);
      this.scaleAll(this.values, count, this.factors[factor]);
    } else {
      this.lagrange(this.factors[factor], first, count);
    }
    return this.values;
  }

  lagrange(factor, first, count) {
    const { frm_mul } = this.heap.wasm;
    let position = first;
    while (position < first + count) {
      const power = 31 - Math.clz32(position + 1); // position = 2^power - 1 + index
      const index = position + 1 - 2 ** power;
      const length = Math.min(first + count - position, 2 ** power - index);
      const values = this.values + (position - first) * SCALAR_BYTES;
      this.lagrangeOfDomain(values, this.domains[power], index, length);
      frm_mul(factor, this.domains[power].scale, this.scale);
      this.scaleAll(values, length, this.scale);
      position += length;
    }
  }

  /** w^i / (tau - w^i), in a truncated domain times (tau^m w^i - 1). */
  lagrangeOfDomain(values, { root, truncatedPower }, index, length) {
    const { frm_mul, frm_sub, frm_batchInverse } = this.heap.wasm;
    const { differences, term } = this;
    this.geometric(values, root, index, length);
    for (let i = 0; i < length; i++) {
      frm_sub(this.tau, values + i * SCALAR_BYTES, differences + i * SCALAR_BYTES);
    }
    frm_batchInverse(differences, SCALAR_BYTES, length, differences, SCALAR_BYTES);
    for (let i = 0; i < length; i++) {
      const value = values + i * SCALAR_BYTES;
      if (truncatedPower !== undefined) {
        frm_mul(truncatedPower, value, term);
        frm_sub(term, this.one, term);
        frm_mul(value, term, value);
      }
      frm_mul(value, differences + i * SCALAR_BYTES, value);
    }
  }

  /** base^first, base^(first + 1), ... */
  geometric(values, base, first, count) {
    const { frm_exp, frm_mul } = this.heap.wasm;
    new DataView(this.heap.memory.buffer).setUint32(this.exponent, first, true);
    frm_exp(base, this.exponent, 4, values);
    for (let i = 1; i < count; i++) {
      const value = values + i * SCALAR_BYTES;
      frm_mul(value - SCALAR_BYTES, base, value);
    }
  }

  scaleAll(values, count, scale) {
    const { frm_mul } = this.heap.wasm;
    for (let i = 0; i < count; i++) {
      const value = values + i * SCALAR_BYTES;
      frm_mul(value, scale, value);
    }
  }
}

/** Answers each task with its points; a null ends the thread. */
function runWorker({ code, generators, windowBits, secrets }) {
  const heap = new Heap(code);
  const scalars = new Scalars(heap, secrets);
  const bases = {};
  parentPort.on("message", (task) => {
    if (task === null) {
      heap.wipe();
      parentPort.close();
      return;
    }
    const { group, count } = task;
    bases[group] ??= new FixedBase(heap, group, generators[group], windowBits[group]);
    const values = scalars.range(task);
    heap.wasm.frm_batchFromMontgomery(values, count, values);
    const points = bases[group].multiply(values, count);
    const answer = heap.bytes(points, count * GROUPS[group].pointBytes).slice();
    parentPort.postMessage(answer, [answer.buffer]);
  });
}

// ---------------------------------------------------------------------------------------------
// Main thread: secrets, order of work, file
// ---------------------------------------------------------------------------------------------

/** One thread per processor; every idle thread takes the next task. */
class WorkerPool {
  constructor(size, sharedData) {
    this.waiting = [];
    this.idle = [];
    this.workers = Array.from({ length: size }, () => this.start(sharedData));
  }

  start(sharedData) {
    const worker = new Worker(new URL(import.meta.url), { workerData: sharedData });
    worker.on("error", fail);
    worker.on("message", (points) => {
      worker.resolve(points);
      this.idle.push(worker);
      this.dispatch();
    });
    this.idle.push(worker);
    return worker;
  }

  /** Resolves to the points of the task. */
  run(task) {
    return new Promise((resolve) => {
      this.waiting.push({ task, resolve });
      this.dispatch();
    });
  }

  dispatch() {
    while (this.idle.length > 0 && this.waiting.length > 0) {
      const worker = this.idle.pop();
      const { task, resolve } = this.waiting.shift();
      worker.resolve = resolve;
      worker.postMessage(task);
    }
  }

  /** Lets the threads wipe their memory and end. */
  async close() {
    await Promise.all(
      this.workers.map((worker) => {
        const exited = new Promise((resolve) => worker.once("exit", resolve));
        worker.postMessage(null);
        return exited;
      }),
    );
  }
}

/** A new binary file with the members that snarkjs's section writers use. */
class PtauFile {
  constructor(path) {
    this.descriptor = openSync(path, "wx+", 0o644); // readable too, for the hash of the powers
    this.pos = 0;
  }

  write(bytes, position = this.pos) {
    for (let done = 0; done < bytes.byteLength; ) {
      done += writeSync(this.descriptor, bytes, done, bytes.byteLength - done, position + done);
    }
    this.pos = position + bytes.byteLength;
  }

  writeULE32(value, position) {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value);
    this.write(bytes, position);
  }

  writeULE64(value, position) {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(BigInt(value));
    this.write(bytes, position);
  }

  read(byteLength, position) {
    const bytes = new Uint8Array(byteLength);
    for (let done = 0; done < byteLength; ) {
      const count = readSync(this.descriptor, bytes, done, byteLength - done, position + done);
      if (count === 0) throw new Error("the output file was shortened while it was written");
      done += count;
    }
    return bytes;
  }

  close() {
    closeSync(this.descriptor);
  }
}

/** The sections with points: first the powers of tau, then their Lagrange basis. */
function sectionsOf(power) {
  const size = 2 ** power;
  return {
    powers: [
      { id: 2, group: "G1", basis: "powers", factor: "one", count: 2 * size - 1 },
      { id: 3, group: "G2", basis: "powers", factor: "one", count: size },
      { id: 4, group: "G1", basis: "powers", factor: "alpha", count: size },
      { id: 5, group: "G1", basis: "powers", factor: "beta", count: size },
      { id: 6, group: "G2", basis: "powers", factor: "beta", count: 1 },
    ],
    lagrange: [
      { id: 12, group: "G1", basis: "lagrange", factor: "one", count: 4 * size - 1 },
      { id: 13, group: "G2", basis: "lagrange", factor: "one", count: 2 * size - 1 },
      { id: 14, group: "G1", basis: "lagrange", factor: "alpha", count: 2 * size - 1 },
      { id: 15, group: "G1", basis: "lagrange", factor: "beta", count: 2 * size - 1 },
    ],
  };
}

function countPoints(sections) {
  return sections.reduce((sum, { count }) => sum + count, 0);
}

function* chunksOf(count) {
  for (let first = 0; first < count; first += CHUNK_POINTS) {
    yield { first, count: Math.min(CHUNK_POINTS, count - first) };
  }
}

/** A uniform non-zero element of Fr, in Montgomery form: 64 random bytes modulo r. */
function drawScalar(Fr) {
  let scalar;
  do {
    const bytes = randomBytes(64);
    // toMontgomery multiplies by 2^256: once for the low half, once more for the weight of the high.
    const low = Fr.toMontgomery(bytes.subarray(0, 32));
    const high = Fr.toMontgomery(Fr.toMontgomery(bytes.subarray(32)));
    scalar = Fr.add(low, high);
    bytes.fill(0);
  } while (Fr.isZero(scalar));
  return scalar;
}

function drawSecrets(Fr, power) {
  const root = Fr.w[power + 1];
  let tau;
  do {
    tau = drawScalar(Fr); // a root of unity would be a point of the domain: L(d, i) divides by zero
  } while (Fr.eq(Fr.exp(tau, 2 ** (power + 1)), Fr.one));
  return {
    tau, // public values are copied beside it, because wipeSecrets overwrites all of this
    factors: { one: Fr.one.slice(), alpha: drawScalar(Fr), beta: drawScalar(Fr) },
    domains: lagrangeDomains(Fr, tau, power),
  };
}

/** For every domain its root and what does not depend on i in the formula for L(d, i). */
function lagrangeDomains(Fr, tau, power) {
  const domains = [];
  let tauToSize = tau;
  for (let d = 0; d <= power; d++) {
    const scale = Fr.div(Fr.sub(tauToSize, Fr.one), Fr.e(2 ** d));
    domains.push({ root: Fr.w[d].slice(), scale });
    tauToSize = Fr.square(tauToSize);
  }
  domains.push({
    root: Fr.w[power + 1].slice(),
    scale: Fr.inv(Fr.e(2 ** (power + 1))),
    truncatedPower: Fr.div(tauToSize, tau),
  });
  return domains;
}

function wipeSecrets({ tau, factors, domains }) {
  const values = [tau, ...Object.values(factors), ...domains.flatMap(Object.values)];
  for (const value of values) value.fill(0);
}

/** The window with the fewest additions, where a table entry costs one, as does each window of a point. */
function bestWindowBits(points) {
  const additions = (bits) => Math.ceil(SCALAR_BITS / bits) * (2 ** bits + points);
  let best = 1;
  for (let bits = 2; bits <= MAXIMUM_WINDOW_BITS; bits++) {
    if (additions(bits) < additions(best)) best = bits;
  }
  return best;
}

function startPool(curve, secrets, sections) {
  const processors = os.availableParallelism?.() ?? os.cpus().length; // Node 18.0 lacks the first
  const tasks = sections.reduce((sum, { count }) => sum + Math.ceil(count / CHUNK_POINTS), 0);
  const size = Math.min(processors, tasks, MAXIMUM_WORKERS);
  const windowBits = {};
  const generators = {};
  for (const group of Object.keys(GROUPS)) {
    const points = countPoints(sections.filter((section) => section.group === group));
    windowBits[group] = bestWindowBits(points / size);
    generators[group] = curve[group].gAffine;
  }
  return new WorkerPool(size, { code: curve.tm.code, generators, windowBits, secrets });
}

/** Writes a section's points in order and passes each chunk of them on. */
async function writeSection(file, pool, section, onPoints) {
  const { id, group, basis, factor, count } = section;
  file.writeULE32(id);
  file.writeULE64(count * GROUPS[group].pointBytes);
  section.start = file.pos; // for reading the points back
  const results = [];
  const writeNext = async () => {
    const points = await results.shift();
    file.write(points);
    await onPoints(points);
  };
  for (const chunk of chunksOf(count)) {
    // Two chunks per worker keep all of them busy; more would only take memory.
    if (results.length === 2 * pool.workers.length) await writeNext();
    results.push(pool.run({ group, basis, factor, ...chunk }));
  }
  while (results.length > 0) await writeNext();
}

function readPoint(file, section, index) {
  const { pointBytes } = GROUPS[section.group];
  return file.read(pointBytes, section.start + index * pointBytes);
}

/** The challenge the first contributor answers: the hash of the file for tau = alpha = beta = 1. */
function firstChallenge(curve, powers) {
  const hasher = createHash("blake2b512").update(createHash("blake2b512").digest());
  for (const { group, count } of powers) {
    const generator = curve[group].toUncompressed(curve[group].gAffine);
    const block = Buffer.alloc(CHUNK_POINTS * generator.length, generator);
    for (const chunk of chunksOf(count)) hasher.update(block.subarray(0, chunk.count * generator.length));
  }
  return new Uint8Array(hasher.digest());
}

/** The challenge for a next contributor: the hash of the response and of all powers in the file. */
async function nextChallenge(curve, file, powers, response) {
  const hasher = createHash("blake2b512").update(response);
  for (const { group, count, start } of powers) {
    const { pointBytes } = GROUPS[group];
    for (const chunk of chunksOf(count)) {
      const points = file.read(chunk.count * pointBytes, start + chunk.first * pointBytes);
      hasher.update(await curve[group].batchLEMtoU(points));
    }
  }
  return new Uint8Array(hasher.digest());
}

/** Shows that x is known: s and x s in G1, and x p in G2 for a p that s, x s and the challenge fix. */
function proveKnowledge(snarkjs, curve, secret, personalization, challenge) {
  const { G1, G2, Fr } = curve;
  const g1_s = G1.toAffine(G1.timesFr(G1.gAffine, drawScalar(Fr)));
  const g1_sx = G1.toAffine(G1.timesFr(g1_s, secret));
  const g2_sp = snarkjs.getG2sp(curve, personalization, challenge, g1_s, g1_sx);
  const g2_spx = G2.toAffine(G2.timesFr(g2_sp, secret));
  return { g1_s, g1_sx, g2_spx };
}

async function writePtau(snarkjs, curve, power, file, onProgress) {
  const { powers, lagrange } = sectionsOf(power);
  const sections = [...powers, ...lagrange];
  const total = countPoints(sections);
  let done = 0;
  const countChunk = ({ group }, points) => {
    done += points.byteLength / GROUPS[group].pointBytes;
    onProgress(done, total);
  };

  const secrets = drawSecrets(curve.Fr, power);
  const pool = startPool(curve, secrets, sections);
  const challenge = firstChallenge(curve, powers);
  const key = {
    tau: proveKnowledge(snarkjs, curve, secrets.tau, 0, challenge),
    alpha: proveKnowledge(snarkjs, curve, secrets.factors.alpha, 1, challenge),
    beta: proveKnowledge(snarkjs, curve, secrets.factors.beta, 2, challenge),
  };
  wipeSecrets(secrets); // the workers have copies of their own

  file.write(Buffer.from("ptau"));
  file.writeULE32(1); // version of the format
  file.writeULE32(sections.length + 2); // those with points, the header and the contributions
  await snarkjs.writePTauHeader(file, curve, power);

  // The response is the compressed powers and then the key; the file keeps the state between them.
  const responseHasher = snarkjs.blake2b.create({ dkLen: 64 }).update(challenge);
  for (const section of powers) {
    await writeSection(file, pool, section, async (points) => {
      responseHasher.update(await curve[section.group].batchLEMtoC(points));
      countChunk(section, points);
    });
  }
  const partialHash = snarkjs.toPartialHash(responseHasher);
  const keyBytes = new Uint8Array(6 * GROUPS.G1.pointBytes + 3 * GROUPS.G2.pointBytes);
  responseHasher.update(snarkjs.toPtauPubKeyRpr(keyBytes, 0, curve, key, false));

  const [tauG1, tauG2, alphaTauG1, betaTauG1, betaG2] = powers;
  await snarkjs.writeContributions(file, curve, [
    {
      name: CONTRIBUTION_NAME,
      tauG1: readPoint(file, tauG1, 1),
      tauG2: readPoint(file, tauG2, 1),
      alphaG1: readPoint(file, alphaTauG1, 0),
      betaG1: readPoint(file, betaTauG1, 0),
      betaG2: readPoint(file, betaG2, 0),
      key,
      partialHash,
      nextChallenge: await nextChallenge(curve, file, powers, responseHasher.digest()),
    },
  ]);

  for (const section of lagrange) {
    await writeSection(file, pool, section, (points) => countChunk(section, points));
  }
  await pool.close();
  curve.tm.u8.fill(0); // the secrets passed through the curve's memory
  return total;
}

/** The parts of snarkjs that know the format, from the given node_modules folder. */
async function loadSnarkjs(modules) {
  const require = createRequire(resolve(modules, "snarkjs", "package.json"));
  let version;
  try {
    ({ version } = require("./package.json"));
  } catch {
    throw new Error(`no snarkjs in ${modules}`);
  }
  if (version !== SNARKJS_VERSION) {
    throw new Error(`snarkjs ${SNARKJS_VERSION} is needed, ${modules} has ${version}`);
  }
  const load = (name) => import(pathToFileURL(require.resolve(`./src/${name}.js`)));
  const { getCurveFromName } = await load("curves");
  const { getG2sp } = await load("keypair");
  const { toPartialHash } = await load("misc");
  const { toPtauPubKeyRpr, writeContributions, writePTauHeader } = await load("powersoftau_utils");
  const { blake2b } = require("@noble/hashes/blake2b"); // the one whose state toPartialHash takes
  return {
    blake2b,
    getCurveFromName,
    getG2sp,
    toPartialHash,
    toPtauPubKeyRpr,
    writeContributions,
    writePTauHeader,
  };
}

function readArguments() {
  const string = { type: "string" };
  const { values } = parseArgs({ options: { modules: string, power: string, out: string } });
  for (const name of ["modules", "power", "out"]) {
    if (!values[name]) throw new Error(`--${name} is missing`);
  }
  const power = Number(values.power);
  if (!/^[0-9]+$/.test(values.power) || power < 1 || power > MAXIMUM_POWER) {
    throw new Error(`--power must be a whole number from 1 to ${MAXIMUM_POWER}`);
  }
  return { modules: values.modules, power, out: values.out };
}

function emit(event) {
  process.stdout.write(`${JSON.stringify(event)}\n`);
}

function progressReporter() {
  let last = -Infinity;
  return (done, total) => {
    const now = performance.now();
    if (now - last < PROGRESS_INTERVAL_MS && done < total) return;
    last = now;
    emit({ event: "progress", done, total });
  };
}

let unfinishedFile; // the path of the output file while it exists and is not complete

function removeUnfinishedFile() {
  if (unfinishedFile !== undefined) rmSync(unfinishedFile, { force: true });
}

function fail(error) {
  removeUnfinishedFile();
  process.stderr.write(`phase1: ${String(error.message).replace(/\s+/g, " ")}\n`);
  process.exit(1);
}

async function main() {
  process.stdout.on("error", fail); // nobody reads the progress: the caller is gone
  for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"]) {
    process.on(signal, () => fail(new Error(`stopped by ${signal}`)));
  }
  const { modules, power, out } = readArguments();
  const snarkjs = await loadSnarkjs(modules);
  const curve = await snarkjs.getCurveFromName("bn128", { singleThread: true });
  const file = new PtauFile(out);
  unfinishedFile = out;
  const points = await writePtau(snarkjs, curve, power, file, progressReporter());
  file.close();
  unfinishedFile = undefined;
  emit({ event: "done", power, points });
}

if (isMainThread) main().catch(fail);
else runWorker(workerData);
