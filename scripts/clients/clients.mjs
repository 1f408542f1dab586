// Calls a running engine with the published clients and prints a line per answer.
// Arguments: base URL.
import { algoliasearch } from 'algoliasearch';
import { recommendClient } from '@algolia/recommend';
import { createInsightsClient } from 'search-insights';
import browserInsights from './node_modules/search-insights/dist/search-insights-browser.mjs';

const url = process.argv[2];
const host = new URL(url).host;
const hosts = [{ url: host, accept: 'readWrite', protocol: 'http' }];
const say = (name, value) => console.log(`${name}: ${JSON.stringify(value)}`);
const visible = async (read) => {
  for (;;) {
    try {
      return await read();
    } catch (e) {
      if (e.status !== 404) throw e;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
};

const client = algoliasearch('demo', 'demokey', { hosts });
const personalization = client.initPersonalization({ region: 'us', options: { hosts } });
const insights = client.initInsights({ options: { hosts } });

// A strategy, set and read.
const strategy = {
  eventsScoring: [
    { eventName: 'Product Viewed', eventType: 'view', score: 10 },
    { eventName: 'Product Purchased', eventType: 'conversion', score: 50 },
  ],
  facetsScoring: [{ facetName: 'brand', score: 100 }, { facetName: 'color', score: 50 }],
  personalizationImpact: 40,
};
say('setPersonalizationStrategy', await personalization.setPersonalizationStrategy(strategy));
say('getPersonalizationStrategy', await personalization.getPersonalizationStrategy());

// The catalog.
const saved = await client.saveObjects({
  indexName: 'products',
  objects: [
    { objectID: '1', brand: 'Acme', color: 'Red' },
    { objectID: '2', brand: 'Zenith', color: ['Red', 'Blue'] },
  ],
  waitForTasks: true,
});
say('saveObjects', saved.map((batch) => batch.objectIDs));
say('getObject', await client.getObject({ indexName: 'products', objectID: '2' }));

// Events of a server, plain and compressed.
say('pushEvents', await insights.pushEvents({
  events: [
    { eventType: 'view', eventName: 'Product Viewed', index: 'products', userToken: 'js', objectIDs: ['1', '2'] },
    { eventType: 'conversion', eventSubtype: 'purchase', eventName: 'Product Purchased', index: 'products', userToken: 'js',
      objectIDs: ['2'], objectData: [{ price: 19.99, quantity: 1, discount: '10%' }], value: 19.99, currency: 'EUR' },
  ],
}));
say('profile js', (await visible(() => personalization.getUserTokenProfile({ userToken: 'js' }))).scores);
// Recommendations have a prefix.
const recommend = recommendClient('demo', 'demokey', { hosts: [{ ...hosts[0], url: `${host}/1/recommend` }] });
say('getRecommendations', (await recommend.getRecommendations({
  requests: [
    { indexName: 'products', model: 'related-products', objectID: '1', threshold: 0, fallbackParameters: {} },
    { indexName: 'products', model: 'recommended-for-you', threshold: 0, queryParameters: { userToken: 'js', filters: 'color:Blue' } },
  ],
})).results.map((result) => result.hits));
const gzip = algoliasearch('demo', 'demokey', { hosts, compression: 'gzip' }).initInsights({ options: { hosts, compression: 'gzip' } });
say('pushEvents gzip', await gzip.pushEvents({
  events: Array.from({ length: 20 }, (_, i) => (
    { eventType: 'view', eventName: 'Product Viewed', index: 'products', userToken: 'js-gzip', filters: [`color:c${i}`] })),
}));

// Errors arrive as errors.
for (const [name, call] of [
  ['unknown profile', () => personalization.getUserTokenProfile({ userToken: 'nobody' })],
  ['wrong key', () => algoliasearch('demo', 'wrong', { hosts }).initPersonalization({ region: 'us', options: { hosts } }).getPersonalizationStrategy()],
  ['refused event', () => insights.pushEvents({ events: [{ eventType: 'view', eventName: 'Product Viewed', index: 'products', userToken: 'a b', objectIDs: ['1'] }] })],
]) {
  try {
    say(name, await call());
  } catch (e) {
    say(name, [e.name, e.status, e.message]);
  }
}

// search-insights: its entry for Node takes no port, so a request function sends
// its requests. Its entry for browsers falls back to fetch.
const requests = [];
const node = createInsightsClient(async (endpoint, data) => {
  const response = await fetch(endpoint, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(data) });
  requests.push(response.status);
  return response.status === 200;
});
for (const [name, aa] of [['node', node], ['browser', browserInsights]]) {
  const user = `insights-${name}/+=`;
  aa('init', { appId: 'demo', apiKey: 'demokey', host: url, userToken: user });
  say(`search-insights ${name} viewedObjectIDs`, await aa('viewedObjectIDs', { eventName: 'Product Viewed', index: 'products', objectIDs: ['1'] }));
  say(`search-insights ${name} viewedFilters`, await aa('viewedFilters', { eventName: 'Product Viewed', index: 'products', filters: ['color:Sky Blue', 'brand:a:b'] }));
  say(`search-insights ${name} refused`, await aa('viewedObjectIDs', { eventName: 'é', index: 'products', objectIDs: ['1'] }));
  say(`profile of search-insights ${name}`, (await visible(async () => {
    const p = await personalization.getUserTokenProfile({ userToken: user });
    if (Object.keys(p.scores.color ?? {}).length < 2) throw Object.assign(new Error('not yet'), { status: 404 });
    return p;
  })).scores);
}

// A user is deleted.
say('deleteUserProfile', Object.keys(await personalization.deleteUserProfile({ userToken: 'js' })));
say('deleteUserToken', await insights.deleteUserToken({ userToken: 'js' }) ?? null);

// An app that may send two events per second. algoliasearch waits as long as
// retry-after says and sends again; search-insights gives up.
const tight = algoliasearch('tight', 'tightkey', { hosts }).initInsights({ options: { hosts } });
const view = (userToken) => ({ eventType: 'view', eventName: 'Product Viewed', index: 'products', userToken, filters: ['color:Red'] });
const full = () => tight.pushEvents({ events: Array.from({ length: 4 }, () => view('tight')) });
say('pushEvents to the limit', await full());
const tightBrowser = (await import('./node_modules/search-insights/dist/search-insights-browser.mjs?tight')).default;
tightBrowser('init', { appId: 'tight', apiKey: 'tightkey', host: url, userToken: 'tight' });
say('search-insights above the limit', await tightBrowser('viewedFilters', { eventName: 'Product Viewed', index: 'products', filters: ['color:Red'] }));
say('pushEvents above the limit', await tight.pushEvents({ events: [view('tight')] }));
