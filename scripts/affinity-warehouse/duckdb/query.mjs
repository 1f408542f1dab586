// Runs statements in a DuckDB in memory: each line of standard input is one, as a JSON string. It answers each with
// a line: the rows as JSON, or {"error": ...}.
import { createInterface } from 'node:readline';
import { DuckDBInstance } from '@duckdb/node-api';

const connection = await (await DuckDBInstance.create(':memory:')).connect();
for await (const line of createInterface({ input: process.stdin })) {
  try {
    const rows = (await connection.runAndReadAll(JSON.parse(line))).getRowObjectsJson();
    console.log(JSON.stringify(rows));
  } catch (error) {
    console.log(JSON.stringify({ error: error.message }));
  }
}
