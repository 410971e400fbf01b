// Level graphs as programs with a promise for each node, over npm's `dataloader`.
//
// Reads {"latencies": [ms, …], "graphs": [[{"source": index or null, "inputs": [node, …]}, …], …]} from standard input, and writes
// [{"calls": number, "ms": number}, …]. The last node of a graph is its root.
"use strict";
const DataLoader = require("dataloader");

async function run(graph, latencies) {
  let calls = 0;
  const loaders = latencies.map((ms) => new DataLoader((keys) => {
    calls += 1;
    return new Promise((resolve) => setTimeout(() => resolve(keys), ms));
  }));
  const begin = performance.now();
  const values = [];
  for (const [index, node] of graph.entries()) {
    const inputs = Promise.all(node.inputs.map((input) => values[input]));
    values.push(inputs.then(() => (node.source === null ? index : loaders[node.source].load(index))));
  }
  await values[values.length - 1];
  return { calls, ms: performance.now() - begin };
}

let text = "";
process.stdin.on("data", (part) => { text += part; });
process.stdin.on("end", async () => {
  const { latencies, graphs } = JSON.parse(text);
  const results = [];
  for (const graph of graphs) results.push(await run(graph, latencies));
  process.stdout.write(JSON.stringify(results));
});
