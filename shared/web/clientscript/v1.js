// The client of Affinity for web pages. v1.d.ts describes it, and the guide "In a web page" shows its use.
(() => {
  const script = globalThis.document?.currentScript;
  const quietly = (work) => {
    try {
      return work();
    } catch {} // the page goes on
  };
  const origin = quietly(() => new URL(script.src).origin);
  const most = 50; // events of a request
  const unique = (ids) => [...new Set([].concat(ids ?? []).map(String))];
  const hex = (byte) => byte.toString(16).padStart(2, '0');
  const anonymous = () => 'anonymous-' + Array.from(crypto.getRandomValues(new Uint8Array(16)), hex).join('');
  // A secured key is base64 of a MAC of 64 characters and of parameters, which may name its only user.
  const userOf = (key) => quietly(() => new URLSearchParams(atob(key).slice(64)).get('userToken'));

  const affinity = (options) => {
    const { app, key, url = origin, index, userToken, anonymousToken } = options ?? {};
    const base = String(url).replace(/\/$/, '');
    const owner = userOf(key);
    const fixed = owner || (userToken && String(userToken));
    const kept = 'affinity-' + app; // where the token is, in localStorage
    let token = fixed || anonymous();
    let signedIn;

    const target = (path, query = []) =>
      base + path + '?' + new URLSearchParams([...query, ['x-algolia-application-id', app], ['x-algolia-api-key', key]]);
    const ask = async (timeout, path, query, body) => {
      const options = body && { method: 'POST', body: JSON.stringify(body) };
      const answer = await fetch(target(path, query), { ...options, signal: AbortSignal.timeout(timeout) });
      if (!answer.ok) throw answer.status;
      return answer.json();
    };

    const forget = () => quietly(() => localStorage.removeItem(kept));
    // Says who the user of a secured key was before they signed in. If it fails, the next page says it.
    const link = (anonymousId) => {
      if (anonymousId) ask(1e4, '/v1/identify', [], { anonymousId, userId: owner }).then(forget, () => {});
    };
    if (owner) link(anonymousToken);

    const queue = []; // events as JSON
    let size = most;
    let failures = 0;
    let timer, sending;
    const wrap = (events) => `{"events":[${events}]}`;
    const later = (delay) => {
      timer ??= setTimeout(flush, delay);
    };
    const flush = async () => {
      timer = clearTimeout(timer);
      if (sending || !queue.length) return;
      sending = true;
      let delay = 0;
      const events = queue.splice(0, size);
      const failed = (after) => {
        queue.unshift(...events);
        const backoff = Math.min(1000 * 2 ** failures++, 6e4) * (0.5 + Math.random() / 2);
        delay = Math.min(Math.max(after * 1000 || 0, backoff), 36e5);
      };
      try {
        const body = wrap(events);
        const keepalive = body.length < 2e4; // browsers keep 64 KiB
        const answer = await fetch(target('/1/events'), { method: 'POST', body, keepalive });
        await answer.text(); // until it is read, the request counts among the 64 KiB
        const { ok, status, headers } = answer;
        if (status > 499 || status === 429 || status === 408) failed(headers.get('retry-after'));
        else {
          failures = 0;
          size = Math.min(size * 2, most);
          // The engine takes all events of a request or none: halves find the bad one.
          if (!ok && status !== 401 && status !== 403 && events.length > 1) {
            queue.unshift(...events);
            size = events.length >> 1;
          }
        }
      } catch {
        failed();
      }
      sending = false;
      timer = clearTimeout(timer); // of an event that came while this request was under way
      if (queue.length) later(delay);
    };
    const leave = () => {
      while (queue.length) {
        const events = queue.splice(0, most);
        if (!navigator.sendBeacon(target('/1/events'), wrap(events))) {
          queue.unshift(...events);
          break;
        }
      }
    };
    const event = (eventType, eventName) => (ids, more) =>
      quietly(() => {
        const about = unique(ids);
        do {
          const objectIDs = about.length ? about.splice(0, 20) : undefined;
          const kind = { eventType, eventName, timestamp: Date.now() };
          const who = { userToken: token, authenticatedUserToken: signedIn };
          queue.push(JSON.stringify({ ...kind, ...who, index, objectIDs, ...more }));
        } while (about.length);
        queue.splice(0, queue.length - 500); // the oldest, while the engine does not answer
        if (queue.length >= most && !failures) flush();
        else later(200);
      });
    quietly(() => {
      addEventListener('pagehide', () => quietly(leave));
      document.addEventListener('visibilitychange', () => document.hidden && flush());
    });

    return {
      view: event('view', 'Product Viewed'),
      click: event('click', 'Product Clicked'),
      buy: event('conversion', 'Order Completed'),
      async rank(ids, options) {
        const { timeout = 300, ...more } = options ?? {};
        const given = quietly(() => unique(ids)) ?? [];
        const known = new Set(given);
        let order = [];
        let queryID;
        try {
          if (given.length) {
            const answer = await ask(timeout, '/1/rank', [], { userToken: token, index, objectIDs: given, ...more });
            order = answer.items.map((item) => item.objectID).filter((id) => known.has(id));
            queryID = answer.id;
          }
        } catch {} // the given order
        return Object.assign([...new Set([...order, ...given])].slice(0, more.limit), { queryID });
      },
      async recommend(model, options) {
        const { timeout = 2000, ...more } = options ?? {};
        let order = [];
        let queryID;
        try {
          const answer = await ask(timeout, '/1/recommend', [], { userToken: token, index, model, ...more });
          order = answer.items.map((item) => item.objectID);
          queryID = answer.id;
        } catch {}
        return Object.assign(order, { queryID });
      },
      async feed(name, options) {
        const { order, timeout = 2000, ...more } = options ?? {};
        const query = Object.entries({ userToken: token, ...more });
        const given = query.flatMap(([name, value]) => [].concat(value ?? []).map((one) => [name, one]));
        for (const path of order ? [order] : ['suggested', 'latest']) {
          try {
            return await ask(timeout, `/1/feeds/${encodeURIComponent(name)}/${path}`, given);
          } catch {}
        }
        return { items: [], cursor: null };
      },
      consent(given) {
        quietly(() => {
          const stored = localStorage.getItem(kept);
          if (!given) forget();
          else if (owner) link(stored);
          if (fixed) return;
          if (given) localStorage.setItem(kept, (token = /^[\w=/+-]{1,129}$/.test(stored ?? '') ? stored : token));
          else if (stored) token = anonymous();
        });
      },
      user(signed) {
        signedIn = quietly(() => (signed ? String(signed) : undefined));
      },
      get userToken() {
        return token;
      },
    };
  };

  // A page without JavaScript: attributes of the script and of elements say what to do.
  const start = (client) => {
    const all = (selector, within = document) => [...within.querySelectorAll(selector)];
    for (const { dataset } of all('[data-affinity-view]')) client.view(dataset.affinityView);
    document.addEventListener('click', ({ target }) => {
      const item = target.closest?.('[data-affinity-id]');
      if (item) client.click(item.dataset.affinityId);
    });
    for (const list of all('[data-affinity-rank]')) {
      const items = new Map(all(':scope > [data-affinity-id]', list).map((item) => [item.dataset.affinityId, item]));
      const given = [...items.keys()];
      client.rank(given).then((order) => {
        if (order.some((id, i) => id !== given[i])) for (const id of order) list.append(items.get(id));
      });
    }
  };
  globalThis.affinity = affinity;
  quietly(() => {
    const { dataset } = script;
    if (!dataset.app) return;
    const client = (affinity.page = affinity(dataset));
    if (dataset.consent === 'true') client.consent(true);
    if (document.readyState === 'loading') addEventListener('DOMContentLoaded', () => start(client));
    else start(client);
  });
})();
