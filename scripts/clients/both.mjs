import algolia, { createInsightsClient, getRequesterForBrowser } from 'search-insights';

const affinity = createInsightsClient(getRequesterForBrowser());

// start begins to send to an Affinity engine, and, if toAlgolia is given, to Algolia as before.
export function start(toAffinity, toAlgolia) {
  affinity('init', toAffinity);
  if (toAlgolia) algolia('init', toAlgolia);
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

// alone takes the place of both once nothing goes to Algolia any more.
export function alone(method, ...args) {
  if (method !== 'init') return affinity(method, ...args.filter((arg) => !arg?.headers));
}
