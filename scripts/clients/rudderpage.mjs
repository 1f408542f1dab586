import { RudderAnalytics } from '@rudderstack/analytics-js/bundled';

// rudder sends the calls of a page to the engine at a URL, with a write key, APP:KEY. It asks
// RudderStack for nothing: the settings, which RudderStack keeps for a source, are given here.
export function rudder(writeKey, url, options) {
  const analytics = new RudderAnalytics();
  analytics.load(writeKey, url, {
    getSourceConfig: () => ({ source: { id: 'page', config: {}, destinations: [] } }),
    ...options,
  });
  return analytics;
}
