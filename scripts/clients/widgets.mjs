// Runs InstantSearch and Autocomplete, in a page of jsdom, with the functions of both.mjs,
// and prints what a stand-in for Algolia and an engine got. Arguments: base URL of the engine.
import { createServer } from 'node:http';
import { JSDOM } from 'jsdom';

const engine = process.argv[2];
const say = (name, value) => console.log(`${name}: ${JSON.stringify(value)}`);

// The page.
const page = new JSDOM('<div id="search"></div><div id="box"></div>', { url: 'http://localhost/', pretendToBeVisual: true });
page.window.matchMedia = () => ({ matches: false, addEventListener() {}, removeEventListener() {} }); // which jsdom lacks
for (const name of Object.getOwnPropertyNames(page.window).filter((name) => !(name in globalThis) || name === 'Event')) {
  Object.defineProperty(globalThis, name, { value: page.window[name], configurable: true, writable: true });
}

// Algolia: answers searches, and takes events.
const got = [];
const algolia = createServer(async (request, response) => {
  let body = '';
  for await (const part of request) body += part;
  response.writeHead(200, { 'content-type': 'application/json', 'access-control-allow-origin': '*', 'access-control-allow-headers': '*' });
  if (request.method === 'OPTIONS') {
    response.end();
    return;
  }
  const sent = JSON.parse(body);
  if (sent.events) {
    got.push(...sent.events.map((e) => e.eventName));
    response.end('{"status":200,"message":"OK"}');
    return;
  }
  const hits = [{ objectID: '1', name: 'Runner' }, { objectID: '2', name: 'Walker' }];
  response.end(JSON.stringify({ results: sent.requests.map(({ indexName }) => ({
    index: indexName, hits, nbHits: 2, nbPages: 1, page: 0, hitsPerPage: 20, query: '', params: '', processingTimeMS: 1, queryID: '0123456789abcdef0123456789abcdef',
  })) }));
});
await new Promise((resolve) => algolia.listen(0, '127.0.0.1', resolve));
const host = `127.0.0.1:${algolia.address().port}`;

const { algoliasearch } = await import('algoliasearch');
const { default: { default: instantsearch } } = await import('instantsearch.js');
const { default: { default: connectHits } } = await import('instantsearch.js/cjs/connectors/hits/connectHits.js');
const { default: { autocomplete } } = await import('@algolia/autocomplete-js');
const { default: { createAlgoliaInsightsPlugin } } = await import('@algolia/autocomplete-plugin-algolia-insights');
const { alone, both, start } = await import('./both.mjs');

const searchClient = algoliasearch('ALGOLIAAPP', 'algolia-key', { hosts: [{ url: host, accept: 'readWrite', protocol: 'http' }] });
const headers = { 'x-algolia-application-id': 'demo', 'x-algolia-api-key': 'demokey' };
const accepted = async (user, wanted) => {
  for (;;) {
    const { events } = await (await fetch(`${engine}/1/explain/${user}`, { headers })).json();
    if (events.accepted >= wanted) return events.accepted;
  }
};
const settled = () => new Promise((resolve) => setTimeout(resolve, 0));

for (const [name, insightsClient] of Object.entries({ both, alone })) {
  const user = `widgets-${name}`;
  got.length = 0;
  start(
    { appId: 'demo', apiKey: 'demokey', host: engine, userToken: user },
    { appId: 'ALGOLIAAPP', apiKey: 'algolia-key', host: `http://${host}`, userToken: user },
  );
  const search = instantsearch({ indexName: 'products', searchClient, insights: { insightsClient } });
  const clicked = new Promise((resolve) => {
    search.addWidgets([connectHits(({ items, sendEvent }, first) => {
      if (first || items.length === 0) return;
      sendEvent('click', items[0], 'Hit Clicked');
      resolve();
    })({})]);
  });
  search.start();
  await clicked;
  // "Hits Viewed" of two objects, and "Hit Clicked".
  say(`InstantSearch, ${name}: events of the engine`, await accepted(user, 2));
  search.dispose();

  let select;
  const box = autocomplete({
    container: '#box', openOnFocus: true, plugins: [createAlgoliaInsightsPlugin({ insightsClient })],
    getSources: () => [{
      sourceId: 'products', templates: { item: ({ item }) => item.name },
      getItems: () => [{ objectID: '1', name: 'Runner', __autocomplete_indexName: 'products', __autocomplete_queryID: '0123456789abcdef0123456789abcdef' }],
    }],
    onStateChange: ({ state }) => { if (state.collections.length > 0) select?.(); },
  });
  const shown = new Promise((resolve) => { select = resolve; });
  document.querySelector('#box input').focus();
  box.setIsOpen(true);
  box.setQuery('r');
  await box.refresh();
  await shown;
  while (!document.querySelector('.aa-Item')) await settled();
  document.querySelector('.aa-Item').dispatchEvent(new page.window.MouseEvent('click', { bubbles: true }));
  say(`Autocomplete, ${name}: events of the engine`, await accepted(user, 4));
  box.destroy();
  while (name === 'both' && got.length < 5) await settled();
  say(`${name}: events of Algolia`, got.toSorted());
}
algolia.close();
process.exit(0);
