// Sends calls from a page with the published SDKs for browsers, and events as pages do by hand.
// browser_test.go runs it in Chromium.
import { segment } from './segmentpage.mjs';
import { rudder } from './rudderpage.mjs';

const key = 'demo:pagekey';
const shoe = { product_id: 'shoe-1', price: 99.5 };
const order = { order_id: 'o-1', products: [{ product_id: 'shoe-1', quantity: 2 }, { product_id: 'shoe-2' }] };

// Some calls are sent in a batch as the page is left.
const batching = (config) => ({ deliveryStrategy: { strategy: 'batching', config: { size: 1000, timeout: 600_000, ...config } } });

async function segmentCalls(user, url, delivery) {
  const analytics = segment(key, new URL(url).host, delivery);
  await analytics.ready();
  const calls = [
    analytics.identify(user, { plan: 'gold' }), analytics.page('Home'), analytics.group('g'), analytics.screen('Home'),
    analytics.track('Signed Up'), analytics.track('Product Viewed', shoe), analytics.track('Order Completed', order),
  ];
  await Promise.all(calls);
  await analytics.alias('other');
}

async function rudderCalls(user, url, options) {
  const analytics = rudder(key, url, options);
  await new Promise((resolve) => analytics.ready(resolve));
  analytics.identify(user, { plan: 'gold' });
  analytics.page('Home');
  analytics.group('g');
  analytics.track('Signed Up');
  analytics.track('Product Viewed', shoe);
  analytics.track('Order Completed', order);
  analytics.alias('other', user);
}

const event = (user) => JSON.stringify({ events: [{ eventType: 'view', eventName: 'Viewed', index: 'products', userToken: user, objectIDs: ['shoe-1'] }] });
const events = (url) => `${url}/1/events?x-algolia-application-id=demo&x-algolia-api-key=pagekey`;
const json = (text) => new Blob([text], { type: 'application/json' });

export const ways = {
  'segment-fetch': (user, url) => segmentCalls(user, url),
  'segment-credentials': (user, url) => segmentCalls(user, url, { deliveryStrategy: { config: { credentials: 'include', headers: { 'x-page': 'home' } } } }),
  'segment-batch': (user, url) => segmentCalls(user, url, batching()),
  'segment-batch-credentials': (user, url) => segmentCalls(user, url, batching({ credentials: 'include' })),
  'rudder-xhr': (user, url) => rudderCalls(user, url),
  'rudder-batch': (user, url) => rudderCalls(user, url, { queueOptions: { batch: { enabled: true, flushInterval: 100 } } }),
  'rudder-beacon': (user, url) => rudderCalls(user, url, { useBeacon: true }),
  'beacon-text': (user, url) => navigator.sendBeacon(events(url), event(user)),
  'beacon-json': (user, url) => navigator.sendBeacon(events(url), json(event(user))),
  'fetch-credentials': (user, url) => fetch(events(url), { method: 'POST', body: json(event(user)), credentials: 'include', keepalive: true }).then((r) => r.json()),
};
