// The client of Affinity for web pages, GET /client/v1.js of an engine.

/** Fields that are added to an event, or take the place of its own. POST /1/events describes them. */
export interface EventFields {
  eventName?: string;
  index?: string;
  /** What the event is about, such as `brand:Acme`, in the place of objects. */
  filters?: string[];
  queryID?: string;
  positions?: number[];
  value?: number | string;
  currency?: string;
  objectData?: object[];
  [field: string]: unknown;
}

/** Options of an order. All but `timeout` are fields of POST /1/rank. */
export interface RankOptions {
  /** Milliseconds after which the given order stands. Default: 300. */
  timeout?: number;
  index?: string;
  limit?: number;
  diversity?: { lambda?: number; facet?: string; maxPerValue?: number };
  [field: string]: unknown;
}

/** What to recommend: see POST /1/recommend. */
export type Model = 'related' | 'together' | 'next' | 'trending' | 'for-you';

/** Options of a recommendation. All but `timeout` are fields of POST /1/recommend. */
export interface RecommendOptions {
  /** Milliseconds after which nothing is recommended. Default: 2000. */
  timeout?: number;
  index?: string;
  /** The objects for which `related`, `together` and `next` recommend others. */
  objectIDs?: string[];
  /** A condition on objects, such as `brand:Acme AND price < 50`. */
  where?: string | object;
  exclude?: string[];
  limit?: number;
  [field: string]: unknown;
}

/** Options of a page of a feed. */
export interface FeedOptions {
  /** Default: `suggested`, and `latest` if the engine does not answer that. */
  order?: 'suggested' | 'latest';
  /** Milliseconds for each of the two. Default: 2000. */
  timeout?: number;
  limit?: number;
  /** That of the page before, with its `order`. */
  cursor?: string | null;
  /** Objects that the page does not have. Name them for every page of a walk. */
  exclude?: string[];
  format?: 'records' | 'ids' | 'wordpress';
}

/** A page of a feed. It has no items if the engine does not answer. */
export interface FeedPage {
  items: any[];
  cursor: string | null;
  order?: 'suggested' | 'latest';
  [field: string]: unknown;
}

/** Object IDs in an order. `queryID` is undefined if the order is the given one because the engine did not answer. */
export type Order = string[] & { queryID?: string };

/** One or more object IDs. */
export type IDs = string | number | readonly (string | number)[];

/** No method throws, and no promise is rejected. */
export interface Client {
  /** The user saw objects. The event is a view named `Product Viewed`. */
  view(ids: IDs, fields?: EventFields): void;
  /** The user clicked objects: a click named `Product Clicked`. */
  click(ids: IDs, fields?: EventFields): void;
  /** The user bought objects: a conversion named `Order Completed`. */
  buy(ids: IDs, fields?: EventFields): void;
  /** The objects in the order for the user, each once; in the given order if the engine is slow or fails. */
  rank(ids: IDs, options?: RankOptions): Promise<Order>;
  /** The objects that a model brings in, in the order for the user; none if the engine is slow or fails. */
  recommend(model: Model, options?: RecommendOptions): Promise<Order>;
  /** A page of a feed. */
  feed(name: string, options?: FeedOptions): Promise<FeedPage>;
  /**
   * true keeps the user token in localStorage, false removes it from there. Without a call nothing is stored. With a secured
   * key, true takes the token of before the user signed in as the option anonymousToken, and removes it from there.
   */
  consent(given: boolean): void;
  /** Who is signed in: later events name them as authenticatedUserToken. null: nobody. The user token stays. */
  user(token: string | null): void;
  /** The user whose profile the events make and the order follows. */
  readonly userToken: string;
}

export interface Options {
  app: string;
  /** A key with the permission search and no other, or a secured key of the user. */
  key: string;
  /** The engine. Default: the one that served the script. */
  url?: string;
  /** The index of objects, unless a call names another. */
  index?: string;
  /** The user, if the page knows them. Default: the user of a secured key, else a random token. */
  userToken?: string;
  /**
   * Who the user of a secured key was before they signed in: the userToken of the client of before. An app that links
   * tokens then counts what they did for the user, too.
   */
  anonymousToken?: string;
}

declare global {
  const affinity: {
    (options: Options): Client;
    /** The client that the attributes of the script made. */
    page?: Client;
  };
}
