// Answers searches with MiniSearch. The first line of standard input is a JSON
// array of documents with id, title and their facets; each further line is a
// search {"text","query","size"}, where query is a rendered boost. Each line of
// output answers one: {"hits":[["id",score],...]}. minisearch_test.go starts it,
// with the page of MiniSearch, whose function boostDocument it runs.
import { createInterface } from 'node:readline';
import MiniSearch from 'minisearch';
import { boostDocument } from './page.mjs';

let index;
for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (!index) {
    index = new MiniSearch({ fields: ['title'], storeFields: Object.keys(message[0]) });
    index.addAll(message);
    continue;
  }
  const options = message.query ? { boostDocument: boostDocument(message.query) } : {};
  // MiniSearch leaves the order of equal scores open.
  const hits = index.search(message.text, options)
    .sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1)).slice(0, message.size)
    .map((hit) => [hit.id, hit.score]);
  console.log(JSON.stringify({ hits }));
}
