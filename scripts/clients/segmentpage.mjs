import { AnalyticsBrowser } from '@segment/analytics-next';

// segment sends the calls of a page to the engine at a host, with a write key, APP:KEY. It asks
// Segment for nothing: the settings, which Segment keeps for a source, are given here.
export function segment(writeKey, host, delivery) {
  return AnalyticsBrowser.load(
    { writeKey, cdnSettings: { integrations: { 'Segment.io': { apiKey: writeKey } }, metrics: { sampleRate: 0 } } },
    { integrations: { 'Segment.io': { apiHost: `${host}/v1`, ...delivery } } },
  );
}
