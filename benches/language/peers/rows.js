// The rows of the benchmark in JavaScript: for each name how to make the data, and how to run the row.

"use strict";

const readline = require("node:readline");
const numeric = require("./numeric.js");

const numbers = (size) => Array.from({ length: size }, (_, i) => i);
const same = (size) => size;
const nothing = () => 0;

function counted(counts, key, by) {
  counts.set(key, (counts.get(key) ?? 0) + by);
}

function group(people) {
  const counts = new Map();
  for (const p of people) counted(counts, p.name, 1);
  return counts.size * 10000000 + (counts.get("name7") ?? 0);
}

function buildList(size) {
  const all = [];
  for (let i = 0; i < size; i++) all.push(i * 2);
  return all.length + all[all.length - 1];
}

function buildText(size) {
  let all = "";
  for (let i = 0; i < size; i++) all += `<${i % 10}>`;
  return all.length;
}

function buildMap(size) {
  const all = new Map();
  for (let i = 0; i < size; i++) all.set(i, i * 2);
  return all.size + (all.get(7) ?? 0);
}

function words(page) {
  const counts = new Map();
  for (const word of page.split(/\s+/)) counted(counts, word, 1);
  return counts.size * 100000 + (counts.get("word7") ?? 0);
}

function groupBy(all) {
  const groups = new Map();
  for (const i of all) {
    const found = groups.get(i % 1000);
    if (found) found.push(i);
    else groups.set(i % 1000, [i]);
  }
  let longest = 0;
  for (const found of groups.values()) longest = Math.max(longest, found.length);
  return groups.size + longest;
}

function sort(pairs) {
  const byNumberThenName = (a, b) => a[0] - b[0] || (a[1] < b[1] ? -1 : a[1] > b[1] ? 1 : 0);
  const sorted = [...pairs].sort(byNumberThenName);
  return sorted[0][0] + sorted[Math.floor(sorted.length / 2)][0];
}

// JavaScript writes a whole float without a fraction, so the doubled price is 0.5: all write the same characters.
function json(document) {
  const changed = JSON.parse(document).map((item) => ({
    id: item.id + 1,
    name: item.name.toUpperCase(),
    price: item.price * 2.0,
    tags: [item.name],
  }));
  return JSON.stringify(changed).length;
}

function csv(table) {
  const sums = new Map();
  const [, ...rows] = table.trimEnd().split("\n");
  for (const row of rows) {
    const [, city, amount] = row.split(",");
    counted(sums, city, Number.parseInt(amount, 10));
  }
  return sums.size * 1000000000 + (sums.get("city5") ?? 0);
}

const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const escaped = (text) => text.replace(/[&<>"']/g, (found) => ESCAPES[found]);

function template(names) {
  const rows = names.map((name) => `<li class="row"><b>${escaped(name)}</b></li>`);
  return `<ul>${rows.join("\n")}</ul>`.length;
}

function integerLoop(n) {
  let i = 0;
  let sum = 0;
  do {
    sum = (sum + i * i) % 1000003;
    i += 1;
  } while (i < n);
  return sum;
}

function collatz(size) {
  let longest = 0;
  for (let start = 1; start < size; start++) {
    let n = start;
    let steps = 1;
    do {
      n = n % 2 === 0 ? n / 2 : 3 * n + 1;
      steps += 1;
    } while (n !== 1);
    longest = Math.max(longest, steps);
  }
  return longest;
}

const ROWS = {
  group: [(size) => numbers(size).map((i) => ({ name: `name${(i * 7919) % 1000}`, age: i % 90, score: 0.5 })), group],
  build_list: [same, buildList],
  build_text: [same, buildText],
  build_map: [same, buildMap],
  words: [(size) => numbers(size).map((i) => `word${(i * 7919) % 5003}`).join(" "), words],
  group_by: [numbers, groupBy],
  sort: [(size) => numbers(size).map((i) => [(i * 7919) % 1000003, `name${i % 100}`]), sort],
  json: [
    (size) =>
      JSON.stringify(numbers(size).map((i) => ({ id: i, name: `item ${i}`, price: 0.25, tags: ["a", `b${i % 10}`] }))),
    json,
  ],
  csv: [
    (size) => `id,city,amount\n${numbers(size).map((i) => `${i},city${(i * 31) % 97},${i % 1000}`).join("\n")}\n`,
    csv,
  ],
  template: [(size) => numbers(size).map((i) => `<name> & ${i}`), template],
  integer_loop: [same, integerLoop],
  collatz: [same, collatz],
  sieve: [same, numeric.sieve],
  n_body: [same, numeric.nBody],
  spectral_norm: [same, numeric.spectralNorm],
  mandelbrot: [same, numeric.mandelbrot],
  matrix: [same, numeric.matrix],
  levenshtein: [same, numeric.levenshtein],
  memory_records: [(size) => numbers(size).map((i) => ({ name: `name${i % 1000}`, age: i % 90, score: i / 2 })), nothing],
  memory_points: [(size) => numbers(size).map((i) => ({ x: i, y: i % 90, z: 2 * i })), nothing],
  memory_ints: [numbers, nothing],
};

const [make, run] = ROWS[process.argv[2]];
let data;
let made = false;
readline.createInterface({ input: process.stdin }).on("line", () => {
  if (!made) {
    made = true;
    data = make(Number(process.argv[3]));
    global.gc();
    console.log("ready");
    return;
  }
  const begun = process.hrtime.bigint();
  const result = run(data);
  console.log(`${process.hrtime.bigint() - begun} ${result}`);
});
console.log("begin");
