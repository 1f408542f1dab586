#!/usr/bin/env node
// Stands in for DuckDB's command line tool: it reads a script of statements from
// standard input, one a line, and knows the dot command .timer. It prints the time
// of a statement as the tool does. `npm install` in this directory installs DuckDB.
import { createInterface } from 'node:readline';
import { DuckDBInstance } from '@duckdb/node-api';

const connection = await (await DuckDBInstance.create(':memory:')).connect();
let timer = false;
for await (const line of createInterface({ input: process.stdin })) {
  if (line.trim() === '') continue;
  if (line.startsWith('.timer ')) {
    timer = line === '.timer on';
    continue;
  }
  const cpu = process.cpuUsage();
  const began = performance.now();
  try {
    await connection.run(line);
  } catch (error) {
    console.error(`${error.message}\nin ${line}`);
    process.exit(1);
  }
  const seconds = (performance.now() - began) / 1e3;
  const { user, system } = process.cpuUsage(cpu);
  if (timer) console.log(`Run Time (s): real ${seconds.toFixed(6)} user ${user / 1e6} sys ${system / 1e6}`);
}
