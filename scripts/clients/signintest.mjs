// What visitors do before they sign in, how each client says that they have, and what they do after they have signed out.
// signin_test.go runs it in Chromium. The guide "When visitors sign in" shows the lines between the marks.
import aa from 'search-insights';
import { segment } from './segmentpage.mjs';

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const visitor = (KEY) => {
  const shop = affinity({ app: 'demo', key: KEY, index: 'products' });
  shop.consent(true);
  return shop;
};
const seen = (shop, id) => {
  shop.view(id);
  return shop.userToken;
};

const script = {
  before: (KEY) => seen(visitor(KEY), 'script-1'),
  async signIn(SECURED, ENGINE) {
    let shop = visitor('pagekey');
    // shown
    shop = affinity({ app: 'demo', key: SECURED, index: 'products', anonymousToken: shop.userToken });
    // end
    while (localStorage.getItem('affinity-demo')) await wait(20);
    return shop.userToken;
  },
  after: (KEY) => seen(visitor(KEY), 'script-2'),
};

const insights = {
  async before(KEY, ENGINE) {
    aa('init', { appId: 'demo', apiKey: KEY, host: ENGINE, useCookie: true });
    await aa('viewedObjectIDs', { eventName: 'Product Viewed', index: 'products', objectIDs: ['insights-1'] });
    return aa('getUserToken');
  },
  async signIn(SECURED, ENGINE) {
    // shown
    aa('init', { appId: 'demo', apiKey: SECURED, host: ENGINE, useCookie: true });
    aa('setAuthenticatedUserToken', 'ann');
    // end
    await aa('viewedObjectIDs', { eventName: 'Product Viewed', index: 'products', objectIDs: ['insights-1'] });
    // shown
    document.cookie = '_ALGOLIA=; max-age=0; path=/';
    // end
    return 'ann';
  },
  async after(KEY, ENGINE) {
    aa('init', { appId: 'demo', apiKey: KEY, host: ENGINE, useCookie: true });
    await aa('viewedObjectIDs', { eventName: 'Product Viewed', index: 'products', objectIDs: ['insights-2'] });
    return aa('getUserToken');
  },
};

const host = (url) => new URL(url).host;
const viewed = async (analytics, id) => {
  await analytics.track('Product Viewed', { product_id: id, search_index: 'products' });
  return (await analytics.user()).anonymousId();
};

const sdk = {
  before: (KEY, ENGINE) => viewed(segment(`demo:${KEY}`, host(ENGINE)), 'segment-1'),
  async signIn(SECURED, ENGINE) {
    const HOST = host(ENGINE);
    // shown
    const analytics = segment(`demo:${SECURED}`, HOST);
    analytics.identify('ann');
    // end
    await viewed(analytics, 'segment-1');
    // shown
    analytics.reset();
    // end
    return 'ann';
  },
  after: (KEY, ENGINE) => viewed(segment(`demo:${KEY}`, host(ENGINE)), 'segment-2'),
};

const view = (key, engine, userToken, id) =>
  fetch(`${engine}/1/events?${new URLSearchParams({ 'x-algolia-application-id': 'demo', 'x-algolia-api-key': key })}`, {
    method: 'POST',
    body: JSON.stringify({ events: [{ eventType: 'view', eventName: 'Product Viewed', index: 'products', userToken, objectIDs: [id] }] }),
  });

const request = {
  async before(KEY, ENGINE) {
    await view(KEY, ENGINE, 'fetch-before', 'fetch-1');
    return 'fetch-before';
  },
  async signIn(SECURED, ENGINE) {
    const anonymousId = 'fetch-before';
    // shown
    const url = `${ENGINE}/v1/identify?${new URLSearchParams({ writeKey: `demo:${SECURED}` })}`;
    await fetch(url, { method: 'POST', body: JSON.stringify({ anonymousId, userId: 'ann' }), keepalive: true });
    // end
    return 'ann';
  },
  async after(KEY, ENGINE) {
    await view(KEY, ENGINE, 'fetch-after', 'fetch-2');
    return 'fetch-after';
  },
};

export const ways = { script, insights, segment: sdk, fetch: request };
