// Rows of numbers in JavaScript.

"use strict";

function sieve(size) {
  const isPrime = new Array(size).fill(true);
  for (let i = 2; i * i < size; i++) {
    if (isPrime[i]) for (let j = i * i; j < size; j += i) isPrime[j] = false;
  }
  let count = -2;
  for (const prime of isPrime) if (prime) count += 1;
  return count;
}

function moved(bodies) {
  return bodies.map((b) => {
    let ax = 0;
    let ay = 0;
    let az = 0;
    for (const o of bodies) {
      const dx = o.x - b.x;
      const dy = o.y - b.y;
      const dz = o.z - b.z;
      const square = dx * dx + dy * dy + dz * dz + 0.01;
      const strength = o.mass / (square * Math.sqrt(square));
      ax += dx * strength;
      ay += dy * strength;
      az += dz * strength;
    }
    const vx = b.vx + 0.001 * ax;
    const vy = b.vy + 0.001 * ay;
    const vz = b.vz + 0.001 * az;
    return { x: b.x + 0.001 * vx, y: b.y + 0.001 * vy, z: b.z + 0.001 * vz, vx, vy, vz, mass: b.mass };
  });
}

function nBody(size) {
  const body = (f) => ({ x: f, y: 10 / f, z: (f * f) / 7, vx: 0.1 * f, vy: 0.3 / f, vz: 0, mass: 0.5 + f });
  let bodies = [1, 2, 3, 4, 5].map(body);
  for (let i = 0; i < size; i++) bodies = moved(bodies);
  let sum = 0;
  for (const b of bodies) sum += b.mass * (b.vx * b.vx + b.vy * b.vy + b.vz * b.vz);
  return Math.trunc(sum * 1000000);
}

const element = (i, j) => 1 / (((i + j) * (i + j + 1)) / 2 + i + 1);

function multiplied(vector, at) {
  return vector.map((_, i) => {
    let sum = 0;
    for (let j = 0; j < vector.length; j++) sum += at(i, j) * vector[j];
    return sum;
  });
}

function spectralNorm(size) {
  const transposed = (i, j) => element(j, i);
  let u = new Array(size).fill(1);
  let v = u;
  for (let round = 0; round < 10; round++) {
    v = multiplied(multiplied(u, element), transposed);
    u = multiplied(multiplied(v, element), transposed);
  }
  let uv = 0;
  let vv = 0;
  for (let i = 0; i < size; i++) {
    uv += u[i] * v[i];
    vv += v[i] * v[i];
  }
  return Math.trunc(Math.sqrt(uv / vv) * 1000000);
}

function isInside(x, y) {
  let a = 0;
  let b = 0;
  for (let round = 0; round < 50; round++) {
    [a, b] = [a * a - b * b + x, 2 * a * b + y];
    if (a * a + b * b > 4) break;
  }
  return a * a + b * b <= 4;
}

function mandelbrot(size) {
  let count = 0;
  for (let i = 0; i < size; i++) {
    for (let j = 0; j < size; j++) if (isInside((3 * i) / size - 2, (2 * j) / size - 1)) count += 1;
  }
  return count;
}

function matrix(size) {
  const made = (at) => Array.from({ length: size }, (_, i) => Array.from({ length: size }, (_, j) => at(i, j)));
  const rows = made((i, j) => (i * j) % 17);
  const columns = made((i, j) => (i + j) % 13);
  const product = rows.map((row) =>
    columns.map((column) => {
      let sum = 0;
      for (let k = 0; k < size; k++) sum += row[k] * column[k];
      return sum;
    }),
  );
  let trace = 0;
  for (let i = 0; i < size; i++) trace += product[i][i];
  return trace;
}

function levenshtein(size) {
  const a = Array.from({ length: size }, (_, i) => (i * 7919) % 26);
  const b = Array.from({ length: size }, (_, i) => (i * 104729) % 29);
  let previous = Array.from({ length: size + 1 }, (_, i) => i);
  for (let i = 0; i < size; i++) {
    const row = [i + 1];
    let left = i + 1;
    for (let j = 0; j < size; j++) {
      const replaced = previous[j] + (a[i] === b[j] ? 0 : 1);
      const less = Math.min(left + 1, previous[j + 1] + 1);
      left = Math.min(replaced, less);
      row.push(left);
    }
    previous = row;
  }
  return previous[size];
}

module.exports = { sieve, nBody, spectralNorm, mandelbrot, matrix, levenshtein };
