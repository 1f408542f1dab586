// Sends events with both.mjs to a stand-in for Algolia and to an engine, and prints what
// either got. Arguments: base URL of the engine.
import { createServer } from 'node:http';
import { both, start } from './both.mjs';

const engine = process.argv[2];
const say = (name, value) => console.log(`${name}: ${JSON.stringify(value)}`);
const got = [];
const algolia = createServer(async (request, response) => {
  let body = '';
  for await (const part of request) body += part;
  const app = new URL(request.url, 'http://localhost').searchParams.get('X-Algolia-Application-Id');
  got.push([app, ...JSON.parse(body).events.map((e) => `${e.eventName} by ${e.userToken}`)]);
  response.writeHead(200, { 'content-type': 'application/json' }).end('{"status":200,"message":"OK"}');
});
await new Promise((resolve) => algolia.listen(0, '127.0.0.1', resolve));

start(
  { appId: 'demo', apiKey: 'demokey', host: engine, userToken: 'both' },
  { appId: 'ALGOLIAAPP', apiKey: 'algolia-key', host: `http://127.0.0.1:${algolia.address().port}`, userToken: 'both' },
);
say('both', await both('viewedObjectIDs', { eventName: 'Product Viewed', index: 'products', objectIDs: ['1'] }));
both('setUserToken', 'both-2');
both('getUserToken', {}, (_, token) => say('the token', token));
// As InstantSearch sends an event: with its own credentials.
say('both, as InstantSearch', await both('sendEvents', [{ eventType: 'click', eventName: 'Hit Clicked', index: 'products', objectIDs: ['1'] }],
  { headers: { 'X-Algolia-Application-Id': 'ALGOLIAAPP', 'X-Algolia-API-Key': 'algolia-key' } }));
say('Algolia', got);
const headers = { 'x-algolia-application-id': 'demo', 'x-algolia-api-key': 'demokey' };
for (const user of ['both', 'both-2']) {
  let accepted = 0;
  while (accepted === 0) {
    accepted = (await (await fetch(`${engine}/1/explain/${user}`, { headers })).json()).events.accepted;
  }
  say(`Affinity, events of ${user}`, accepted);
}
algolia.close();
