// Stands in for the program `duckdb` where only its npm package is there (@duckdb/node-api, which has the library):
//   node duckdb.mjs DATABASE < FILE.sql
// runs the statements, and prints the rows of each as JSON, one in a line.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const { DuckDBInstance } = createRequire(process.cwd() + '/')('@duckdb/node-api');
const instance = await DuckDBInstance.create(process.argv[2] ?? ':memory:');
const connection = await instance.connect();
const statements = await connection.extractStatements(readFileSync(0, 'utf8'));
for (let i = 0; i < statements.count; i++) {
  const result = await (await statements.prepare(i)).runAndReadAll();
  for (const row of result.getRowObjectsJson()) console.log(JSON.stringify(row));
}
