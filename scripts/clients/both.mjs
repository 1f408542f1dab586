import algolia, { createInsightsClient, getRequesterForBrowser } from 'search-insights';

const affinity = createInsightsClient(getRequesterForBrowser());

// start begins to send: to Algolia as before, and to an Affinity engine.
export function start(toAlgolia, toAffinity) {
  algolia('init', toAlgolia);
  affinity('init', toAffinity);
}

// both takes the place of aa, search-insights' function: it sends each event to both. What
// asks about the client, and the credentials that InstantSearch adds to events, are
// Algolia's alone.
export function both(method, ...args) {
  if (method !== 'init' && !/^(get|on)[A-Z]/.test(method)) {
    affinity(method, ...args.filter((arg) => !arg?.headers));
  }
  return algolia(method, ...args);
}
