// Three classic kernels for Node: `kernels.js KERNEL ITERATIONS REPEAT`.
//
// Each iteration runs the kernel REPEAT times. The kernels are written for this study, in the same
// way in every language of this folder.
"use strict";

const fs = require("node:fs");

const STEPS = 500;
const LENGTH = 7;
const ORDER = 30;
const DAYS = 365.24;
const MASS = 4 * Math.PI * Math.PI;
const START = [
  [0, 0, 0, 0, 0, 0, 1],
  [4.8414314424647209, -1.16032004402742839, -0.103622044471123109, 0.00166007664274403694,
    0.00769901118419740425, -0.0000690460016972063023, 0.000954791938424326609],
  [8.34336671824457987, 4.12479856412430479, -0.403523417114321381, -0.00276742510726411021,
    0.00499852801234917238, 0.0000230417297573763929, 0.000285885980666130812],
  [12.8943695621391310, -15.1111514016986312, -0.223307578892655734, 0.00296460137564761618,
    0.00237847173959480950, -0.0000296589568540237556, 0.0000436624404335156298],
  [15.3796971148509165, -25.9193146099879641, 0.179258772950371181, 0.00268067772490389322,
    0.00162824170038242295, -0.0000951592254519715870, 0.0000515138902046611451],
];

function advance(b) {
  for (let i = 0; i < b.length; i++) {
    for (let j = i + 1; j < b.length; j++) {
      const dx = b[i][0] - b[j][0];
      const dy = b[i][1] - b[j][1];
      const dz = b[i][2] - b[j][2];
      const squared = dx * dx + dy * dy + dz * dz;
      const pull = 0.01 / (squared * Math.sqrt(squared));
      b[i][3] -= dx * b[j][6] * pull;
      b[i][4] -= dy * b[j][6] * pull;
      b[i][5] -= dz * b[j][6] * pull;
      b[j][3] += dx * b[i][6] * pull;
      b[j][4] += dy * b[i][6] * pull;
      b[j][5] += dz * b[i][6] * pull;
    }
  }
  for (const body of b) for (let axis = 0; axis < 3; axis++) body[axis] += 0.01 * body[3 + axis];
}

function nbody() {
  const b = START.map((body) => body.slice());
  for (const body of b) {
    body[6] *= MASS;
    for (let axis = 3; axis < 6; axis++) body[axis] *= DAYS;
  }
  for (let axis = 3; axis < 6; axis++)
    for (let i = 1; i < b.length; i++) b[0][axis] -= (b[i][axis] * b[i][6]) / MASS;
  for (let step = 0; step < STEPS; step++) advance(b);
  let energy = 0;
  for (let i = 0; i < b.length; i++) {
    energy += 0.5 * b[i][6] * (b[i][3] ** 2 + b[i][4] ** 2 + b[i][5] ** 2);
    for (let j = i + 1; j < b.length; j++) {
      const [x, y, z] = [b[i][0] - b[j][0], b[i][1] - b[j][1], b[i][2] - b[j][2]];
      energy -= (b[i][6] * b[j][6]) / Math.sqrt(x * x + y * y + z * z);
    }
  }
  return energy;
}

function flipsOf(order) {
  const flipped = order.slice();
  let flips = 0;
  while (flipped[0] !== 0) {
    for (let low = 0, high = flipped[0]; low < high; low++, high--) {
      const swapped = flipped[low];
      flipped[low] = flipped[high];
      flipped[high] = swapped;
    }
    flips++;
  }
  return flips;
}

function fannkuch() {
  const order = Array.from({ length: LENGTH }, (_, i) => i);
  const count = new Array(LENGTH).fill(0);
  let maxFlips = 0;
  let total = 0;
  let position = LENGTH;
  for (let number = 0; ; number++) {
    for (; position !== 1; position--) count[position - 1] = position;
    const flips = flipsOf(order);
    maxFlips = Math.max(maxFlips, flips);
    total += number % 2 ? -flips : flips;
    for (;;) {
      if (position === LENGTH) return 1000 * total + maxFlips;
      const first = order[0];
      for (let i = 0; i < position; i++) order[i] = order[i + 1];
      order[position] = first;
      if (--count[position] > 0) break;
      position++;
    }
  }
}

const cell = (i, j) => 1 / (((i + j) * (i + j + 1)) / 2 + i + 1);

function multiply(vector) {
  const forward = new Float64Array(ORDER);
  const result = new Float64Array(ORDER);
  for (let i = 0; i < ORDER; i++)
    for (let j = 0; j < ORDER; j++) forward[i] += cell(i, j) * vector[j];
  for (let i = 0; i < ORDER; i++)
    for (let j = 0; j < ORDER; j++) result[i] += cell(j, i) * forward[j];
  return result;
}

function spectral() {
  let vector = new Float64Array(ORDER).fill(1);
  let product = vector;
  for (let round = 0; round < 10; round++) {
    product = multiply(vector);
    vector = multiply(product);
  }
  let numerator = 0;
  let denominator = 0;
  for (let i = 0; i < ORDER; i++) {
    numerator += vector[i] * product[i];
    denominator += product[i] * product[i];
  }
  return Math.sqrt(numerator / denominator);
}

const [name, iterations, repeat] = process.argv.slice(2);
const kernel = { nbody, fannkuch, spectral }[name];
const lines = [];
let answer = 0;
let sum = 0;
for (let i = 1; i <= Number(iterations); i++) {
  const started = process.hrtime.bigint();
  for (let j = 0; j < Number(repeat); j++) answer = kernel();
  const value = Number(process.hrtime.bigint() - started) * 1e-9;
  sum += value;
  lines.push(JSON.stringify({ metric: "iteration_s", value, iteration: i }));
}
lines.push(JSON.stringify({ metric: "iteration_s", value: sum / Number(iterations) }));
lines.push(JSON.stringify({ metric: "answer", value: answer }));
if (process.env.EQUIPOISE_METRICS)
  fs.appendFileSync(process.env.EQUIPOISE_METRICS, lines.join("\n") + "\n");
