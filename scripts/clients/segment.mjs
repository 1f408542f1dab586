// Sends calls with Segment's published SDK for servers, and prints a line per answer.
// Arguments: base URL.
import { Analytics } from '@segment/analytics-node';

const url = process.argv[2];
const say = (name, value) => console.log(`${name}: ${JSON.stringify(value)}`);
const at = new Date(Date.now() - 3_600_000);
const order = () => ({ order_id: 'o-1', products: [{ product_id: 'shoe-1', quantity: 2 }, { product_id: 'shoe-2' }] });

// Segment. The index is in the path of the URL, so calls need not name it.
const segment = new Analytics({ writeKey: 'demo:demokey', host: url, path: '/v1/batch?index=products', maxRetries: 0 });
const answers = [];
segment.on('http_response', ({ status }) => answers.push(status));
segment.on('error', (e) => answers.push(e.reason?.message ?? e.code));
segment.identify({ userId: 'segment', traits: { plan: 'gold' } });
segment.page({ userId: 'segment', name: 'Home' });
segment.track({ userId: 'segment', event: 'Signed Up' });
for (const messageId of ['m-1', 'm-2', 'm-2']) { // two events: the second one is sent again
  segment.track({ messageId, userId: 'segment', event: 'Product Viewed', timestamp: at, properties: { product_id: 'shoe-1', price: 99.5 } });
}
segment.track({ userId: 'segment', event: 'Order Completed', timestamp: at, properties: order() });
segment.track({ anonymousId: 'segment-anonymous', event: 'Product Added', timestamp: at, properties: { sku: 'shoe-2' } });
await segment.closeAndFlush();
say('segment', answers);

const wrong = new Analytics({ writeKey: 'demo:wrong', host: url, maxRetries: 3 });
wrong.on('error', (e) => say('segment with a wrong key', [e.code, e.reason?.message]));
wrong.track({ userId: 'segment', event: 'Product Viewed', properties: { product_id: 'shoe-1' } });
await wrong.closeAndFlush();

// Two batches of an app with a limit: the second one waits as long as Retry-After says.
const tight = new Analytics({ writeKey: 'tight:tightkey', host: url, path: '/v1/batch?index=products', maxRetries: 0, flushAt: 4, flushInterval: 10 });
const tightAnswers = [];
tight.on('http_response', ({ status }) => tightAnswers.push(status));
tight.on('error', (e) => tightAnswers.push(e.code));
for (let batch = 0; batch < 2; batch++) {
  await Promise.all(Array.from({ length: 4 }, (_, i) => new Promise((resolve) => {
    tight.track({ userId: 'tight', event: 'Product Viewed', timestamp: new Date(at.getTime() + 10 * batch + i), properties: { product_id: 'shoe-1' } }, resolve);
  })));
}
await tight.closeAndFlush();
say('segment above the limit', [tightAnswers[0], tightAnswers.includes(429), tightAnswers.at(-1)]);
